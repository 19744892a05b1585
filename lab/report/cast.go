package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Cast writes a recording of a terminal as an asciicast of version 3: a header, then an event a line, each with the time
// since the one before it (https://docs.asciinema.org/manual/asciicast/v3/). The first error ends it, and End tells it.
type Cast struct {
	w   io.Writer
	at  time.Duration // of the last event, as it was written
	err error
}

// castHeader is the first line.
type castHeader struct {
	Version int      `json:"version"`
	Term    castTerm `json:"term"`
	Command string   `json:"command,omitempty"`
	Title   string   `json:"title,omitempty"`
}

type castTerm struct {
	Cols  int       `json:"cols"`
	Rows  int       `json:"rows"`
	Type  string    `json:"type"`
	Theme castTheme `json:"theme"`
}

type castTheme struct {
	Foreground string `json:"fg"`
	Background string `json:"bg"`
	Palette    string `json:"palette"`
}

// darkTheme is the ground on which the terminal program's dark colours are read, and their likes for the sixteen.
var darkTheme = castTheme{Foreground: "#DCE0E8", Background: "#14171C",
	Palette: "#14171C:#F2777A:#8CCB7E:#E3B75F:#56C2E0:#C79BF2:#56C2E0:#98A1B0:#717B8E:#F2777A:#8CCB7E:#E3B75F:#56C2E0:#C79BF2:#56C2E0:#DCE0E8"}

// castPrecision is how finely times are written.
const castPrecision = time.Millisecond

// NewCast begins a recording of a terminal of a size. Nothing in it says when it was made, so that two of the same are alike.
func NewCast(w io.Writer, title, command string, cols, rows int) *Cast {
	c := &Cast{w: w}
	c.line(castHeader{Version: 3, Title: title, Command: command,
		Term: castTerm{Cols: cols, Rows: rows, Type: "xterm-256color", Theme: darkTheme}})
	return c
}

// Output is what was written to the terminal at a time since the beginning.
func (c *Cast) Output(at time.Duration, data string) { c.event(at, "o", data) }

// Mark names a place to which a viewer can go.
func (c *Cast) Mark(at time.Duration, label string) { c.event(at, "m", label) }

// Resize says that the terminal has another size from now on.
func (c *Cast) Resize(at time.Duration, cols, rows int) {
	c.event(at, "r", fmt.Sprintf("%dx%d", cols, rows))
}

// End is the last event: what was recorded has ended with an exit code.
func (c *Cast) End(at time.Duration, code int) error {
	c.event(at, "x", strconv.Itoa(code))
	if c.err != nil {
		return fmt.Errorf("write the recording: %w", c.err)
	}
	return nil
}

// event writes one. Times are rounded before they are subtracted, so that what is lost does not add up.
func (c *Cast) event(at time.Duration, code, data string) {
	at = max(at.Round(castPrecision), c.at)
	interval := json.Number(strconv.FormatFloat((at - c.at).Seconds(), 'f', 3, 64))
	c.at = at
	c.line([]any{interval, code, data})
}

func (c *Cast) line(v any) {
	if c.err != nil {
		return
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if c.err = e.Encode(v); c.err == nil {
		_, c.err = c.w.Write(b.Bytes())
	}
}
