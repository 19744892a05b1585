package views

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
)

// plainWidth is where plain text is broken.
const plainWidth = 80

// plain gives the lesson line by line: for screen readers, pipes and terminals that can do no more.
type plain struct {
	lab     *Lab
	opened  sessions
	branch  *branch // nil where the track is the one that was asked for
	out     io.Writer
	answers <-chan string // lines of the input; closed at its end
	failed  []string
}

// Plain goes through a track line by line: no alternate screen, no boxes, nothing that moves. Answers come from in; at
// its end the lesson goes on without. The error wraps ErrStepFailed where a step did not show what it was to show, and
// is ErrInterrupted where the context ended.
func Plain(ctx context.Context, l *Lab, trackID string, in io.Reader, out io.Writer) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	to := &untilError{out: out, failed: cancel}
	p := &plain{lab: l.own(), out: to, answers: readLines(ctx, in)}
	defer p.opened.close(cancel)
	defer func() {
		switch {
		case to.err != nil:
			err = fmt.Errorf("write the lesson: %w", to.err)
		case ctx.Err() != nil:
			err = ErrInterrupted
		}
	}()
	if err := p.startCluster(ctx, l); err != nil {
		return err
	}
	if l.Unavailable != nil {
		why, _ := l.Unavailable(ctx) // where that fails, a track says so when it begins
		p.lab.unavailable(why)
	}
	session, err := p.opened.open(ctx, p.way(ctx, l, trackID), trackID)
	if err != nil {
		return fmt.Errorf("open the track %s: %w", trackID, err)
	}
	if err := p.track(ctx, session); err != nil {
		return err
	}
	if len(p.failed) > 0 {
		return fmt.Errorf("%w: %s", ErrStepFailed, strings.Join(p.failed, ", "))
	}
	return nil
}

// way asks where a track was left in the middle whether to go on there.
func (p *plain) way(ctx context.Context, l *Lab, trackID string) func(context.Context, string) (Session, error) {
	at := slices.IndexFunc(l.Tracks, func(t TrackInfo) bool { return t.ID == trackID })
	if at < 0 || l.Tracks[at].Left.Step == 0 {
		return l.Open
	}
	p.gap()
	p.prose(l.Tracks[at].leftSaid())
	for {
		switch line, ok := p.answer(ctx, "Press enter to go on there, or n and enter to begin anew. "); {
		case line == "n":
			return l.Open
		case line == "" && ok:
			p.say("Rebuilding the steps before it.")
			return l.GoOn
		case !ok:
			return l.Open
		default:
			p.say("%q is neither.", line)
		}
	}
}

// untilError writes until that fails, which it says once: a lesson that nobody can read does not go on.
type untilError struct {
	out    io.Writer
	failed func()
	err    error
}

// Write does nothing after an error.
func (w *untilError) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.out.Write(p)
	if err != nil {
		w.err = err
		w.failed()
	}
	return n, err
}

// readLines reads until the input or the context ends. A read that waits for a terminal ends with the process.
func readLines(ctx context.Context, in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		if in == nil {
			return
		}
		for s := bufio.NewScanner(in); s.Scan(); {
			select {
			case lines <- s.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// answer waits for a line; false at the end of the input.
func (p *plain) answer(ctx context.Context, ask string) (string, bool) {
	fmt.Fprint(p.out, ask)
	select {
	case line, ok := <-p.answers:
		if !ok {
			fmt.Fprintln(p.out)
		}
		return strings.TrimSpace(line), ok
	case <-ctx.Done():
		return "", false
	}
}

func (p *plain) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, l := range wrap(clean(text), plainWidth) {
		fmt.Fprintln(p.out, l)
	}
}

// item is a line whose continuation stands under its text.
func (p *plain) item(mark, text string) {
	for i, l := range wrap(clean(text), plainWidth-width(mark)) {
		if i > 0 {
			mark = spaces(width(mark))
		}
		fmt.Fprintln(p.out, mark+l)
	}
}

// prose is Markdown without its marks: one paragraph or item a line, broken at the width.
func (p *plain) prose(text string) {
	pen := newPen(theme{}, nil)
	for _, l := range pen.prose(tongue{hue: pen.hue}, text, plainWidth) {
		fmt.Fprintln(p.out, l)
	}
}

func (p *plain) gap() { fmt.Fprintln(p.out) }

func (p *plain) startCluster(ctx context.Context, l *Lab) error {
	p.say("Starting the cluster: %s.", l.ClusterName)
	started := make(chan error, 1)
	go func() {
		if l.Start == nil {
			started <- nil
			return
		}
		started <- l.Start(ctx)
	}()
	phases := l.Phases
	waiting := started
	for {
		select {
		case err := <-waiting:
			if err != nil {
				return fmt.Errorf("start the cluster: %w", err)
			}
			if l.Phases == nil {
				p.say("The cluster is live.")
				return nil
			}
			waiting = nil
		case ph, open := <-phases:
			if !open {
				p.say("The cluster is live.")
				return nil
			}
			if ph.Done {
				p.say("  %s: done in %s", ph.Name, took(ph.Took))
			}
		case <-ctx.Done():
			return ErrInterrupted
		}
	}
}

// track goes through a track, from the step at which its session is.
func (p *plain) track(ctx context.Context, session Session) error {
	for {
		if err := p.step(ctx, session); err != nil {
			return err
		}
		if more, err := p.goOn(ctx, session); err != nil || !more {
			return err
		}
	}
}

// step goes through the current step: what is to be done, the question, what happened.
func (p *plain) step(ctx context.Context, session Session) error {
	st := session.State()
	step := st.Steps[st.Current]
	p.gap()
	p.say("Step %d of %d: %s", st.Current+1, len(st.Steps), step.Title)
	p.gap()
	p.prose(step.Briefing)
	if len(step.Change) > 0 {
		p.gap()
		p.say("It changes:")
		for _, c := range step.Change {
			p.item("  ", c)
		}
	}
	if step.Phase != lab.Applied {
		if err := p.question(ctx, session, step); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ErrInterrupted
		}
		if err := session.Apply(ctx); err != nil {
			if ctx.Err() != nil {
				return ErrInterrupted
			}
			p.say("Not done: %v", err)
		}
	}
	st = session.State()
	p.outcome(st, st.Steps[step.Index])
	return nil
}

func (p *plain) question(ctx context.Context, session Session, step *lab.Step) error {
	if step.Question == "" {
		p.gap()
		_, _, err := p.ask(ctx, session, "Press enter to apply. ")
		return err
	}
	p.asked(step)
	for {
		line, ok, err := p.ask(ctx, session, fmt.Sprintf("Your prediction (1 to %d, or nothing), then enter: ", len(step.Options)))
		if err != nil || !ok || line == "" {
			return err
		}
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(step.Options) {
			return session.Predict(step.Options[n-1].ID)
		}
		p.say("%q is none of the numbers.", line)
	}
}

// asked is the question, and what there is to choose from.
func (p *plain) asked(step *lab.Step) {
	p.gap()
	p.prose(step.Question)
	for i, o := range step.Options {
		p.item(fmt.Sprintf("  %d  ", i+1), unmarked(o.Text))
	}
}

func (p *plain) outcome(st *lab.State, step *lab.Step) {
	p.gap()
	reviews := reviewsAfter(step)
	for i, x := range step.Exchanges {
		if x.Actor == evidence.ByStep || x.Actor == evidence.ByHand {
			p.exchange(st, x)
		}
		if said := reviews[i]; said != "" {
			p.item("    ", said)
		}
	}
	for _, c := range step.Conversions {
		p.amiss(c)
	}
	if step.Err != nil {
		p.item("Unexpected: ", step.Err.Error())
	}
	if step.Question != "" && step.Phase == lab.Applied {
		_, text := option(step, step.Answer)
		p.gap()
		p.item("Prediction: ", strings.TrimSuffix(judgement(step, false)+": "+unmarked(text), ": "))
	}
	p.gap()
	p.checks(step)
	p.findings(step)
	p.subject(st, step)
	if step.Result == lesson.Failed || step.Err != nil {
		p.failed = append(p.failed, step.ID)
		for _, h := range step.Hints {
			p.item("Hint: ", unmarked(h))
		}
		return
	}
	if step.Explanation != "" {
		p.gap()
		p.prose(step.Explanation)
	}
}

func (p *plain) exchange(st *lab.State, x evidence.Exchange) {
	version, rest := target(x.Path, st.Resource)
	named := created(x)
	if named != "" {
		named = " (" + named + ")"
	}
	line := x.Method + " " + strings.TrimSpace(version+" "+strings.TrimPrefix(rest, "…/")) + named + ": " + strings.TrimSpace(statusText(x.Status))
	if x.Refused() {
		line += " " + refusal(x)
	}
	p.item("  ", line)
	for _, w := range x.Warnings {
		p.item("    Warning: ", w)
	}
}

// reviewsAfter says how many reviews an action caused, by the place of its last exchange.
func reviewsAfter(step *lab.Step) map[int]string {
	out := map[int]string{}
	for _, a := range step.Actions {
		if n := len(a.Exchanges); n > 0 && a.Counted {
			out[a.Exchanges[n-1]] = fmt.Sprintf("%s: %s %s by the webhook", a.ID, number(a.Reviews), plural(a.Reviews, "review", "reviews"))
		}
	}
	return out
}

// amiss tells a review that did not go as it should: failed, spoiled by a fault, or slow.
func (p *plain) amiss(c evidence.Conversion) {
	what := fmt.Sprintf("%s from %s to %s", objectNames(c), versionOf(c.From), versionOf(c.DesiredAPIVersion))
	if c.Result != evidence.ConversionSuccess || c.Message != "" {
		p.item("  review: ", what+": "+strings.TrimSuffix(c.Result+": "+c.Message, ": "))
	}
	if c.Slow() {
		p.item("  review: ", fmt.Sprintf("%s: slow, %s; the API server traces calls over %d ms", what, milliseconds(c.DurationMS), c.SlowAfter().Milliseconds()))
	}
}

func (p *plain) checks(step *lab.Step) {
	for _, c := range step.Checks {
		switch c.Result {
		case lesson.Passed:
			p.item("passed: ", unmarked(c.Title))
		case lesson.Failed:
			p.item("FAILED: ", unmarked(c.Title))
			p.item("  wanted: ", c.Want)
			p.item("  seen: ", c.Got)
		case lesson.Skipped:
			p.item("skipped: ", unmarked(c.Title)+": "+c.Reason)
		}
	}
}

func (p *plain) findings(step *lab.Step) {
	if r := step.Rewrite; r != nil {
		p.say("Rewritten: %s, unchanged: %s, relabelled: %s, conflicts: %s, failures: %s.", number(r.Written), number(r.Unchanged),
			number(r.Relabelled), number(r.Conflicts), number(len(r.Failures)))
	}
	if step.Verdict == nil {
		return
	}
	p.say("Verdict: %s", step.Verdict.Verdict)
	for _, f := range step.Verdict.Findings {
		p.item(fmt.Sprintf("  %s: %s: ", f.Result, f.ID), f.Summary)
		if f.Remedy != "" && f.Result != "pass" {
			p.item("    do: ", f.Remedy)
		}
	}
}

// subject is the object that the step is about, a line for each of its fields, and what is recorded and stored.
func (p *plain) subject(st *lab.State, step *lab.Step) {
	obs := step.After
	if obs == nil {
		obs = st.Live
	}
	s := newScene(st, step, obs, step.Before, "", false)
	sub := s.subjects[len(s.subjects)-1]
	p.gap()
	if sub.against != "" {
		p.say("%s is new. What is new or changed in it is so against %s.", sub.name, sub.against)
	}
	for pane := range len(s.versions) + 1 {
		name := "in etcd"
		if pane < len(s.versions) {
			name = "at " + s.versions[pane]
		}
		if f := sub.faults[pane]; !f.none() {
			p.say("%s %s: %s", sub.name, name, strings.TrimSpace(faultSaid(f)))
			continue
		}
		p.say("%s %s:", sub.name, name)
		for _, r := range sub.rows {
			if c := r.cells[pane]; c.text != "" && r.shrink == 0 && c.sign != blank {
				p.item("  ", plainRow(r, c))
			}
		}
	}
	p.say("storedVersions: %s", strings.Join(obs.StoredVersions(), ", "))
	if obs == nil || !obs.Stored.Access {
		p.say("stored in etcd: unknown, no access to the bytes")
		return
	}
	var counts []string
	for _, v := range tableVersions(s) {
		counts = append(counts, v+" "+number(obs.Stored.ByVersion[v]))
	}
	p.say("stored in etcd: %s", strings.Join(counts, ", "))
}

func faultSaid(f fault) string {
	if f.status == 0 {
		return f.text
	}
	return strconv.Itoa(f.status) + " " + strings.TrimPrefix(f.text, strconv.Itoa(f.status)+" ")
}

func plainRow(r row, c cell) string {
	said := map[sign]string{added: " (new)", changed: " (changed)", gone: " (gone)"}[c.sign]
	if c.sign == absent {
		return "no " + r.path + ": " + c.text
	}
	return r.path + ": " + c.text + said
}

// goOn takes the next step; false where the track has ended, or a step failed.
func (p *plain) goOn(ctx context.Context, session Session) (bool, error) {
	st := session.State()
	last := st.Current == len(st.Steps)-1
	if last && p.branch == nil || !done(st.Steps[st.Current]) || ctx.Err() != nil {
		return false, nil
	}
	p.gap()
	where := "on"
	if last {
		where = p.branch.place.wayBack()
	}
	if _, _, err := p.ask(ctx, session, "Press enter to go "+where+". "); err != nil {
		return false, err
	}
	return ctx.Err() == nil && session.Next(), nil
}
