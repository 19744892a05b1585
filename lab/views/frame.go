package views

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// frame is the border of a box. One at a time is heavy: where the keys go.
type frame struct {
	line       style
	title      string // styled, at the left of the upper edge
	note, foot string // at the right of the upper and of the lower edge
	heavy      bool
	sides      []style // of the sides, line by line, where they differ from line
}

// divider is the first byte of a line that divides a box and carries a name.
const divider = "\x00"

var (
	thin  = [8]string{"╭", "╮", "╰", "╯", "─", "│", "├", "┤"}
	heavy = [8]string{"┏", "┓", "┗", "┛", "━", "┃", "┠", "┨"}
)

// box draws lines in a frame of exactly w by h cells. The width of the edge is what the texts leave.
func box(f frame, lines []string, w, h int) []string {
	if h < 2 || w < 4 {
		return block(lines, w, h)
	}
	g := thin
	if f.heavy {
		g = heavy
	}
	out := []string{f.edge(g[0], f.title, f.note, g[4], g[1], w)}
	for i := range h - 2 {
		s, c := "", f.line
		if len(f.sides) > 0 {
			c = f.sides[min(i, len(f.sides)-1)]
		}
		if i < len(lines) {
			s = lines[i]
		}
		if name, ok := strings.CutPrefix(s, divider); ok {
			fill := strings.Repeat("─", max(0, w-3-width(name)))
			out = append(out, c.of(g[6]+"─")+name+c.of(fill+g[7]))
			continue
		}
		out = append(out, c.of(g[5])+fit(s, w-2)+c.of(g[5]))
	}
	if n := len(f.sides); n > 0 {
		f.line = f.sides[n-1]
	}
	return append(out, f.edge(g[2], "", f.foot, g[4], g[3], w))
}

// edge is the upper or the lower line of a box: corner, a text at the left, one at the right, corner.
func (f frame) edge(from, left, right, bar, to string, w int) string {
	left = ansi.Truncate(left, w-4, "…")
	room := w - 3 - width(left)
	if right != "" {
		right = " " + ansi.Truncate(right, max(0, room-3), "…") + " "
		if room < 8 {
			right = ""
		}
	}
	fill := strings.Repeat(bar, max(0, room-1-width(right)))
	return f.line.of(from+bar) + left + f.line.of(fill) + right + f.line.of(bar+to)
}

// over lays a box in the middle of a screen whose own colours are taken back.
func over(back, front []string, behind style) []string {
	if len(front) == 0 {
		return back
	}
	w, fw := width(back[0]), width(front[0])
	x, y := max(0, (w-fw)/2), max(0, (len(back)-len(front))/2)
	out := make([]string, len(back))
	for i, l := range back {
		l = ansi.Strip(l)
		if j := i - y; j >= 0 && j < len(front) {
			left, right := fit(ansi.Cut(l, 0, x), x), ansi.Cut(l, x+fw, w)
			out[i] = behind.of(left) + front[j] + behind.of(right+spaces(w-x-fw-width(right)))
		} else {
			out[i] = behind.of(l)
		}
	}
	return out
}
