package views

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"github.com/crdlab/crdlab/lab/report"
)

// recording brings the screens of a play into a cast: of each only what differs from the one before it. It is made from
// the screens, and not from what the terminal is sent, which is also asked questions that a viewer's would answer.
type recording struct {
	to    io.Writer
	track string
	now   func() time.Duration // since the beginning
	cast  *report.Cast         // nil until there is a first screen

	w, h     int
	last     []string
	cells    uv.ScreenBuffer
	out      bytes.Buffer
	renderer *uv.TerminalRenderer
}

// frame takes a screen, unless it is the one before it again.
func (r *recording) frame(lines []string, w, h int) {
	if len(lines) == 0 || slices.Equal(lines, r.last) {
		return
	}
	switch {
	case r.cast == nil:
		r.cast = report.NewCast(r.to, "crdlab "+r.track, "crdlab play "+r.track, w, h)
		r.clear(w, h)
		r.out.WriteString(ansi.SetModeAltScreenSaveCursor + ansi.ResetModeTextCursorEnable)
	case w != r.w || h != r.h:
		r.cast.Resize(r.now(), w, h)
		r.clear(w, h)
	}
	r.last = lines
	r.cells.Clear()
	uv.NewStyledString(strings.Join(lines, "\n")).Draw(r.cells, r.cells.Bounds())
	r.renderer.Render(r.cells.RenderBuffer)
	_ = r.renderer.Flush() // into memory
	r.cast.Output(r.now(), r.out.String())
	r.out.Reset()
}

// clear begins with an empty screen of a size.
func (r *recording) clear(w, h int) {
	r.w, r.h = w, h
	r.cells = uv.NewScreenBuffer(w, h)
	r.renderer = uv.NewTerminalRenderer(&r.out, []string{"TERM=xterm-256color"})
	r.renderer.SetColorProfile(colorprofile.TrueColor) // the screen has its colours already
	r.renderer.SetFullscreen(true)
	r.renderer.SetRelativeCursor(false)
	r.renderer.SetTabStops(-1)
	r.renderer.Erase()
}

// mark names the screen that was taken last.
func (r *recording) mark(label string) {
	if r.cast != nil {
		r.cast.Mark(r.now(), label)
	}
}

// end ends the cast, and says whether all of it could be written.
func (r *recording) end() error {
	if r.cast == nil {
		return nil
	}
	r.cast.Output(r.now(), ansi.SetModeTextCursorEnable+ansi.ResetModeAltScreenSaveCursor)
	return r.cast.End(r.now(), report.ExitGood)
}
