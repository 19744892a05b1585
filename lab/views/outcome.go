package views

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/verdict"
)

// outcome is what happened, always in this order: the prediction, why, refusals, and what holds.
func (s *screen) outcome(w int) []string {
	var foretold, refusals, why []string
	switch {
	case s.failed():
		foretold = s.failure(w)
	case s.lay.card.empty() && s.step.Question != "":
		foretold = s.foretold(w)
	}
	if all := wanted(s.step); len(all) > 0 {
		refusals = append(s.refused(all[0], w, s.lay.form != formWide && s.lay.zoomOn == noZoom), s.refusedToo(all, w)...)
	}
	if !s.failed() && s.step.Explanation != "" && !s.aside {
		why = s.pen.prose(s.quietly(), s.step.Explanation, w)
	}
	return s.spaced([][]string{foretold, why, refusals, s.holding(w)})
}

// past is what was said before a step that is looked back at.
func (s *screen) past(w int) []string {
	if !s.lookingBack() || s.step.Briefing == "" {
		return nil
	}
	return append([]string{"", s.noise.of("what was said before it")}, s.pen.prose(s.quietly(), s.step.Briefing, w)...)
}

// spaced sets parts one below the other, with air between them where there is any; a frame brings its own.
func (s *screen) spaced(parts [][]string) []string {
	var out []string
	for _, p := range parts {
		if len(p) == 0 {
			continue
		}
		framed := len(out) > 0 && strings.Contains(ansi.Strip(out[len(out)-1]), "╯")
		if len(out) > 0 && s.lay.form != formTabs && !framed {
			out = append(out, "")
		}
		out = append(out, p...)
	}
	return out
}

// foretold says how the prediction went, where there is no card for it.
func (s *screen) foretold(w int) []string {
	said := judgement(s.step, s.player != nil)
	said = strings.ToUpper(said[:1]) + said[1:]
	if _, text := option(s.step, s.step.Answer); text != "" {
		said += ": " + text
	}
	sign, _ := s.judged()
	return s.flow(s.clearly(), said, w, sign, "  ")
}

// holding are the checks, the findings, and what a rewrite did.
func (s *screen) holding(w int) []string {
	out := s.checks(w)
	if v := s.step.Verdict; v != nil {
		out = append(out, s.verdict(v, w)...)
	}
	r := s.step.Rewrite
	if r == nil || s.step.Lesson != nil && s.step.Lesson.Judge != nil && len(r.Failures) == 0 { // a way back has several; the verdict counts
		return out
	}
	out = append(out, s.noise.of("written ")+s.fg.of(number(r.Written))+s.noise.of("   unchanged ")+s.fg.of(number(r.Unchanged))+
		s.noise.of("   relabelled ")+s.fg.of(number(r.Relabelled))+s.noise.of("   conflicts ")+s.fg.of(number(r.Conflicts))+
		s.noise.of("   failures ")+s.fg.of(number(len(r.Failures))))
	for _, f := range r.Failures {
		out = append(out, s.flow(s.clearly(), fmt.Sprintf("%s: %d %s %s", f.Name, f.Status, f.Reason, f.Message), w, s.badBold.of("✗ "), "  ")...)
	}
	return out
}

// checks are those that hold, or could not be made.
func (s *screen) checks(w int) []string {
	var out []string
	for _, c := range s.step.Checks {
		switch c.Result {
		case lesson.Passed:
			out = append(out, s.flow(s.clearly(), c.Title, w, s.ok.of("✓ "), "  ")...)
		case lesson.Skipped:
			out = append(out, s.flow(s.quietly(), c.Title+" · skipped: "+c.Reason, w, s.warn.of("○ "), "  ")...)
		}
	}
	return out
}

// unmet are the checks that do not hold, with what was seen.
func (s *screen) unmet(w int) []string {
	var out []string
	for _, c := range s.step.Checks {
		if c.Result == lesson.Failed {
			out = append(out, s.flow(s.clearly(), c.Title, w, s.badBold.of("✗ "), "  ")...)
			out = append(out, s.flow(s.clearly(), c.Want, w, "  "+s.noise.of("wanted "), spaces(9))...)
			out = append(out, s.flow(s.clearly(), c.Got, w, "  "+s.noise.of("seen   "), spaces(9))...)
		}
	}
	return out
}

// refusalExpected says whether an action is to be refused.
func refusalExpected(step *lab.Step, action string) bool {
	return step.Lesson != nil && slices.ContainsFunc(step.Lesson.Actions, func(l lesson.Action) bool {
		return l.ID == action && l.Expect.Refused
	})
}

// wanted are the refusals that the step is about.
func wanted(step *lab.Step) []evidence.Exchange {
	var out []evidence.Exchange
	for _, a := range step.Actions {
		if !refusalExpected(step, a.ID) {
			continue
		}
		for _, i := range slices.Backward(a.Exchanges) {
			if i < len(step.Exchanges) && step.Exchanges[i].Refused() {
				out = append(out, step.Exchanges[i])
				break
			}
		}
	}
	return out
}

// unwanted is the newest refusal of the last attempt that nobody wanted; nil where there is none.
func unwanted(step *lab.Step) *evidence.Exchange {
	meant := wanted(step)
	for _, x := range slices.Backward(step.Exchanges) {
		own := x.Actor == evidence.ByStep && x.Seq > step.Attempt && (x.Refused() || x.Status == 0)
		if own && !slices.ContainsFunc(meant, func(y evidence.Exchange) bool { return y.Seq == x.Seq && y.Path == x.Path }) {
			return &x
		}
	}
	return nil
}

// refused is a refusal that the lesson wants: calm, boxed, its number the only thing in red.
func (s *screen) refused(x evidence.Exchange, w int, tight bool) []string {
	text, field := clean(x.Message), ""
	if len(x.Causes) > 0 {
		field = clean(x.Causes[0].Field)
		if x.Causes[0].Message != "" {
			text = clean(x.Causes[0].Message)
		}
	}
	var body []string
	for _, l := range wrap(gist(text), w-5) {
		body = append(body, " "+s.say(s.fg, l))
	}
	if tight && len(body) > 2 { // the tab with the requests has it whole
		body = append(body[:1:1], body[1]+s.noise.of(" …"))
	}
	if x.Reason == "" { // plain text, without a Status: say at least what was asked
		version, rest := target(x.Path, s.state.Resource)
		field = strings.TrimSpace(x.Method + " " + version + " " + rest)
	}
	title := " " + s.badBold.of(strconv.Itoa(x.Status)) + " "
	if x.Reason != "" {
		title += s.bold.of(clean(x.Reason)) + " "
	}
	if field != "" {
		title += s.say(s.dim, field) + " "
	}
	said := "refused, as intended"
	if x.Status >= http.StatusInternalServerError { // nobody refuses by that
		said = "failed, as expected"
	}
	f := frame{line: s.dim, title: title, note: s.dim.of(said)}
	return box(f, body, w, len(body)+2)
}

// refusedToo are further refusals that the lesson wants, in brief: those for the reason of the first all at once.
func (s *screen) refusedToo(all []evidence.Exchange, w int) []string {
	var alike []string
	var out []string
	status := func(x evidence.Exchange) string { return "  " + s.bad.of(strconv.Itoa(x.Status)) + " " }
	for _, x := range all[1:] {
		version, rest := target(x.Path, s.state.Resource)
		asked := x.Method + " " + strings.TrimSpace(version+" "+rest)
		if why := gist(clean(x.Message)); x.Status != all[0].Status || why != gist(clean(all[0].Message)) {
			said := s.flow(s.quietly(), asked+": "+why, w-2, status(x), spaces(6))
			if s.lay.zoomOn == noZoom && len(said) > 2 { // the log has it whole, and so has the text alone
				said = append(said[:1:1], said[1]+s.noise.of(" …"))
			}
			out = append(out, said...)
		} else {
			alike = append(alike, asked)
		}
	}
	if len(alike) > 0 {
		out = append(s.flow(s.quietly(), strings.Join(alike, ", ")+" too", w, status(all[0]), spaces(6)), out...)
	}
	return out
}

// failure is what went wrong, loudly, and what to do: the error of the last attempt, what does not hold, and the way on.
func (s *screen) failure(w int) []string {
	title, text := s.badBold.of("✗ ")+s.bold.of("the step is not done"), ""
	if s.step.Err != nil {
		text = clean(s.step.Err.Error())
	}
	if x := unwanted(s.step); x != nil {
		title = s.badBold.of("✗ "+strings.TrimSpace(statusText(x.Status)+" "+clean(x.Reason))) + s.bold.of(" unexpected")
		if text == "" {
			text = x.Method + " " + clean(x.Path) + ": " + clean(x.Message)
		}
	}
	var body []string
	if text != "" {
		for _, l := range wrap(text, w-5) {
			body = append(body, " "+s.say(s.fg, l))
		}
	}
	body = append(body, inset(1, s.unmet(w-5))...)
	for _, h := range s.step.Hints {
		body = append(body, s.flow(s.loudly(), h, w-4, " "+s.warnBold.of("▲ "), "   ")...)
	}
	switch {
	case s.lookingBack(), s.player != nil: // there is no key for it
	case len(s.step.Hints) > 0: // they are the way on
		body = append(body, s.flow(s.quietly(), "K shows how by hand · r resets the track · enter tries it again", w-4, "   ", "   ")...)
	default:
		body = append(body, s.flow(s.loudly(), "enter tries it again · K shows how by hand · r resets the track", w-4, " "+s.bold.of("→ "), "   ")...)
	}
	return box(frame{line: s.bad, title: " " + title + " ", heavy: true}, body, w, len(body)+2)
}

// verdict is the answer with its findings.
func (s *screen) verdict(v *verdict.Verdict, w int) []string {
	sign := map[verdict.Answer]string{verdict.Complete: s.okBold.of("✓ "), verdict.Incomplete: s.badBold.of("✗ ")}[v.Verdict]
	if sign == "" {
		sign = s.warnBold.of("○ ")
	}
	out := []string{sign + s.bold.of(clean(string(v.Verdict)))}
	if len(v.Drop) > 0 {
		out[0] += s.dim.of(", to drop ") + s.loud(s.bold, clean(strings.Join(v.Drop, " ")))
	}
	brief := s.lay.zoomOn == noZoom && s.step.Lesson != nil && (s.step.Lesson.Judge != nil || len(s.step.Lesson.Actions) > 1)
	if brief { // the step is about something else too
		var open []string
		for _, f := range v.Findings {
			if f.Result != verdict.Pass {
				open = append(open, clean(f.ID))
			}
		}
		said := fmt.Sprintf("%d findings", len(v.Findings))
		if len(open) > 0 {
			said += ", open: " + strings.Join(open, " ")
		}
		return append(out, s.flow(s.quietly(), said+" · z shows them in the text", w, "  ", "  ")...)
	}
	signs := map[verdict.Result]string{verdict.Pass: s.ok.of("✓ "), verdict.Fail: s.badBold.of("✗ "), verdict.Warn: s.warn.of("▲ ")}
	for _, f := range v.Findings {
		sign := signs[f.Result]
		if sign == "" {
			sign = s.warn.of("○ ")
		}
		out = append(out, s.flow(s.clearly(), f.Summary, w, sign+s.noise.of(fit(f.ID, 17)), spaces(19))...)
		if f.Result != verdict.Pass && f.Remedy != "" {
			out = append(out, s.flow(s.loudly(), f.Remedy, w, spaces(17)+s.bold.of("→ "), spaces(19))...)
		}
	}
	return out
}
