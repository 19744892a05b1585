package views

import (
	"fmt"
	"slices"

	"github.com/charmbracelet/x/ansi"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/lesson"
)

func (s *screen) failed() bool {
	return s.step.Err != nil || s.step.Phase == lab.Applied && s.step.Result == lesson.Failed
}

// proseBand is the prose, scrolled; where it goes on it says so. The question below it stays in sight.
func (s *screen) proseBand() []string {
	r := s.lay.prose
	body, below, h := s.proseParts()
	from := min(s.proseScroll, max(0, len(body)-h))
	body = body[from:]
	if more := len(body) - h; more > 0 {
		key := s.bold.of("j")
		if s.focus.kind != onProse && s.paneOverflow() > 0 {
			key = s.bold.of("tab j")
		}
		hint := key + s.noise.of(fmt.Sprintf(" ↓ %d", more))
		if n := len(s.step.Change); s.step.Phase == lab.Ready && n > 0 && more > n { // all of them are out of sight
			said := s.noise.of("enter applies " + number(n) + plural(n, " change", " changes"))
			if width(body[h-1])+width(said)+width(hint)+4 <= r.w {
				hint = said + "  " + hint
			}
		}
		body = slices.Clone(body[:h])
		body[h-1] = ends(body[h-1], "  "+hint, r.w)
	}
	return append(slices.Clip(body), below...)
}

// proseParts are what scrolls, what stays below it, and how many lines the first has.
func (s *screen) proseParts() (body, below []string, h int) {
	body, h = s.prose(), s.lay.prose.h
	if !s.lay.card.empty() || s.step.Phase != lab.Ready || s.step.Err != nil {
		return body, nil, h
	}
	w := s.measure()
	if s.step.Question != "" {
		below = s.question(w, false)
	}
	body = append(body, s.changes(w, true)...)
	if len(below) > 0 && len(body)+len(below) < h {
		below = append([]string{""}, below...)
	}
	if room := h - len(below); room >= 2 {
		return body, below, room
	}
	return append(body, below...), nil, h
}

func (s *screen) proseOverflow() int {
	body, _, h := s.proseParts()
	return max(0, len(body)-h)
}

// paneOverflow is how many lines of the panes are out of sight.
func (s *screen) paneOverflow() int {
	if len(s.lay.panes) == 0 {
		return 0
	}
	h := s.lay.panes[0].h - 2
	return max(0, s.scene.visible(h, s.lay.zoomOn == zoomPane).lines-h)
}

// prose is all there is to say about the step in its phase.
func (s *screen) prose() []string {
	w := s.measure()
	return append(s.told(w), s.past(w)...)
}

// measure is how wide prose is set.
func (s *screen) measure() int { return min(s.lay.prose.w-2, 92) }

// told is what is said of the step, but for what was said before it.
func (s *screen) told(w int) []string {
	out := []string{s.title(w)}
	if s.lay.form != formTabs {
		out = append(out, "")
	}
	out = append(out, s.alerts(w)...)
	if s.state.Doing != "" && !s.lookingBack() && !s.rewriting() {
		out = append(out, s.flow(s.clearly(), s.state.Doing+" …", w, s.bold.of("◐ "), "  ")...)
		if s.lay.form != formTabs {
			out = append(out, "")
		}
	}
	switch {
	case s.step.Phase == lab.Applied || s.step.Err != nil:
		return append(out, s.outcome(w)...)
	case s.step.Phase == lab.Running:
		return append(out, s.running(w)...)
	}
	return append(out, s.before(w)...)
}

func (s *screen) title(w int) string {
	note := ""
	if s.step.ByHand {
		note = s.noise.of("done by hand")
	}
	return ends(s.loud(s.bold, clean(s.step.Title)), note, w)
}

// alerts are what is amiss, whatever the phase: the cluster out of sight, steps undone.
func (s *screen) alerts(w int) []string {
	var out []string
	if t := s.state.Trouble; t != nil && s.troubleAtLength() {
		out = append(out, s.flow(s.clearly(), "The cluster cannot be followed at the moment: "+t.Error(), w, s.warnBold.of("▲ "), "  ")...)
	}
	if live := s.state.Live; len(s.state.Undone) > 0 && live != nil && live.CRD == nil {
		text := "The CRD is gone, and its objects with it: **r** begins again, **g** comes back to a step."
		return append(out, s.flow(s.clearly(), text, w, s.warnBold.of("▲ "), "  ")...)
	}
	for _, id := range s.state.Undone {
		if i := slices.IndexFunc(s.state.Steps, func(x *lab.Step) bool { return x.ID == id }); i >= 0 {
			text := fmt.Sprintf("Somebody has undone step %d, %s. Do it again by hand, or press **g** to go there.", i+1, s.state.Steps[i].Title)
			out = append(out, s.flow(s.clearly(), text, w, s.warnBold.of("▲ "), "  ")...)
		}
	}
	return out
}

// before is the briefing; on a wide screen with a card for the question, also what the step changes.
func (s *screen) before(w int) []string {
	out := append(s.hints(w), s.pen.prose(s.quietly(), s.step.Briefing, w)...) // the way on first: it must be in sight
	if !s.lay.card.empty() && s.step.Question != "" {
		out = append(out, s.changes(w, true)...)
	}
	return out
}

func (s *screen) changes(w int, airy bool) []string {
	if len(s.step.Change) == 0 {
		return nil
	}
	var out []string
	if airy {
		out = append(out, "")
	}
	out = append(out, s.noise.of("enter applies"))
	for _, c := range s.step.Change {
		mark, rest := " ", clean(c)
		if rest != "" {
			mark, rest = rest[:1], rest[1:]
		}
		sign := map[string]style{"+": s.okBold, "-": s.badBold, "~": s.warnBold}[mark]
		out = append(out, ansi.Truncate(sign.of(mark)+s.say(s.fg, rest), w, "…"))
	}
	return out
}

func (s *screen) hints(w int) []string {
	var out []string
	for _, h := range s.step.Hints {
		out = append(out, s.flow(s.clearly(), h, w, s.warnBold.of("▲ "), "  ")...)
	}
	if len(out) > 0 && s.lay.form != formTabs {
		out = append(out, "")
	}
	return out
}
