package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster/embedded/quiet"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/report"
	"github.com/crdlab/crdlab/lab/storage"
)

// The tests drive the real program, child process included: this binary, under the name crdlab.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"crdlab": main, "kubectl": kubectl})
}

// kubectl is the real one, for machines that have nothing but Go.
func kubectl() {
	os.Stderr = quiet.Stderr
	if err := kubectlcmd.NewDefaultKubectlCommand().Execute(); err != nil {
		os.Exit(1)
	}
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			e.Setenv("TERM", "xterm-256color")
			e.Setenv("HOME", e.WorkDir) // kubectl keeps a cache there
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"waitfor": waitFor,
			"empty":   empty,
			"occupy":  occupy,
			"foreign": foreign,
		},
	})
}

// exits CODE COMMAND... runs a command that is to end with an exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if neg || err != nil || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	err = ts.Exec(args[1], args[2:]...)
	var failed *exec.ExitError
	got := 0
	if errors.As(err, &failed) {
		got = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// waitfor PATTERN [TEXT] waits until there is a file, and a text in it.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: waitfor PATTERN [TEXT]")
	}
	ts.Check(await(ts.MkAbs(args[0]), args[1:]...))
}

// await waits until a file that fits a pattern is there and holds the texts.
func await(pattern string, texts ...string) error {
	there := func() bool {
		found, _ := filepath.Glob(pattern)
		if len(found) == 0 {
			return false
		}
		content, _ := os.ReadFile(found[0])
		return !slices.ContainsFunc(texts, func(t string) bool { return !bytes.Contains(content, []byte(t)) })
	}
	tick, end := time.NewTicker(10*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for {
		if there() {
			return nil
		}
		select {
		case <-tick.C:
		case <-end:
			return fmt.Errorf("%s with %q has not come", pattern, texts)
		}
	}
}

// empty FOLDER... looks that nothing is in folders, which may be absent.
func empty(ts *testscript.TestScript, neg bool, args []string) {
	for _, a := range args {
		found, err := filepath.Glob(filepath.Join(ts.MkAbs(a), "*"))
		ts.Check(err)
		if empty := len(found) == 0; empty == neg {
			ts.Fatalf("in %s there is %v", a, found)
		}
	}
}

// occupy NAME listens on a port until the script ends, and puts its number into a variable.
func occupy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: occupy NAME")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv(args[0], strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
}

// foreign FROM TO [NAME] writes a kubeconfig as another program would have written it: the same server, and no word of its
// etcd, whose endpoint goes into a variable.
func foreign(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: foreign FROM TO [NAME]")
	}
	config, err := clientcmd.LoadFromFile(ts.MkAbs(args[0]))
	ts.Check(err)
	for _, c := range config.Clusters {
		for _, e := range c.Extensions {
			var storage struct{ Endpoint string }
			ts.Check(json.Unmarshal(e.(*runtime.Unknown).Raw, &storage))
			if len(args) == 3 {
				ts.Setenv(args[2], storage.Endpoint)
			}
		}
		c.Extensions = nil
	}
	ts.Check(clientcmd.WriteToFile(*config, ts.MkAbs(args[1])))
}

// command is the program, in folders of its own.
func command(t *testing.T, args ...string) (cmd *exec.Cmd, state string) {
	t.Helper()
	state = t.TempDir()
	cmd = exec.Command("crdlab", args...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state, "TMPDIR="+t.TempDir(), "TERM=xterm-256color")
	return cmd, state
}

// A run of the whole track as one document, with nothing on standard error.
func document(t *testing.T) map[string]any {
	t.Helper()
	cmd, _ := command(t, "run", "migrate", "-o", "json")
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Fatalf("crdlab run migrate -o json: %v\n%s", err, stderr.String())
	}
	var document map[string]any
	d := json.NewDecoder(&out)
	if err := d.Decode(&document); err != nil || d.More() {
		t.Fatalf("it is not one JSON document: %v", err)
	}
	return document
}

// A signal ends a run in an orderly way: its exit code says so, and nothing is left.
func TestSignalsEndARun(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			cmd, state := command(t, "run", "migrate", "--widgets", "20000", "-o", "json")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if err := await(filepath.Join(state, "crdlab", "session-*", "kubeconfig")); err != nil {
				t.Error(err)
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait() // its code is what is looked at
			if code := cmd.ProcessState.ExitCode(); code != report.ExitInterrupted {
				t.Errorf("exit code %d, want %d; standard error: %s", code, report.ExitInterrupted, stderr.String())
			}
			isGone(t, state)
		})
	}
}

// Who interrupts a run is told how far it came, and not that a step failed.
func TestAnInterruptedRunHasNotFailed(t *testing.T) {
	cmd, state := command(t, "run", "migrate", "--widgets", "20000")
	told := filepath.Join(t.TempDir(), "told")
	out, err := os.Create(told)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := await(told, "crdlab migrate"); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // its code is what is looked at
	text, err := os.ReadFile(told)
	if err != nil {
		t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != report.ExitInterrupted || !bytes.Contains(text, []byte("○ interrupted · 0 steps passed, 11 not run\n")) || bytes.Contains(text, []byte("failed")) {
		t.Errorf("exit code %d:\n%s", code, text)
	}
	isGone(t, state)
}

// serve ends well by either signal; by the end of its process its kubeconfig is gone.
func TestSignalsEndServe(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
			cmd, state := command(t, "serve", "--write-kubeconfig", kubeconfig)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if err := await(kubeconfig); err != nil {
				t.Error(err)
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Error(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("crdlab serve, ended by %s: %v", signal, err)
			}
			if _, err := os.Stat(kubeconfig); err == nil {
				t.Error("the kubeconfig is still there")
			}
			isGone(t, state)
		})
	}
}

// Where the server of a command is killed, the command ends, and says in one line why, and what to do.
func TestTheEndOfTheServerEndsTheCommand(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		begun bool // the server is killed when the first step has begun, and not at once
		wayOn string
		told  string // what is on standard output
	}{
		"run":         {[]string{"run", "migrate", "--widgets", "3000"}, true, "run it again", "crdlab migrate"},
		"run json":    {[]string{"run", "migrate", "--widgets", "3000", "-o", "json"}, true, "run it again", `"kind": "Run"`},
		"run at once": {[]string{"run", "migrate", "--widgets", "3000"}, false, "run it again", ""},
		"serve":       {[]string{"serve"}, false, "start crdlab serve again", "export KUBECONFIG="},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, state := command(t, c.args...)
			var out, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			kubeconfig := filepath.Join(state, "crdlab", "session-*", "kubeconfig")
			if err := await(kubeconfig); err != nil {
				t.Error(err)
			}
			if c.begun {
				awaitCRD(t, kubeconfig)
			}
			if err := syscall.Kill(child(t, cmd.Process.Pid), syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait() // its code is what is looked at
			if code := cmd.ProcessState.ExitCode(); code != report.ExitFailure {
				t.Errorf("exit code %d, want %d", code, report.ExitFailure)
			}
			log := filepath.Join(state, "crdlab", "last-failure.log")
			said := stderr.String()
			if strings.Count(said, "\n") != 1 || strings.Count(said, "signal: killed") != 1 || !strings.HasPrefix(said, "crdlab: ") ||
				!strings.Contains(said, "(its log: "+log+")") || !strings.HasSuffix(said, "; "+c.wayOn+"\n") {
				t.Errorf("on standard error: %s", said)
			}
			if !strings.Contains(out.String(), c.told) {
				t.Errorf("on standard output: %s", out.String())
			}
		})
	}
}

// awaitCRD waits until the lab's CRD is on the server of a kubeconfig, whose path is a pattern.
func awaitCRD(t *testing.T, pattern string) {
	t.Helper()
	awaitStrategy(t, pattern, "")
}

// awaitStrategy waits until the lab's CRD is converted in a way; in any, where it is empty.
func awaitStrategy(t *testing.T, pattern, strategy string) {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", found[0])
	if err != nil {
		t.Fatal(err)
	}
	client, err := evidence.NewClient(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	path := evidence.DefinitionPath(storage.Resource{Group: lab.DefaultGroup, Plural: "widgets"})
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		r, err := client.Get(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Status == http.StatusOK {
			crd, err := evidence.ParseCRD(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			if strategy == "" || crd.Strategy == strategy {
				return
			}
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the test ends")
		}
	}
}

// child is the process that another one has started.
func child(t *testing.T, parent int) int {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		var pid, ppid int
		if _, err := fmt.Sscan(line, &pid, &ppid); err == nil && ppid == parent {
			return pid
		}
	}
	t.Fatalf("no process has the parent %d", parent)
	return 0
}

// isGone looks that a lab has left nothing in its state folder.
func isGone(t *testing.T, state string) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(state, "crdlab", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Whatever goes wrong is said in one line; an answer, a reader that has gone and an interruption in none.
func TestErrorsAreOneLine(t *testing.T) {
	if got := oneLine("a\n\n  b\nc\n"); got != "a; b; c" {
		t.Errorf("%q", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		code int
		said string
	}{
		"good":        {t.Context(), nil, 0, ""},
		"an answer":   {t.Context(), exit(3), 3, ""},
		"a failure":   {t.Context(), errors.Join(errors.New("one"), errors.New("two")), 2, "crdlab: one; two\n"},
		"no reader":   {t.Context(), syscall.EPIPE, 2, ""},
		"interrupted": {ended, ended.Err(), 130, ""},
	} {
		f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
		if err != nil {
			t.Fatal(err)
		}
		code := (&app{err: f}).tell(c.ctx, c.err)
		f.Close()
		said, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if code != c.code || string(said) != c.said {
			t.Errorf("%s: exit code %d and %q; want %d and %q", name, code, said, c.code, c.said)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	words := []string{"migrate", "switch-storage", "stop-serving", "--until"}
	for word, want := range map[string]string{"migrat": "migrate", "Migrate": "migrate", "swich-storage": "switch-storage",
		"storage": "switch-storage", "--untill": "--until", "webhook": "", "x": ""} {
		got := strings.TrimSuffix(strings.TrimPrefix(didYouMean(word, words), ": did you mean "), "?")
		if got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
