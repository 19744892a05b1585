package views

import (
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Every line on the screen is cut or filled to an exact width, measured in cells.

func width(s string) int { return ansi.StringWidth(s) }

func spaces(n int) string { return strings.Repeat(" ", max(0, n)) }

// fit cuts or fills a line to a width. A wide rune that does not fit gives way to a blank.
func fit(s string, w int) string {
	if w <= 0 {
		return ""
	}
	n := width(s)
	if n > w {
		s = ansi.Truncate(s, w, "…")
		n = width(s)
	}
	return s + spaces(w-n)
}

// ends puts one text at each end of a line; the left one gives way.
func ends(left, right string, w int) string {
	n := width(right)
	if n+8 > w {
		return fit(left, w)
	}
	return fit(left, w-n) + right
}

// middle cuts a text in its middle, so that both its ends stay.
func middle(s string, w int) string {
	n := width(s)
	if n <= w {
		return s
	}
	if w < 3 {
		return ansi.Truncate(s, w, "…")
	}
	tail := (w - 1) * 2 / 3
	return ansi.Cut(s, 0, w-1-tail) + "…" + ansi.Cut(s, n-tail, n)
}

// block makes lines of one width and number.
func block(lines []string, w, h int) []string {
	out := make([]string, max(0, h))
	for i := range out {
		if i < len(lines) {
			out[i] = fit(lines[i], w)
		} else {
			out[i] = spaces(w)
		}
	}
	return out
}

// beside joins blocks of the same height.
func beside(gap string, cols ...[]string) []string {
	out := append([]string(nil), cols[0]...)
	for _, c := range cols[1:] {
		for i := range out {
			out[i] += gap + c[i]
		}
	}
	return out
}

// abreast sets texts one after the other, on as few lines as they need.
func abreast(texts []string, gap string, w int) []string {
	var out []string
	for _, t := range texts {
		n := len(out)
		if n > 0 && width(out[n-1]+gap+t) <= w {
			out[n-1] += gap + t
		} else {
			out = append(out, t)
		}
	}
	return out
}

// inset moves lines to the right.
func inset(n int, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = spaces(n) + l
	}
	return out
}

// clean takes out of a foreign text what would move the cursor or change the screen: it becomes one line.
func clean(s string) string {
	if strings.IndexFunc(s, unsafe) < 0 {
		return s
	}
	s = ansi.Strip(s)
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case unsafe(r):
			return -1
		}
		return r
	}, s)
}

// unsafe is a rune that does not stand for itself in one or two cells.
func unsafe(r rune) bool { return r == unicode.ReplacementChar || r != ' ' && !unicode.IsPrint(r) }

// wrap breaks a plain text at its spaces, and a word that is too long inside.
func wrap(s string, w int) []string {
	if w <= 0 {
		return nil
	}
	return strings.Split(ansi.Wrap(s, w, ""), "\n")
}

// number writes a count with its thousands apart.
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// took writes a duration as briefly as it deserves.
func took(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < 2*time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	}
	return strconv.Itoa(int(d.Minutes())) + " min"
}
