package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/crdlab/crdlab/lab/labtest"
)

// TestTheRecordingsAreFresh makes the recordings in docs anew and compares what a viewer sees. Where it fails, and the screens
// are right, docs/record makes them anew.
func TestTheRecordingsAreFresh(t *testing.T) {
	t.Parallel()
	const docs = "../../docs"
	fresh := t.TempDir()
	cmd := exec.CommandContext(t.Context(), filepath.Join(docs, "record"), fresh)
	cmd.Env = append(os.Environ(), "CRDLAB=crdlab", "XDG_STATE_HOME="+t.TempDir(), "TMPDIR="+t.TempDir(), "NO_COLOR=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	names := casts(t, docs)
	if made := casts(t, fresh); !slices.Equal(made, names) {
		t.Fatalf("docs/record makes %v, and in docs there are %v", made, names)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			was, is := read(t, filepath.Join(docs, name)), read(t, filepath.Join(fresh, name))
			if n := len(was); n > 300_000 {
				t.Errorf("it has %d bytes, too many for a recording in a repository", n)
			}
			sameScreens(t, screens(t, was), screens(t, is))
		})
	}
}

// casts are the names of the recordings in a folder.
func casts(t *testing.T, folder string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "*.cast"))
	if err != nil || len(found) == 0 {
		t.Fatalf("recordings in %s: %v, %v", folder, found, err)
	}
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	return found
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// seenScreen is what stands on the screen of a recording, and the mark before it.
type seenScreen struct {
	mark string
	text string
}

// screens are what a viewer sees at every change, without what is another in every run.
func screens(t *testing.T, cast []byte) []seenScreen {
	t.Helper()
	var out []seenScreen
	v := labtest.View(t, cast)
	for {
		switch code, data := v.Event(); code {
		case "o":
			out = append(out, seenScreen{text: settled(v.Text())})
		case "m":
			out[len(out)-1].mark = data
		case "":
			return out
		}
	}
}

// chance is what is another in every run.
var chance = []struct{ pattern, told string }{
	{`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`, "UID"},
	{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, "TIME"},
	{`\d+(\.\d+)? (µs|ms|s)\b`, "TOOK"},
	{`(resourceVersion: "?|revision )\d+`, "${1}N"},
	{`\b1\.\d+\.\d+\b`, "VERSION"},
	{` +`, " "},                               // what fills up the others
	{`(PATCH \S+ …/widgets/)\w+`, "${1}NAME"}, // they are sent side by side
}

func settled(screen string) string {
	for _, c := range chance {
		screen = regexp.MustCompile(c.pattern).ReplaceAllString(screen, c.told)
	}
	return screen
}

func sameScreens(t *testing.T, was, is []seenScreen) {
	t.Helper()
	for i := range min(len(was), len(is)) {
		if was[i] != is[i] {
			t.Fatalf("screen %d is another now:\n%s", i+1, differing(was[i], is[i]))
		}
	}
	if len(was) != len(is) {
		t.Fatalf("it has %d screens now, and not %d", len(is), len(was))
	}
}

// differing are the lines of two screens that are not the same.
func differing(was, is seenScreen) string {
	out := fmt.Sprintf("  mark: %q, %q\n", was.mark, is.mark)
	before, after := strings.Split(was.text, "\n"), strings.Split(is.text, "\n")
	for i := range min(len(before), len(after)) {
		if before[i] != after[i] {
			out += "- " + before[i] + "\n+ " + after[i] + "\n"
		}
	}
	return out
}
