package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/report"
)

func TestATrackPlaysItself(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 160, 45, "play", "migrate", "--pace", "10ms", "--until", "add-v1beta1")
	x.see(" the end; q quits ", "2 of 11", "1 was tried, and ")
	x.offers("q quit")
	x.press("q")
	x.leave(0)
}

func TestAPlayIsPaused(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 160, 45, "play", "migrate", "--pace", "10m") // nothing comes by itself
	x.see(" step 1 of 11: Create v1alpha1 ")
	x.offers("space pause")
	x.press(" ")
	x.see("○ paused space goes on")
	x.press("n")
	x.see(" chooses 1: ", "▸ 1", "○ paused")
	x.press(" ")
	x.until("it goes on", func(s string) bool { return !strings.Contains(s, "paused") })
	x.press("?")
	x.see("The play", "pause, go on")
	x.press("\x1b")
	x.until("the dialog is gone", func(s string) bool { return !strings.Contains(s, "The play") })
	x.press("n")
	x.see(" applies: Create v1alpha1 ")
	x.press("n")
	x.see(" applied: Create v1alpha1 ", "1 ✓")
	x.press("q")
	x.leave(0)
}

func TestAPlayBeginsAtALaterStep(t *testing.T) {
	t.Parallel()
	x := openTerminal(t, 160, 45, "play", "migrate", "--pace", "10ms", "--from", "switch-storage", "--until", "switch-storage")
	x.see(" the end; q quits ", "4 of 11", "1 was tried, and ")
	x.press("q")
	x.leave(0)
}

func TestAPlayInATerminalIsRecorded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "play.cast")
	x := openTerminal(t, 120, 30, "play", "migrate", "--pace", "10ms", "--until", "create-v1alpha1", "--record", file)
	x.see(" the end; q quits ")
	x.resize(100, 40)
	x.until("a screen of the new size", func(s string) bool {
		lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
		return len(lines) == 40 && strings.Contains(lines[39], "q quit")
	})
	last := x.screen()
	x.press("q")
	if said := x.end(0); !strings.Contains(said, file) {
		t.Errorf("on standard error: %q", said)
	}
	v := labtest.View(t, read(t, file))
	if mark := v.Mark(); mark != "1 Create v1alpha1" {
		t.Errorf("the first mark is %q", mark)
	}
	seen := ""
	for code, _ := v.Event(); code != ""; code, _ = v.Event() {
		if v.Screen.IsAltScreen() {
			seen = v.Text()
		}
	}
	if seen != last {
		t.Errorf("the last screen was\n%s\nand the recording shows\n%s", last, seen)
	}
	if v.Code != "0" {
		t.Errorf("it ends with the exit code %q", v.Code)
	}
}

// Who interrupts a recording gets none, and nothing half of one.
func TestAnInterruptedRecordingLeavesNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cmd, state := command(t, "play", "migrate", "--widgets", "20000", "--record", filepath.Join(folder, "play.cast"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := await(filepath.Join(state, "crdlab", "session-*", "kubeconfig")); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // its code is what is looked at
	if code := cmd.ProcessState.ExitCode(); code != report.ExitInterrupted || stderr.String() != "Nothing was recorded: the play did not come to its end.\n" {
		t.Errorf("exit code %d; standard error: %s", code, stderr.String())
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	isGone(t, state)
}
