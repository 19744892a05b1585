package labtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// Viewer plays an asciicast of version 3 in an emulated terminal, as anybody would see it.
type Viewer struct {
	t      testing.TB
	events [][]byte

	Screen *vt.Emulator
	At     time.Duration // since the beginning
	Code   string        // the exit code, once it has ended
}

// View reads the header of a cast.
func View(t testing.TB, cast []byte) *Viewer {
	t.Helper()
	lines := bytes.Split(bytes.TrimSuffix(cast, []byte("\n")), []byte("\n"))
	var header struct {
		Version int
		Term    struct{ Cols, Rows int }
	}
	if err := json.Unmarshal(lines[0], &header); err != nil || header.Version != 3 || header.Term.Cols <= 0 || header.Term.Rows <= 0 {
		t.Fatalf("the header of the cast is %s, %v", lines[0], err)
	}
	v := &Viewer{t: t, events: lines[1:], Screen: vt.NewEmulator(header.Term.Cols, header.Term.Rows)}
	t.Cleanup(func() { v.Screen.Close() })
	return v
}

// Event plays the next event and returns its code and its data; both are empty at the end.
func (v *Viewer) Event() (code, data string) {
	v.t.Helper()
	if len(v.events) == 0 {
		return "", ""
	}
	var interval float64
	if err := json.Unmarshal(v.events[0], &[]any{&interval, &code, &data}); err != nil || interval < 0 {
		v.t.Fatalf("the event %s: %v", v.events[0], err)
	}
	v.events = v.events[1:]
	v.At += time.Duration(interval * float64(time.Second))
	switch code {
	case "o":
		if _, err := v.Screen.WriteString(data); err != nil {
			v.t.Fatal(err)
		}
	case "r":
		var w, h int
		if _, err := fmt.Sscanf(data, "%dx%d", &w, &h); err != nil {
			v.t.Fatalf("the size %q: %v", data, err)
		}
		v.Screen.Resize(w, h)
	case "m":
	case "x":
		v.Code = data
	default:
		v.t.Fatalf("an event of kind %q", code)
	}
	return code, data
}

// Mark plays up to the next mark and returns its label; the empty one at the end.
func (v *Viewer) Mark() string {
	v.t.Helper()
	for {
		if code, data := v.Event(); code == "m" || code == "" {
			return data
		}
	}
}

// Text is what stands on the screen, without colours.
func (v *Viewer) Text() string { return ansi.Strip(v.Screen.Render()) }
