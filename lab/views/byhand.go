package views

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/lesson"
)

// byHand shows the kubectl commands of a step. A command is never cut: it is broken as a shell would join it again, and
// what cannot be broken so goes on below a sign.
type byHand struct {
	step *lab.Step
	down int
	said string // what the last key did
	path string // of the file that it wrote
}

// environment makes the learner's kubectl speak to this cluster.
func environment(st *lab.State) []string {
	word := cluster.ShellWord(st.Kubeconfig)
	out := []string{"export KUBECONFIG=" + word}
	if home, err := os.UserHomeDir(); err == nil && word == st.Kubeconfig && strings.HasPrefix(st.Kubeconfig, home+"/") {
		out[0] = "export KUBECONFIG=$HOME" + strings.TrimPrefix(st.Kubeconfig, home)
	}
	if st.HandsUnseen {
		out = append(out, "# This cluster does not show the lab what kubectl asks. Do the step, then press enter in the lab: what you did stands,",
			"# and the lab asks for itself what only an answer can show.")
	}
	if st.KubectlFlags != "" {
		out = append(out, `alias kubectl="kubectl `+st.KubectlFlags+`"`)
	}
	return out
}

// script is what a learner runs to do a step by hand.
func script(st *lab.State, step *lab.Step) []string {
	out := environment(st)
	for _, a := range step.Actions {
		out = append(out, commands(a)...)
	}
	return out
}

// commands are what does an action in a shell: a comment where only the lab can do it, since it is about the webhook.
func commands(a lab.Action) []string {
	if len(a.Kubectl) > 0 {
		return a.Kubectl
	}
	out := []string{"# in the lab, by f or by enter: " + a.ID}
	for _, c := range a.Change {
		out = append(out, "#   "+strings.TrimSpace(clean(c)))
	}
	return out
}

// onlyInLab says whether a step has an action that no command can do.
func onlyInLab(step *lab.Step) bool {
	return slices.ContainsFunc(step.Actions, func(a lab.Action) bool { return len(a.Kubectl) == 0 })
}

// scriptFile is the same as a program for a shell. It ends at the first command that fails, but for a refusal that the
// step is to show: it says so, and goes on.
func scriptFile(st *lab.State, step *lab.Step) string {
	lines := append([]string{"#!/bin/sh", "set -e"}, environment(st)...)
	for _, a := range step.Actions {
		all := commands(a)
		if n := len(a.Kubectl); n > 0 && refusalExpected(step, a.ID) {
			lines = append(lines, all[:n-1]...)
			all = []string{"if", all[n-1], `then echo "accepted, and was to be refused"`, `else echo "refused, as intended"`, "fi"}
		}
		lines = append(lines, all...)
	}
	return strings.Join(lines, "\n") + "\n"
}

func (d *byHand) press(m *program, k tea.KeyPressMsg) (bool, tea.Cmd) {
	switch {
	case key.Matches(k, m.keys.Down):
		d.down++
	case key.Matches(k, m.keys.Up):
		d.down = max(0, d.down-1)
	case key.Matches(k, m.keys.PageDown):
		d.down += 8
	case key.Matches(k, m.keys.PageUp):
		d.down = max(0, d.down-8)
	case key.Matches(k, m.keys.Copy):
		d.said, d.path = "copied, where the terminal allows it", ""
		return false, tea.SetClipboard(strings.Join(script(m.state, d.step), "\n") + "\n")
	case key.Matches(k, m.keys.File):
		return false, d.save(m.state)
	case key.Matches(k, m.keys.Escape), key.Matches(k, m.keys.ByHand), key.Matches(k, m.keys.Quit), key.Matches(k, m.keys.Apply):
		return true, nil
	}
	return false, nil
}

// savedMsg says where something was written.
type savedMsg struct {
	what, path string
	err        error
}

// save writes the commands beside the kubeconfig, where nobody else can read them.
func (d *byHand) save(st *lab.State) tea.Cmd {
	text := scriptFile(st, d.step)
	path := filepath.Join(filepath.Dir(st.Kubeconfig), fmt.Sprintf("step-%d-%s.sh", d.step.Index+1, d.step.ID))
	return func() tea.Msg {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			return savedMsg{what: "the commands", err: fmt.Errorf("write the commands of %s: %w", d.step.ID, err)}
		}
		return savedMsg{what: "the commands", path: path}
	}
}

func (d *byHand) draw(m *program, w, h int) []string {
	p := m.pen
	w = min(w-4, 108)
	in := w - 6
	var code []string
	for _, c := range script(m.state, d.step) {
		for _, l := range breakCommand(c, in-4) {
			code = append(code, goOnBelow(clean(l), in-4)...)
		}
	}
	head := append([]string{""}, p.flow(p.quietly(), "The same step with your own kubectl, in another terminal:", in, "", "")...)
	tail := d.waiting(m, in)
	room := max(2, h-2-len(head)-len(tail)-3)
	lines := append(head, "")
	lines = append(lines, d.codeBlock(p, code, in, room)...)
	lines = append(lines, tail...)
	return p.dialogBox(" "+p.bold.of("By hand")+p.noise.of(fmt.Sprintf(" step %d ", d.step.Index+1)), d.scrollSaid(p, code, room), lines, w)
}

// codeBlock is the window on the commands.
func (d *byHand) codeBlock(p *pen, code []string, in, room int) []string {
	d.down = min(d.down, max(0, len(code)-room))
	out := []string{p.raise.under(spaces(in))}
	for _, l := range code[d.down:min(len(code), d.down+room)] {
		out = append(out, p.raise.under("  "+fit(p.command(l), in-4)+"  "))
	}
	return append(out, p.raise.under(spaces(in)))
}

func (d *byHand) scrollSaid(p *pen, code []string, room int) string {
	if more := len(code) - room - d.down; more > 0 {
		return p.bold.of("j") + p.noise.of(fmt.Sprintf(" ↓ %d", more))
	}
	return ""
}

// goesOn stands before a part of a line that has no room in the line above. It is not in what is copied or written.
const goesOn = "↳ "

// goOnBelow breaks a line for the eye: at its spaces where it can be, the rest set in below it.
func goOnBelow(l string, w int) []string {
	if width(l) <= w {
		return []string{l}
	}
	pad := min(width(l)-width(strings.TrimLeft(l, " "))+2, w/4)
	room := w - pad - width(goesOn)
	out := []string{ansi.Cut(l, 0, breakAt(l, w))}
	for rest := l[len(out[0]):]; rest != ""; {
		part := ansi.Cut(rest, 0, breakAt(rest, room))
		out, rest = append(out, spaces(pad)+goesOn+part), rest[len(part):]
	}
	return out
}

// breakAt is how many cells of a line stand in one of a width: up to a space in its second half, if there is one.
func breakAt(l string, w int) int {
	if width(l) <= w {
		return width(l)
	}
	part := ansi.Cut(l, 0, w)
	if at := strings.LastIndexByte(part, ' '); at > len(part)/2 {
		return width(part[:at+1])
	}
	return max(1, width(part))
}

// command makes the words of a command stand out that say what it does.
func (p *pen) command(l string) string {
	if pad, rest, ok := strings.Cut(l, goesOn); ok && strings.TrimSpace(pad) == "" {
		return pad + p.noise.of(goesOn) + p.fg.of(rest)
	}
	first, rest, _ := strings.Cut(l, " ")
	if first == "#" {
		return p.dim.of(l)
	}
	if first != "kubectl" && first != "export" {
		return p.fg.of(l)
	}
	second, more, _ := strings.Cut(rest, " ")
	if first == "export" {
		return p.bold.of(first) + p.fg.of(" "+rest)
	}
	return p.bold.of(first+" "+second) + p.fg.of(" "+more)
}

// waiting says what the lab waits for while the learner works elsewhere.
func (d *byHand) waiting(m *program, in int) []string {
	p := m.pen
	out := []string{""}
	step := d.step
	if d.step.Index < len(m.state.Steps) { // the step as it is now: it may be done meanwhile
		step = m.state.Steps[d.step.Index]
	}
	if step.Index == m.state.Current { // what went wrong comes before what is waited for
		for _, h := range step.Hints {
			out = append(out, p.flow(p.clearly(), h, in, p.warnBold.of("▲ "), "  ")...)
		}
	}
	switch open := awaited(step); {
	case step.Phase == lab.Applied && step.Result == lesson.Passed:
		out = append(out, p.okBold.of("✓ ")+p.fg.of("The step is done. ")+p.bold.of("esc")+p.fg.of(" shows what happened."))
	case step.Index != m.state.Current:
		out = append(out, p.dim.of("This is an earlier step."))
	case step.Index == len(m.state.Steps)-1:
		out = append(out, p.flow(p.quietly(), "The last step does not complete by itself: back on the screen, **enter** does it.", in, "", "")...)
	case onlyInLab(step):
		out = append(out, p.flow(p.quietly(), "What stands behind # is the webhook's, and the lab's to do: **f** switches a fault, **enter** does the whole step.", in, "", "")...)
	default:
		if len(open) > 0 {
			out = append(out, p.flow(p.clearly(), open[0], in, p.warn.of("○ ")+p.dim.of("waiting for: "), "  ")...)
		}
		out = append(out, p.flow(p.quietly(), "The step completes by itself as soon as the cluster shows it.", in, "  ", "  ")...)
	}
	keys := p.next("c copy") + "   " + p.bold.of("o") + p.dim.of(" all in a file") + "   " + p.bold.of("esc") + p.dim.of(" back")
	out = append(out, "", fit(keys, in))
	if d.said != "" {
		out = append(out, "")
		out = append(out, p.flow(p.clearly(), d.said, in, p.ok.of("✓ "), "  ")...)
	}
	for _, l := range wrap(clean(d.path), in-2) { // whole, for it is to be typed elsewhere
		out = append(out, "  "+p.bold.of(l))
	}
	return append(out, "")
}

// awaited are the checks that finish a step and do not hold yet.
func awaited(step *lab.Step) []string {
	var out []string
	for _, c := range step.Checks {
		done := step.Lesson == nil || slices.ContainsFunc(step.Lesson.Checks, func(l lesson.Check) bool {
			return l.ID == c.ID && l.Kind == lesson.Done
		})
		if done && c.Result != lesson.Passed && c.Title != "" {
			out = append(out, c.Title)
		}
	}
	return out
}

// breakCommand breaks a command into lines of a width, so that a shell reads the same: at spaces between words with a
// backslash, JSON at its commas, another long word by a backslash inside it. The lines of a here-document stay.
func breakCommand(command string, w int) []string {
	lines := strings.Split(strings.TrimRight(command, "\n"), "\n")
	if len(lines) > 1 {
		return lines // it has lines of its own: a here-document, or quoted text
	}
	var out []string
	line := ""
	for i, word := range shellWords(lines[0]) {
		if width(word) > w-4 {
			if broken := breakJSON(word, w); broken != nil {
				line += " " + broken[0]
				out = append(out, line)
				out = append(out, broken[1:len(broken)-1]...)
				line = broken[len(broken)-1]
				continue
			}
		}
		lead := " "
		if i == 0 || strings.TrimSpace(line) == "" {
			lead = ""
		}
		if strings.TrimSpace(line) != "" && width(line+lead+word) > w-2 && width(word) <= w-4 {
			out = append(out, line+` \`)
			line, lead = "  ", ""
		}
		line += lead
		for width(line+word) > w-2 {
			cut, rest, ok := splitWord(word, w-2-width(line))
			if !ok {
				break
			}
			out = append(out, line+cut+`\`)
			line, word = "", rest
		}
		line += word
	}
	return append(out, line)
}

// breakJSON puts the elements of a quoted JSON text on lines of their own; nil where the word is none. A line break
// between them is blank to JSON.
func breakJSON(word string, w int) []string {
	text, ok := strings.CutPrefix(word, "'")
	text, also := strings.CutSuffix(text, "'")
	if !ok || !also || strings.Contains(text, "'") || !json.Valid([]byte(text)) {
		return nil
	}
	var out []string
	line := "'"
	for i, a := range jsonAtoms(text) {
		if i > 0 && (a.outer || width(line+a.text) > w) {
			out = append(out, line)
			line = ""
		}
		line += a.text
	}
	return append(out, line+"'")
}

// jsonAtom is a piece of JSON before which a line may be broken; before an outer one it always is.
type jsonAtom struct {
	text  string
	outer bool
}

func jsonAtoms(text string) []jsonAtom {
	var out []jsonAtom
	from, depth := 0, 0
	inString, escaped, outer := false, false, false
	for i, r := range text {
		switch {
		case escaped:
			escaped = false
		case inString && r == '\\':
			escaped = true
		case r == '"':
			inString = !inString
		case inString:
		case r == '}' || r == ']':
			depth--
		case r == '{' || r == '[' || r == ',':
			if r != ',' {
				depth++
			}
			out = append(out, jsonAtom{text[from : i+1], outer})
			from, outer = i+1, depth == 1
		}
	}
	return append(out, jsonAtom{text[from:], outer})
}

// splitWord cuts a word without quotes where a backslash joins it again: behind a slash if it can be.
func splitWord(word string, room int) (cut, rest string, ok bool) {
	if room < 8 || width(word) <= room || strings.ContainsAny(word, "'\"\\`") {
		return "", "", false
	}
	at := len(ansi.Cut(word, 0, room-1))
	if i := strings.LastIndexAny(word[:at], "/,"); i > at/2 {
		at = i + 1
	}
	return word[:at], word[at:], true
}

// shellWords splits at the spaces that are outside of quotes.
func shellWords(s string) []string {
	var out []string
	var word strings.Builder
	var quote rune
	escaped := false
	for _, r := range s {
		switch {
		case escaped:
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote == 0 && r == ' ':
			if word.Len() > 0 {
				out = append(out, word.String())
				word.Reset()
			}
			continue
		}
		word.WriteRune(r)
	}
	if word.Len() > 0 {
		out = append(out, word.String())
	}
	return out
}
