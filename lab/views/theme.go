package views

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

// Hue says something about the cluster, lightness says something about the learner. A hue always means a version or an
// outcome; where one is, what is chosen and which key is next is white, bold or raised.

// style is the escape sequence that begins a way of writing; empty writes as the terminal does.
type style string

const reset = "\x1b[m"

// of writes a text in a style.
func (s style) of(text string) string {
	if s == "" || text == "" {
		return text
	}
	return string(s) + text + reset
}

// under lays the background of a style below a line that has colours of its own.
func (s style) under(line string) string {
	if s == "" {
		return line
	}
	return string(s) + strings.ReplaceAll(line, reset, reset+string(s)) + reset
}

// theme is a style for every role of the palette.
type theme struct {
	fg, bold         style // values, checks; titles, the question, changed lines
	dim, noise, line style // explanations, keys of YAML; metadata, durations; rules, quiet frames
	raise            style // under the chosen line and under code to copy
	ok, okBold       style
	warn, warnBold   style
	bad, badBold     style
	primary          style // the product and the next key
	hues, huesBold   []style
	chips            []style // a version as a filled label
	added            style   // under a line that was added
	changed          style
	gone             style
}

// tone is a colour with its nearest of 256.
type tone struct {
	hex   string
	index string
}

type palette struct {
	fg, dim, noise, line, raise tone
	ok, warn, bad, ground       tone
	versions                    []tone
	added, changed, gone        tone
}

var dark = palette{
	fg: tone{"#DCE0E8", "254"}, dim: tone{"#98A1B0", "247"}, noise: tone{"#717B8E", "243"}, line: tone{"#3B4350", "238"},
	raise: tone{"#272D38", "236"}, ok: tone{"#8CCB7E", "114"}, warn: tone{"#E3B75F", "179"}, bad: tone{"#F2777A", "210"},
	ground: tone{"#14171C", "233"}, versions: []tone{{"#C79BF2", "177"}, {"#56C2E0", "74"}},
	added: tone{"#1C3425", ""}, changed: tone{"#372E19", ""}, gone: tone{"#3A2024", ""},
}

var light = palette{
	fg: tone{"#1F242B", "235"}, dim: tone{"#525B67", "240"}, noise: tone{"#737C88", "243"}, line: tone{"#C4CAD2", "251"},
	raise: tone{"#E6EAEF", "254"}, ok: tone{"#2B7A30", "28"}, warn: tone{"#8A5A00", "94"}, bad: tone{"#BE2630", "124"},
	ground: tone{"#FFFFFF", "231"}, versions: []tone{{"#7A3CC2", "91"}, {"#006F8E", "24"}},
	added: tone{"#DDF3DF", "194"}, changed: tone{"#FAEFD2", "230"}, gone: tone{"#FBE1E1", "224"},
}

// sgr makes a style of a foreground, a background (either may be empty) and attributes.
func sgr(fg, bg string, attrs ...ansi.Attr) style {
	s := ansi.NewStyle(attrs...)
	if fg != "" {
		s = s.ForegroundColor(lipgloss.Color(fg))
	}
	if bg != "" {
		s = s.BackgroundColor(lipgloss.Color(bg))
	}
	if len(s) == 0 {
		return ""
	}
	return style(s.String())
}

// theme makes the styles of a palette for a terminal of 24 bits or of 256 colours.
func (p palette) theme(full bool) theme {
	c := func(t tone) string {
		if full {
			return t.hex
		}
		return t.index
	}
	t := theme{
		fg: sgr(c(p.fg), ""), bold: sgr(c(p.fg), "", ansi.AttrBold), dim: sgr(c(p.dim), ""), noise: sgr(c(p.noise), ""),
		line: sgr(c(p.line), ""), raise: sgr("", c(p.raise)), primary: sgr(c(p.ground), c(p.fg), ansi.AttrBold),
		ok: sgr(c(p.ok), ""), okBold: sgr(c(p.ok), "", ansi.AttrBold),
		warn: sgr(c(p.warn), ""), warnBold: sgr(c(p.warn), "", ansi.AttrBold),
		bad: sgr(c(p.bad), ""), badBold: sgr(c(p.bad), "", ansi.AttrBold),
		added: sgr("", c(p.added)), changed: sgr("", c(p.changed)), gone: sgr("", c(p.gone)),
	}
	for _, v := range p.versions {
		t.hues = append(t.hues, sgr(c(v), ""))
		t.huesBold = append(t.huesBold, sgr(c(v), "", ansi.AttrBold))
		t.chips = append(t.chips, sgr(c(p.ground), c(v), ansi.AttrBold))
	}
	return t
}

// sixteen is for terminals with sixteen colours. Only where the background is known to be dark is white safe for dim.
func sixteen(knownDark bool) theme {
	dim := sgr("", "", ansi.AttrFaint)
	if knownDark {
		dim = sgr("7", "")
	}
	return theme{
		bold: sgr("", "", ansi.AttrBold), dim: dim, noise: sgr("8", ""), line: sgr("8", ""),
		primary: sgr("", "", ansi.AttrBold, ansi.AttrReverse),
		ok:      sgr("2", ""), okBold: sgr("2", "", ansi.AttrBold),
		warn: sgr("3", ""), warnBold: sgr("3", "", ansi.AttrBold),
		bad: sgr("1", ""), badBold: sgr("1", "", ansi.AttrBold),
		hues:     []style{sgr("5", ""), sgr("6", "")},
		huesBold: []style{sgr("5", "", ansi.AttrBold), sgr("6", "", ansi.AttrBold)},
		chips:    []style{sgr("0", "5", ansi.AttrBold), sgr("0", "6", ansi.AttrBold)},
	}
}

// colourless says everything by weight, signs and textures.
func colourless() theme {
	bold, faint, turned := sgr("", "", ansi.AttrBold), sgr("", "", ansi.AttrFaint), sgr("", "", ansi.AttrReverse)
	return theme{bold: bold, noise: faint, primary: turned, okBold: bold, warnBold: bold, badBold: bold,
		hues: []style{"", ""}, huesBold: []style{bold, bold}, chips: []style{turned, turned}}
}

// background is what is known of the terminal's background.
type background int

const (
	unknown background = iota
	darkGround
	lightGround
)

// ParseTheme checks the name of a theme: auto, dark, light, 16 or none.
func ParseTheme(name string) (string, error) {
	if name == "" {
		return "auto", nil
	}
	if !slices.Contains([]string{"auto", "dark", "light", "16", "none"}, name) {
		return "", fmt.Errorf("there is no theme %q: use auto, dark, light, 16 or none", name)
	}
	return name, nil
}

// themeFor chooses: the name decides where it says something, else the terminal does.
func themeFor(name string, profile colorprofile.Profile, bg background) theme {
	if profile == colorprofile.Ascii || profile == colorprofile.NoTTY {
		name = "none"
	}
	switch name {
	case "none":
		return colourless()
	case "16":
		return sixteen(bg == darkGround)
	case "dark":
		bg = darkGround
	case "light":
		bg = lightGround
	}
	switch {
	case profile == colorprofile.Unknown, profile >= colorprofile.ANSI256:
		full := profile != colorprofile.ANSI256
		if bg == lightGround {
			return light.theme(full)
		}
		return dark.theme(full)
	}
	return sixteen(bg == darkGround)
}

// pen writes in a theme, and knows the hue of every version: it comes from the version's place in the track.
type pen struct {
	theme
	versions []string
	names    *regexp.Regexp
}

func newPen(t theme, versions []string) *pen {
	p := &pen{theme: t, versions: versions}
	if len(versions) > 0 {
		quoted := make([]string, len(versions))
		for i, v := range versions {
			quoted[i] = regexp.QuoteMeta(v)
		}
		p.names = regexp.MustCompile(`\b(?:` + strings.Join(quoted, "|") + `)\b`)
	}
	return p
}

func (p *pen) place(version string) int { return slices.Index(p.versions, version) }

func (p *pen) pick(from []style, version string, other style) style {
	if i := p.place(version); i >= 0 && i < len(from) {
		return from[i]
	}
	return other
}

// hue is the colour of a version; one that the track does not know has none.
func (p *pen) hue(version string) style     { return p.pick(p.hues, version, p.dim) }
func (p *pen) hueBold(version string) style { return p.pick(p.huesBold, version, p.bold) }

// chip is a filled label.
func (p *pen) chip(version, text string) string {
	return p.pick(p.chips, version, p.primary).of(" " + text + " ")
}

func (p *pen) next(text string) string { return p.primary.of(" " + text + " ") }

// texture is what goes with the hue in a bar, so that it reads without colour as well; cell the same in a field.
func (p *pen) texture(version string) string {
	return texture([]string{"▒", "█"}, p.place(version), "░")
}
func (p *pen) cell(version string) string {
	return texture([]string{"□", "■"}, p.place(version), "▪")
}

func texture(of []string, place int, other string) string {
	if place >= 0 && place < len(of) {
		return of[place]
	}
	return other
}

// say writes a text in a style and, inside it, the names of versions in their hues.
func (p *pen) say(s style, text string) string  { return p.spell(s, p.hue, text) }
func (p *pen) loud(s style, text string) string { return p.spell(s, p.hueBold, text) }

func (p *pen) spell(s style, hue func(string) style, text string) string {
	if p.names == nil {
		return s.of(text)
	}
	found := p.names.FindAllStringIndex(text, -1)
	if found == nil {
		return s.of(text)
	}
	var b strings.Builder
	at := 0
	for _, f := range found {
		b.WriteString(s.of(text[at:f[0]]))
		b.WriteString(hue(text[f[0]:f[1]]).of(text[f[0]:f[1]]))
		at = f[1]
	}
	b.WriteString(s.of(text[at:]))
	return b.String()
}
