package views

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/verdict"
)

// head says where one is: the product, the track, how far, on which cluster, and whether it can be followed.
func (s *screen) head() string {
	st := s.state
	left := " " + s.next("crdlab") + "  " + s.bold.of(clean(st.Track.ID))
	if st.Live != nil && st.Live.CRD != nil {
		left += s.noise.of("  strategy ") + s.dim.of(clean(st.Live.CRD.Strategy))
	}
	left += "   "
	for i, step := range st.Steps {
		switch {
		case i < st.Current, i == st.Current && step.Phase == lab.Applied && step.Result != lesson.Failed:
			left += s.fg.of("━")
		case i == st.Current:
			left += s.bold.of("╸")
		default:
			left += s.line.of("─")
		}
	}
	left += "  " + s.dim.of(fmt.Sprintf("%d of %d", st.Current+1, len(st.Steps)))
	right := s.ok.of("● live")
	if st.Trouble != nil {
		right = s.warn.of("▲ out of sight")
	}
	right += "  "
	if s.lay.w >= 110 {
		name := clean(st.Resource.String())
		if st.Live != nil && st.Live.CRD != nil && st.Live.CRD.Terminating {
			name += s.warn.of(" ▲ terminating") + string(s.noise)
		}
		right = s.noise.of(name+"   "+clean(st.Cluster.Type+" "+st.Cluster.Version)+"   ") + right
	}
	return ends(left, right, s.lay.w)
}

// noticeLine is the rule under the head; it carries what must not be missed.
func (s *screen) noticeLine() string {
	said := ""
	switch {
	case s.notice.text != "" && s.notice.bad:
		said = s.badBold.of("✗ ") + s.bold.of(clean(s.notice.text))
	case s.notice.text != "":
		said = s.bold.of(clean(s.notice.text))
	case s.lookingBack():
		said = s.primary.of(fmt.Sprintf(" looking back: step %d as it was ", s.step.Index+1)) + s.dim.of("  esc returns to step "+strconv.Itoa(s.state.Current+1))
	case s.state.Trouble != nil:
		said = s.warnBold.of("▲ the cluster cannot be followed: ") + s.fg.of(clean(s.state.Trouble.Error()))
	case s.state.Paused:
		said = s.warnBold.of("○ paused ") + s.dim.of("p goes on")
	}
	return s.rule(said, s.lay.notice.w)
}

// rail lists the steps; where it is cut it says how many more there are.
func (s *screen) rail() []string {
	r := s.lay.rail
	if r.empty() {
		return nil
	}
	out := make([]string, len(s.state.Steps))
	for i := range s.state.Steps {
		out[i] = s.railLine(i, r.w)
	}
	if len(out) <= r.h {
		return out
	}
	from := min(max(0, s.step.Index-r.h/2), len(out)-r.h)
	out = out[from : from+r.h]
	if from > 0 {
		out[0] = s.noise.of(fmt.Sprintf("  ↑ %d more", from+1))
	}
	if below := len(s.state.Steps) - from - r.h; below > 0 {
		out[r.h-1] = s.noise.of(fmt.Sprintf("  ↓ %d more", below+1))
	}
	return out
}

func (s *screen) railLine(i, w int) string {
	step := s.state.Steps[i]
	num, title := fmt.Sprintf("%2d", i+1), brief(clean(step.Title), w-6)
	sign := s.stepSign(step)
	switch {
	case i == s.step.Index:
		return s.raise.under(fit(s.bold.of("▸"+num)+" "+sign+" "+s.bold.of(title), w))
	case i == s.state.Current:
		return fit(" "+s.bold.of(num)+" "+sign+" "+s.bold.of(title), w)
	case step.Phase == lab.Applied:
		return fit(" "+s.noise.of(num)+" "+sign+" "+s.dim.of(title), w)
	}
	return fit(" "+s.noise.of(num+"   "+title), w)
}

// brief is a title as far as its words fit; the whole stands over the prose.
func brief(title string, w int) string {
	for width(title) > w {
		at := strings.LastIndexByte(title, ' ')
		if at < 0 {
			break
		}
		title = title[:at]
	}
	return title
}

func (s *screen) stepSign(step *lab.Step) string {
	switch {
	case slices.Contains(s.state.Undone, step.ID):
		return s.warnBold.of("▲")
	case step.Phase == lab.Running:
		return s.bold.of("◐")
	case step.Phase == lab.Applied && step.Result == lesson.Failed, step.Err != nil:
		return s.badBold.of("✗")
	case step.Phase == lab.Applied && step.Result == lesson.Skipped:
		return s.warn.of("○")
	case step.Phase == lab.Applied:
		return s.ok.of("✓")
	}
	return s.bold.of("○")
}

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
		body = slices.Clone(body[:h])
		body[h-1] = ends(body[h-1], "  "+hint, r.w)
	}
	return append(slices.Clip(body), below...)
}

// proseParts are what scrolls, what stays below it, and how many lines the first has.
func (s *screen) proseParts() (body, below []string, h int) {
	body, h = s.prose(), s.lay.prose.h
	if s.lay.form == formWide || s.step.Phase != lab.Ready || s.step.Err != nil {
		return body, nil, h
	}
	w := min(s.lay.prose.w-2, 92)
	if s.step.Question != "" {
		below = s.question(w, false)
	}
	if changes := s.changes(w, true); len(body)+len(changes)+1+len(below) <= h { // else K shows what it does
		body = append(body, changes...)
	}
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
	w := min(s.lay.prose.w-2, 92)
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
	if t := s.state.Trouble; t != nil && (s.lookingBack() || width(t.Error())+42 > s.lay.w) { // the rule has no room for it
		out = append(out, s.flow(s.clearly(), "The cluster cannot be followed at the moment: "+s.state.Trouble.Error(), w, s.warnBold.of("▲ "), "  ")...)
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
	out := append(s.pen.prose(s.quietly(), s.step.Briefing, w), s.hints(w)...)
	if s.lay.form == formWide && s.step.Question != "" {
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
		out = append([]string{""}, out...)
	}
	return out
}

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

// judgement says how the prediction compares to what the server did.
func judgement(step *lab.Step) string {
	given, _ := option(step, step.Given)
	answer, _ := option(step, step.Answer)
	switch {
	case answer == 0 && step.Result == lesson.Failed:
		return "not answered, for the step is not done"
	case answer == 0:
		return "the server did none of these"
	case given == 0:
		return fmt.Sprintf("it is %d", answer)
	case given == answer:
		return fmt.Sprintf("you said %d, and so it is", given)
	}
	return fmt.Sprintf("you said %d, and it is %d", given, answer)
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
	done := s.step.Phase == lab.Applied
	f := frame{line: s.line}
	var body []string
	in := r.w - 5
	switch {
	case s.rewriting():
		return s.fieldCard(r)
	case s.step.Question == "" && done:
		f.line, f.title, body = s.doneCard(in)
	case s.step.Question == "":
		f = frame{line: s.fg, heavy: s.focus.kind == onProse, title: " " + s.bold.of("No question here") + " ", foot: s.noise.of("enter apply")}
		body = append(s.flow(s.quietly(), "This step asks nothing. Look at what it does.", in, "", ""), s.changes(in, true)...)
	case done:
		sign, line := s.judged()
		f.line, f.title = line, " "+sign+s.bold.of(judgement(s.step))+" "
		body = s.question(in, false)
	default:
		f = frame{line: s.dim, title: " " + s.bold.of("Your prediction") + " "}
		if s.step.Phase != lab.Running {
			f.line, f.heavy = s.fg, s.focus.kind == onProse
			f.foot = s.noise.of(optionKeys(len(s.step.Options)) + " choose · enter apply")
		}
		body = s.question(in, true)
	}
	if len(body) < r.h-2 {
		body = append([]string{""}, body...)
	}
	if len(body) > r.h-2 {
		f.foot = s.noise.of("goes on · a higher window shows it all")
	}
	return box(f, inset(2, body), r.w, r.h)
}

func optionKeys(n int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = strconv.Itoa(i + 1)
	}
	return strings.Join(keys, " ")
}

// doneCard sums up a step that asked nothing.
func (s *screen) doneCard(w int) (line style, title string, body []string) {
	line, sign, said := s.ok, s.okBold.of("✓ "), "done"
	if s.failed() {
		line, sign, said = s.bad, s.badBold.of("✗ "), "not done"
	}
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
	body = []string{
		row("requests", number(own)),
		row("checks", fmt.Sprintf("%d of %d hold", passed, len(s.step.Checks))),
	}
	if s.step.Took > 0 {
		body = append(body, row("took", took(s.step.Took)))
	}
	return line, " " + sign + s.bold.of(said) + " ", body
}

// outcome is what happened: the prediction, refusals, checks, findings, and why.
func (s *screen) outcome(w int) []string {
	tight := s.lay.form == formTabs
	var out []string
	gap := func() {
		if !tight && len(out) > 0 && out[len(out)-1] != "" {
			out = append(out, "")
		}
	}
	if s.failed() {
		out = append(out, s.failure(w)...)
		gap()
	}
	if s.lay.form != formWide && s.step.Question != "" && !s.failed() {
		_, text := option(s.step, s.step.Answer)
		said := judgement(s.step)
		said = strings.ToUpper(said[:1]) + said[1:]
		if text != "" {
			said += ": " + text
		}
		sign, _ := s.judged()
		out = append(out, s.flow(s.clearly(), said, w, sign, "  ")...)
		gap()
	}
	for _, x := range wanted(s.step) {
		out = append(out, s.refused(x, w, tight)...)
	}
	out = append(out, s.checks(w)...)
	if v := s.step.Verdict; v != nil {
		gap()
		out = append(out, s.verdict(v, w)...)
	}
	if r := s.step.Rewrite; r != nil {
		out = append(out, s.noise.of("written ")+s.fg.of(number(r.Written))+s.noise.of("   unchanged ")+s.fg.of(number(r.Unchanged))+
			s.noise.of("   relabelled ")+s.fg.of(number(r.Relabelled))+s.noise.of("   conflicts ")+s.fg.of(number(r.Conflicts))+
			s.noise.of("   failures ")+s.fg.of(number(len(r.Failures))))
		for _, f := range r.Failures {
			out = append(out, s.flow(s.clearly(), fmt.Sprintf("%s: %d %s %s", f.Name, f.Status, f.Reason, f.Message), w, s.badBold.of("✗ "), "  ")...)
		}
	}
	if !s.failed() && s.step.Explanation != "" {
		if len(wanted(s.step)) == 0 {
			gap()
		}
		out = append(out, s.pen.prose(s.quietly(), s.step.Explanation, w)...)
	}
	if s.lookingBack() && s.step.Briefing != "" {
		out = append(append(out, "", s.noise.of("what was said before it")), s.pen.prose(s.quietly(), s.step.Briefing, w)...)
	}
	return out
}

func (s *screen) checks(w int) []string {
	var out []string
	for _, c := range s.step.Checks {
		switch c.Result {
		case lesson.Passed:
			out = append(out, s.flow(s.clearly(), c.Title, w, s.ok.of("✓ "), "  ")...)
		case lesson.Failed:
			out = append(out, s.flow(s.clearly(), c.Title, w, s.badBold.of("✗ "), "  ")...)
			out = append(out, s.flow(s.clearly(), c.Want, w, "  "+s.noise.of("wanted "), spaces(9))...)
			out = append(out, s.flow(s.clearly(), c.Got, w, "  "+s.noise.of("seen   "), spaces(9))...)
		case lesson.Skipped:
			out = append(out, s.flow(s.quietly(), c.Title+" · skipped: "+c.Reason, w, s.warn.of("○ "), "  ")...)
		}
	}
	return out
}

// wanted are the refusals that the step is about.
func wanted(step *lab.Step) []evidence.Exchange {
	var out []evidence.Exchange
	if step.Lesson == nil {
		return nil
	}
	for _, a := range step.Actions {
		expects := slices.ContainsFunc(step.Lesson.Actions, func(l lesson.Action) bool { return l.ID == a.ID && l.Expect.Refused })
		if !expects {
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

// unwanted is the newest refusal that nobody wanted; nil where there is none.
func unwanted(step *lab.Step) *evidence.Exchange {
	meant := wanted(step)
	for _, x := range slices.Backward(step.Exchanges) {
		own := x.Actor == evidence.ByStep && (x.Refused() || x.Status == 0)
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
	for _, l := range wrap(text, w-5) {
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
	f := frame{line: s.dim, title: title, note: s.dim.of("refused, as wanted")}
	return box(f, body, w, len(body)+2)
}

// failure is what went wrong, loudly, and what to do.
func (s *screen) failure(w int) []string {
	title, text := s.badBold.of("✗ ")+s.bold.of("the step is not done"), ""
	if s.step.Err != nil {
		text = clean(s.step.Err.Error())
	}
	if x := unwanted(s.step); x != nil {
		title = s.badBold.of("✗ "+strings.TrimSpace(statusText(x.Status)+" "+clean(x.Reason))) + s.bold.of(" not wanted")
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
	for _, h := range s.step.Hints {
		body = append(body, s.flow(s.loudly(), h, w-4, " "+s.warnBold.of("▲ "), "   ")...)
	}
	if !s.lookingBack() {
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
