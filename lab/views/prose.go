package views

import (
	"regexp"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// tongue is how prose is spoken: the style of plain words and of words that stand out, and of the names of versions.
type tongue struct {
	plain, strong style
	hue           func(string) style
}

func (p *pen) quietly() tongue { return tongue{p.dim, p.fg, p.hue} }
func (p *pen) clearly() tongue { return tongue{p.fg, p.bold, p.hue} }
func (p *pen) loudly() tongue  { return tongue{p.bold, p.bold, p.hueBold} }

// prose renders short Markdown: paragraphs, lists, fenced code, `code`, *emphasis* and **weight**.
func (p *pen) prose(t tongue, text string, w int) []string {
	var out []string
	var paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			out = append(out, p.flow(t, strings.Join(paragraph, " "), w, "", "")...)
			paragraph = nil
		}
	}
	fenced, listed := false, false
	for _, l := range strings.Split(strings.TrimSpace(text), "\n") {
		trimmed := strings.TrimSpace(l)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			end()
			fenced = !fenced
		case fenced:
			out = append(out, "  "+p.say(t.strong, clean(l)))
		case trimmed == "":
			end()
			if len(out) > 0 && out[len(out)-1] != "" {
				out = append(out, "")
			}
			listed = false
		default:
			mark, rest, item := listItem(trimmed)
			switch {
			case item:
				end()
				out = append(out, p.flow(t, rest, w, t.plain.of(mark+" "), spaces(len([]rune(mark))+1))...)
				listed = true
			case listed && len(out) > 0 && strings.HasPrefix(l, " "): // an item that goes on
				out = append(out, p.flow(t, trimmed, w, "  ", "  ")...)
			default:
				paragraph = append(paragraph, trimmed)
			}
		}
	}
	end()
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

var numbered = regexp.MustCompile(`^(\d+\.) +(.*)$`)

func listItem(l string) (mark, rest string, ok bool) {
	if rest, ok := strings.CutPrefix(l, "- "); ok {
		return "·", rest, true
	}
	if rest, ok := strings.CutPrefix(l, "* "); ok {
		return "·", rest, true
	}
	if m := numbered.FindStringSubmatch(l); m != nil {
		return m[1], m[2], true
	}
	return "", "", false
}

// spans are the inline marks of Markdown: code, weight, emphasis.
var spans = regexp.MustCompile("`([^`]+)`|\\*\\*([^*]+)\\*\\*|\\B\\*([^*\\s][^*]*)\\*\\B|\\b_([^_]+)_\\b")

// piece is a part of a word in one style; glued to the piece before it where no space was between.
type piece struct {
	text   string
	strong bool
	glued  bool
}

func pieces(text string) []piece {
	var out []piece
	glued := false
	add := func(s string, strong bool) {
		for i, word := range strings.Split(s, " ") {
			if i > 0 {
				glued = false
			}
			if word != "" {
				out = append(out, piece{word, strong, glued})
				glued = true
			}
		}
	}
	at := 0
	for _, m := range spans.FindAllStringSubmatchIndex(text, -1) {
		add(text[at:m[0]], false)
		for g := 2; g < len(m); g += 2 {
			if m[g] >= 0 {
				add(text[m[g]:m[g+1]], true)
			}
		}
		at = m[1]
	}
	add(text[at:], false)
	return out
}

// flow wraps one paragraph; first stands before its first line, rest before the others.
func (p *pen) flow(t tongue, text string, w int, first, rest string) []string {
	room := max(4, w-width(rest))
	var out []string
	var line strings.Builder
	used := 0
	flush := func() {
		lead := rest
		if len(out) == 0 {
			lead = first
		}
		out = append(out, lead+line.String())
		line.Reset()
		used = 0
	}
	all := pieces(clean(text))
	for i := 0; i < len(all); {
		j, n := i+1, width(all[i].text)
		for j < len(all) && all[j].glued { // a word is all its pieces
			n += width(all[j].text)
			j++
		}
		if used > 0 && used+1+n > room {
			flush()
		}
		if used > 0 {
			line.WriteString(t.plain.of(" "))
			used++
		}
		for _, x := range all[i:j] {
			for _, part := range strings.Split(ansi.Hardwrap(x.text, room, true), "\n") {
				if m := width(part); used+m > room {
					flush()
				}
				s := t.plain
				if x.strong {
					s = t.strong
				}
				line.WriteString(p.spell(s, t.hue, part))
				used += width(part)
			}
		}
		i = j
	}
	if used > 0 || len(out) == 0 {
		flush()
	}
	return out
}

// unmarked is prose without its marks, for output that has no styles.
func unmarked(text string) string {
	var b strings.Builder
	at := 0
	for _, m := range spans.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(text[at:m[0]])
		for g := 2; g < len(m); g += 2 {
			if m[g] >= 0 {
				b.WriteString(text[m[g]:m[g+1]])
			}
		}
		at = m[1]
	}
	b.WriteString(text[at:])
	return b.String()
}
