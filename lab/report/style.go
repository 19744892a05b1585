package report

import (
	"regexp"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// style writes text with or without colour, in a width. Its sixteen colours are the terminal's own, so that they read
// on a light and on a dark background; every colour has a sign or a name beside it that says the same.
type style struct {
	width    int
	colour   bool
	versions []string       // in the order of their age: the place of a version gives it its colour
	named    *regexp.Regexp // finds the versions in a text
}

// Select Graphic Rendition codes.
const (
	bold   = "1"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// Colours and textures of versions, by their place in the track.
var (
	hues     = []string{"35", "36", "34"}
	textures = []string{"▒", "█", "▓"}
)

func newStyle(width int, colour bool, versions []string) style {
	s := style{width: width, colour: colour, versions: versions}
	if len(versions) > 0 {
		quoted := make([]string, len(versions))
		for i, v := range versions {
			quoted[i] = regexp.QuoteMeta(v)
		}
		s.named = regexp.MustCompile(`\b(?:` + strings.Join(quoted, "|") + `)\b`)
	}
	return s
}

func (s style) ink(code, text string) string {
	if !s.colour || code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[m"
}

func (s style) place(version string) int { return slices.Index(s.versions, version) }

// version writes the name of a version in its colour.
func (s style) version(name string) string {
	if i := s.place(name); i >= 0 {
		return s.ink(hues[i%len(hues)], name)
	}
	return name
}

// texture is what the bar of a version is made of.
func (s style) texture(version string) string {
	return textures[max(0, s.place(version))%len(textures)]
}

// say writes a text, and the names of versions in it in their colours.
func (s style) say(code, text string) string {
	if !s.colour || s.named == nil {
		return s.ink(code, text)
	}
	var b strings.Builder
	at := 0
	for _, m := range s.named.FindAllStringIndex(text, -1) {
		b.WriteString(s.ink(code, text[at:m[0]]))
		b.WriteString(s.version(text[m[0]:m[1]]))
		at = m[1]
	}
	b.WriteString(s.ink(code, text[at:]))
	return b.String()
}

// mark is the sign of a result, in its colour.
func (s style) mark(result string) string {
	switch result {
	case "passed", "pass", "complete":
		return s.ink(green, "✓")
	case "failed", "fail", "incomplete":
		return s.ink(red, "✗")
	case "warn":
		return s.ink(yellow, "▲")
	case "unknown":
		return s.ink(yellow, "?")
	}
	return s.ink(faint, "○") // skipped
}

// wrap breaks a text, which may carry colours, into lines of at most width cells. A word that is longer is broken; a flag
// is not torn off its hyphens.
func wrap(text string, width int) []string {
	const flag, whole = " --", " \u2011\u2011" // hyphens at which no line ends
	broken := ansi.Wrap(strings.ReplaceAll(text, flag, whole), max(width, 16), "")
	return strings.Split(strings.ReplaceAll(broken, "\u2011", "-"), "\n")
}

// fill pads a text, which may carry colours, to a width.
func fill(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// shorten cuts a path in its middle, so that the object's name at its end stays.
func shorten(path string, width int) string {
	r := []rune(path)
	if len(r) <= width || width < 8 {
		return path
	}
	head := width / 3
	return string(r[:head]) + "…" + string(r[len(r)-(width-head-1):])
}
