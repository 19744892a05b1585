package report

import (
	"regexp"
	"strings"
)

// The lessons' prose is Markdown. This is the little of it that they use: paragraphs, lists, fenced code, **strong**,
// *emphasis*, `code` and links.
var (
	strong   = regexp.MustCompile(`\*\*([^*]+)\*\*|__([^_]+)__`)
	emphasis = regexp.MustCompile(`\*([^*\s][^*]*)\*`)
	code     = regexp.MustCompile("`([^`]+)`")
	link     = regexp.MustCompile(`\[([^\]]+)\]\(([^)]+)\)`)
	item     = regexp.MustCompile(`^\s*(?:[-*+]|\d+\.)\s+`)
)

// prose renders Markdown as lines of at most width cells.
func (s style) prose(markdown string, width int) []string {
	var out []string
	for i, block := range blocks(markdown) {
		if i > 0 {
			out = append(out, "")
		}
		if fenced, ok := strings.CutPrefix(block, "```"); ok {
			_, body, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(fenced), "```"), "\n")
			for l := range strings.Lines(body) {
				out = append(out, "  "+strings.TrimRight(l, "\n"))
			}
			continue
		}
		for _, entry := range entries(block) {
			bullet := item.FindString(entry)
			hang := strings.Repeat(" ", len(bullet))
			for j, l := range wrap(s.inline(entry[len(bullet):]), width-len(bullet)) {
				if j == 0 {
					out = append(out, bullet+l)
				} else {
					out = append(out, hang+l)
				}
			}
		}
	}
	return out
}

// firstParagraph is the beginning of a text, for where there is no room for all of it.
func firstParagraph(markdown string) string {
	if b := blocks(markdown); len(b) > 0 {
		return b[0]
	}
	return ""
}

// inline takes the marks out of a line and puts colour in their place.
func (s style) inline(text string) string {
	text = link.ReplaceAllString(text, "$1 ($2)")
	text = code.ReplaceAllStringFunc(text, func(m string) string { return strings.Trim(m, "`") })
	text = strong.ReplaceAllStringFunc(text, func(m string) string { return s.ink(bold, strings.Trim(m, "*_")) })
	text = emphasis.ReplaceAllString(text, "$1")
	return s.say("", text)
}

// blocks cuts a text at its empty lines; fenced code stays whole.
func blocks(markdown string) []string {
	var out, block []string
	fenced := false
	end := func() {
		if len(block) > 0 {
			out, block = append(out, strings.Join(block, "\n")), nil
		}
	}
	for l := range strings.Lines(markdown) {
		l = strings.TrimRight(l, " \t\r\n")
		if strings.HasPrefix(l, "```") {
			if !fenced {
				end()
			}
			fenced = !fenced
		}
		if l == "" && !fenced {
			end()
			continue
		}
		block = append(block, l)
	}
	end()
	return out
}

// entries joins the lines of a block to paragraphs, one for each item of a list.
func entries(block string) []string {
	var out []string
	for l := range strings.Lines(block) {
		l = strings.TrimRight(l, "\n")
		if len(out) == 0 || item.MatchString(l) {
			out = append(out, l)
		} else {
			out[len(out)-1] += " " + strings.TrimSpace(l)
		}
	}
	return out
}
