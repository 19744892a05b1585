package main

import (
	"flag"
	"fmt"
	"html"
	"image/color"
	"os"
	"strings"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"
)

var picture = flag.String("picture", "", "write the screen of TestThePictureIsOfARealScreen as SVG to this file")

// TestThePictureIsOfARealScreen plays up to the storage switch and draws what the terminal shows then. The README's picture
// is made by it:
//
//	go test ./cmd/crdlab -run Picture -picture ../../docs/screen.svg
func TestThePictureIsOfARealScreen(t *testing.T) {
	t.Parallel()
	const w, h = 160, 45
	x := openTerminal(t, w, h)
	x.begin()
	for i, step := range playedSteps[:4] {
		x.offers("enter apply")
		x.see(step.title, fmt.Sprintf("%d of 11", i+1))
		x.press(step.predict)
		x.see("▸ " + step.predict)
		x.press(enter)
		x.offers("enter go on")
		if i < 3 {
			x.press(enter)
		}
	}
	x.mu.Lock()
	svg := draw(x.emu.CellAt, w, h)
	x.mu.Unlock()
	for _, text := range []string{"foxtrot", "tier: ", "standard", "stored as"} {
		if !strings.Contains(svg, text) {
			t.Errorf("the picture lacks %q", text)
		}
	}
	if *picture != "" {
		if err := os.WriteFile(*picture, []byte(svg), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	x.press("q")
	x.leave(0)
}

// The size of a cell, in pixels, and the colours of a terminal that sets none.
const (
	cellW, cellH = 8.4, 16.4
	ground, ink  = "#14171C", "#DCE0E8"
)

// draw makes an SVG of a screen: a rectangle for every background, a text for every run of one style.
func draw(at func(x, y int) *uv.Cell, w, h int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14">`+"\n",
		float64(w)*cellW+20, float64(h)*cellH+20)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", ground)
	for y := range h {
		for x := 0; x < w; {
			from, style := x, at(x, y).Style
			text := ""
			for ; x < w && at(x, y).Style.Equal(&style); x++ {
				text += at(x, y).Content
			}
			run(&b, from, y, x-from, text, style)
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func run(b *strings.Builder, x, y, n int, text string, s uv.Style) {
	fg, bg := hex(s.Fg, ink), hex(s.Bg, "")
	if s.Attrs&uv.AttrReverse != 0 {
		fg, bg = ground, fg
	}
	left, top, width := 10+float64(x)*cellW, 10+float64(y)*cellH, float64(n)*cellW
	if bg != "" {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", left, top, width, cellH, bg)
	}
	if strings.TrimSpace(text) == "" {
		return
	}
	weight := ""
	if s.Attrs&uv.AttrBold != 0 {
		weight = ` font-weight="bold"`
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="%s"%s textLength="%.1f" xml:space="preserve">%s</text>`+"\n",
		left, top+cellH*0.76, fg, weight, width, html.EscapeString(text))
}

func hex(c color.Color, otherwise string) string {
	if c == nil {
		return otherwise
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02X%02X%02X", r>>8, g>>8, b>>8)
}
