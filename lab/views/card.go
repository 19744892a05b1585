package views

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
)

// question is the prediction, before and after.
func (s *screen) question(w int, airy bool) []string {
	done := s.step.Phase == lab.Applied
	out := s.pen.prose(s.loudly(), s.step.Question, w)
	if airy && !done {
		out = append(out, "")
	}
	for i, o := range s.step.Options {
		n := strconv.Itoa(i + 1)
		switch {
		case done && o.ID == s.step.Answer:
			out = append(out, s.flow(s.clearly(), o.Text, w, s.okBold.of("✓ ")+s.bold.of(n)+"  ", "     ")...)
		case done && o.ID == s.step.Given && s.step.Answer != "":
			out = append(out, s.flow(tongue{s.dim, s.dim, s.hue}, o.Text, w, s.warnBold.of("✗ ")+s.dim.of(n)+"  ", "     ")...)
		case done:
			out = append(out, s.flow(tongue{s.noise, s.noise, func(string) style { return s.noise }}, o.Text, w, "  "+s.noise.of(n)+"  ", "     ")...)
		case o.ID == s.step.Given:
			for _, l := range s.flow(s.clearly(), o.Text, w, s.bold.of("▸ "+n)+"  ", "     ") {
				out = append(out, s.raise.under(fit(l, w)))
			}
		default:
			out = append(out, s.flow(s.quietly(), o.Text, w, "  "+s.bold.of(n)+"  ", "     ")...)
		}
	}
	return out
}

func option(step *lab.Step, id string) (number int, text string) {
	for i, o := range step.Options {
		if o.ID == id {
			return i + 1, o.Text
		}
	}
	return 0, ""
}

// judgement says how the prediction compares to what the server did. In a play nobody has said it.
func judgement(step *lab.Step, played bool) string {
	given, _ := option(step, step.Given)
	answer, _ := option(step, step.Answer)
	switch {
	case answer == 0 && step.Result == lesson.Failed:
		return "not answered, for the step is not done"
	case answer == 0:
		return "the server did none of these"
	case given == 0:
		return fmt.Sprintf("it is %d", answer)
	}
	said := fmt.Sprintf("you said %d", given)
	if played {
		said = fmt.Sprintf("%d was tried", given)
	}
	if given == answer {
		return said + ", and so it is"
	}
	return fmt.Sprintf("%s, and it is %d", said, answer)
}

// judged is the judgement with its sign and the style of its frame.
func (s *screen) judged() (sign string, line style) {
	switch {
	case s.failed():
		return s.noise.of("○ "), s.line
	case s.step.Answer == "":
		return s.badBold.of("✗ "), s.bad
	case s.step.Given == "":
		return s.noise.of("○ "), s.dim
	case s.step.Right():
		return s.okBold.of("✓ "), s.ok
	}
	return s.warnBold.of("✗ "), s.warn
}

// card is what stands beside the prose on a wide screen: the question, then how it was answered; the field of cells
// while a rewrite goes on.
func (s *screen) card() []string {
	r := s.lay.card
	if r.empty() {
		return nil
	}
	if s.rewriting() {
		return s.fieldCard(r)
	}
	f, body := s.cardFrame(), s.cardBody(r.w-5)
	if len(body) < r.h-2 {
		body = append([]string{""}, body...)
	}
	if len(body) > r.h-2 {
		f.foot = s.noise.of("goes on · a higher window shows it all")
	}
	return box(f, inset(2, body), r.w, r.h)
}

func (s *screen) cardFrame() frame {
	done := s.step.Phase == lab.Applied
	switch {
	case done && s.step.Question == "" && s.failed():
		return frame{line: s.bad, title: " " + s.badBold.of("✗ ") + s.bold.of("not done") + " "}
	case done && s.step.Question == "":
		return frame{line: s.ok, title: " " + s.okBold.of("✓ ") + s.bold.of("done") + " "}
	case s.step.Question == "":
		return frame{line: s.fg, heavy: s.focus.kind == onProse, title: " " + s.bold.of("No question here") + " ", foot: s.offered("enter apply")}
	case done:
		sign, line := s.judged()
		return frame{line: line, title: " " + sign + s.bold.of(judgement(s.step, s.player != nil)) + " "}
	case s.step.Phase == lab.Running:
		return frame{line: s.dim, title: " " + s.bold.of("Your prediction") + " "}
	}
	return frame{line: s.fg, heavy: s.focus.kind == onProse, title: " " + s.bold.of("Your prediction") + " ",
		foot: s.offered(optionKeys(len(s.step.Options)) + " choose · enter apply")}
}

// offered are keys at the edge of the card; nobody presses them where the track plays itself.
func (s *screen) offered(keys string) string {
	if s.player != nil {
		return ""
	}
	return s.noise.of(keys)
}

func (s *screen) cardBody(w int) []string {
	var body []string
	switch {
	case s.step.Question != "":
		body = s.question(w, true)
	case s.step.Phase == lab.Applied:
		body = s.summed(w)
	default:
		body = append(s.flow(s.quietly(), "This step asks nothing. Look at what it does.", w, "", ""), s.changes(w, true)...)
	}
	if s.aside {
		body = append(body, s.reason(w)...)
	}
	return body
}

// reason is the explanation where it stands under the options.
func (s *screen) reason(w int) []string {
	return append([]string{""}, s.pen.prose(s.clearly(), s.step.Explanation, w)...)
}

func optionKeys(n int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = strconv.Itoa(i + 1)
	}
	return strings.Join(keys, " ")
}

// summed sums up a step that asked nothing.
func (s *screen) summed(w int) []string {
	passed := 0
	for _, c := range s.step.Checks {
		if c.Result == lesson.Passed {
			passed++
		}
	}
	own := 0
	for _, x := range s.step.Exchanges {
		if x.Actor == evidence.ByStep {
			own++
		}
	}
	row := func(k, v string) string { return fit(s.noise.of(fit(k, 10))+s.fg.of(v), w) }
	out := []string{
		row("requests", number(own)),
		row("checks", number(passed)+" of "+number(len(s.step.Checks))+" hold"),
	}
	if s.step.Took > 0 {
		out = append(out, row("took", took(s.step.Took)))
	}
	return out
}
