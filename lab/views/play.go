package views

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/lesson"
)

// Play says how a track is played by itself.
type Play struct {
	Pace        time.Duration // how long each state stays at the least
	From, Until string        // ids of the first and the last step; empty: those of the track
	Record      io.Writer     // takes an asciicast; nil where nothing is recorded
	// Unseen: there is no terminal, only the recording. Nobody waits then while somebody would read: the time goes into the
	// recording alone.
	Unseen bool
}

// wordsAPace is how many words a person reads while a state stays for its least time.
const wordsAPace = 12

// player goes through a track as a person would: it reads, chooses, applies, reads on, goes on. It does one thing at a
// time, says which, and leaves the time to read what has come of it.
type player struct {
	Play
	began     time.Time
	virtual   time.Duration // how far an unseen play would have come
	recording *recording    // nil where nothing is recorded

	caption   string
	seen      situation
	resting   bool   // there is the time to read it
	rests     int    // how many there were: one that was cut short does nothing at its end
	announced bool   // it was said that the step is to be applied
	toMark    string // the name of a step that the recording is still to mark

	read  map[string]bool // the lines of the step that were read, as their words
	asked time.Duration   // how long a screen stood at the most before the step was applied

	paused bool
	over   bool
	err    error // why it ended before its end
}

// situation is what a person takes in at once. There is another one when any of it has changed.
type situation struct {
	step      int // from 1; 0: nothing yet
	phase     lab.Phase
	given     string
	scrolled  int
	announced bool
}

// restedMsg says that a rest has passed. In an unseen play it brings what the screen shows then.
type restedMsg struct {
	rest int
	reading
	err error
}

// played is the program while a player goes through it.
type played struct{ *program }

func newPlayed(m *program, play Play, track string) played {
	p := &player{Play: play, began: m.clock()}
	if play.Record != nil {
		p.recording = &recording{to: play.Record, track: track, now: func() time.Duration {
			if p.Unseen {
				return p.virtual
			}
			return m.clock().Sub(p.began)
		}}
	}
	m.player = p
	return played{m}
}

// Update takes a message as the program does, and looks whether it is the player's turn then.
func (m played) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	p := m.player
	var cmd tea.Cmd
	if rested, is := msg.(restedMsg); is {
		cmd = p.rested(m.program, rested)
	} else {
		_, cmd = m.program.Update(msg)
	}
	next := p.turn(m.program)
	if !p.Unseen {
		p.record(m.program)
	}
	return m, tea.Batch(cmd, next)
}

// turn looks at how things are. Where there is something new to be read, it leaves the time for that.
func (p *player) turn(m *program) tea.Cmd {
	switch {
	case p.over:
		return nil
	case m.start.err != nil:
		return p.fail(m.start.err)
	case m.sight.notice.bad:
		return p.fail(errors.New(m.sight.notice.text))
	case m.session == nil || m.call != nil:
		return nil
	case p.From != "" && p.seen.step == 0 && p.From != m.current().ID:
		return p.goTo(m)
	}
	step := m.current()
	switch {
	case m.screen().failed():
		return p.fail(failure(step))
	case step.Phase == lab.Running:
		return nil
	}
	p.look(m)
	if p.paused || len(m.dialogs) > 0 || formFor(m.w, m.h) == formSmall { // nobody reads, or could
		p.resting, p.rests = false, p.rests+1
		return nil
	}
	if p.resting {
		return nil
	}
	return p.rest(m)
}

// look takes in how things are, and says what has come of the last thing that was done.
func (p *player) look(m *program) {
	step := m.current()
	now := situation{m.state.Current + 1, step.Phase, step.Given, m.sight.proseScroll, p.announced}
	if now == p.seen {
		return
	}
	switch {
	case now.step != p.seen.step:
		p.announced, now.announced = false, false
		p.read, p.asked = map[string]bool{}, 0
		p.caption = fmt.Sprintf("step %d of %d: %s", now.step, len(m.state.Steps), step.Title)
		p.toMark = fmt.Sprintf("%d %s", now.step, step.Title)
	case now.phase == lab.Applied && p.seen.phase == lab.Ready:
		p.caption = "applied: " + step.Title
	}
	p.seen, p.resting = now, false
}

// failure says which step failed, and how; or what kept it from its end, where nothing could be judged.
func failure(step *lab.Step) error {
	if step.Phase != lab.Applied {
		return fmt.Errorf("step %s: %w", step.ID, step.Err)
	}
	if step.Err != nil {
		return fmt.Errorf("%w: %s: %w", ErrStepFailed, step.ID, step.Err)
	}
	for _, c := range step.Checks {
		if c.Result == lesson.Failed {
			return fmt.Errorf("%w: %s: %s: wanted %s, seen %s", ErrStepFailed, step.ID, c.Title, c.Want, c.Got)
		}
	}
	return fmt.Errorf("%w: %s", ErrStepFailed, step.ID)
}

// goTo begins at another step than the first.
func (p *player) goTo(m *program) tea.Cmd {
	from := p.From
	p.From = ""
	p.caption = "goes to the step " + from
	return m.run("going to "+from, contextual(m.session.GoTo, from))
}

// rest leaves the time to read; in an unseen play, to the server the time to show all that there is.
func (p *player) rest(m *program) tea.Cmd {
	p.resting = true
	p.rests++
	n := p.rests
	if p.Unseen {
		from := m.reader
		return func() tea.Msg {
			err := from.session.Rest(m.ctx)
			return restedMsg{n, from.read(), err}
		}
	}
	after := time.NewTimer(p.toRead(m))
	return func() tea.Msg {
		defer after.Stop()
		select {
		case <-after.C:
			return restedMsg{rest: n}
		case <-m.ctx.Done():
			return nil
		}
	}
}

// toRead is how long a person needs for what has newly come into sight over the panes. A result is read together with its
// panes: it stays for at least as long as what was said before it.
func (p *player) toRead(m *program) time.Duration {
	words := 0
	for _, line := range inSight(m.screen()) {
		if !p.read[line] {
			words += len(strings.Fields(line))
		}
	}
	least := p.Pace
	if p.seen.phase == lab.Applied && p.seen.scrolled == 0 {
		least = max(least, p.asked)
	}
	return max(least, p.Pace*time.Duration(words)/wordsAPace)
}

// takeIn notes what was read by now. What comes into sight next to it is new.
func (p *player) takeIn(m *program) {
	if p.seen.phase == lab.Ready {
		p.asked = max(p.asked, p.toRead(m))
	}
	for _, line := range inSight(m.screen()) {
		p.read[line] = true
	}
}

// inSight are the lines over the panes, as their words alone: what is only marked in another way is not new.
func inSight(s *screen) []string {
	body, below, h := s.proseParts()
	from := min(s.proseScroll, max(0, len(body)-h))
	lines := slices.Concat(body[from:min(len(body), from+h)], below, s.card())
	for i, l := range lines {
		words := strings.FieldsFunc(ansi.Strip(l), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		lines[i] = strings.Join(words, " ")
	}
	return lines
}

// rested does the next thing at the end of a rest that was not cut short.
func (p *player) rested(m *program, msg restedMsg) tea.Cmd {
	if msg.rest != p.rests || p.over {
		return nil
	}
	if p.Unseen {
		if msg.err != nil && m.ctx.Err() == nil {
			return p.fail(msg.err)
		}
		m.shown(msg.reading)
		p.record(m)
		p.virtual += p.toRead(m)
	}
	return p.act(m)
}

// act does what a person would do next, and says so.
func (p *player) act(m *program) tea.Cmd {
	p.takeIn(m)
	step, s := m.current(), m.screen()
	switch {
	case m.sight.proseScroll < s.proseOverflow():
		p.caption = "reads on"
		m.sight.focus = focus{onProse, 0}
		_, _, h := s.proseParts()
		m.scroll(s, max(1, h-1))
		return nil
	case step.Phase == lab.Ready && step.Given == "" && len(step.Options) > 0: // what one takes to be right does not matter here
		p.caption = "chooses 1: " + unmarked(step.Options[0].Text)
		return m.predict(0)
	case step.Phase == lab.Ready && !p.announced:
		p.announced, p.caption = true, "applies: "+step.Title
		return nil
	case step.Phase == lab.Applied && (step.ID == p.Until || step.Index == len(m.state.Steps)-1):
		return p.end(m)
	}
	return m.enter(s)
}

// end leaves the last screen as it is; in an unseen play there is nobody to look at it.
func (p *player) end(m *program) tea.Cmd {
	p.over, p.caption = true, "the end; q quits"
	if !p.Unseen {
		return nil
	}
	p.caption = "the end"
	p.record(m)
	p.virtual += p.Pace
	return tea.Quit
}

// fail ends the play where it cannot go on. The screen says why.
func (p *player) fail(err error) tea.Cmd {
	p.over, p.err, p.caption = true, err, "the play ends here; q quits"
	if p.Unseen {
		return tea.Quit
	}
	return nil
}

// record brings the screen into the recording, and the mark of a step behind its first screen.
func (p *player) record(m *program) {
	if p.recording == nil {
		return
	}
	p.recording.frame(m.lines(), m.w, m.h)
	if p.toMark != "" {
		p.recording.mark(p.toMark)
		p.toMark = ""
	}
}

// result ends the recording, and says how the play went.
func (p *player) result() error {
	if p.err != nil || p.recording == nil {
		return p.err
	}
	return p.recording.end()
}

// press answers the keys of somebody who looks on.
func (p *player) press(m *program, k tea.KeyPressMsg) tea.Cmd {
	switch keys := m.keys; {
	case key.Matches(k, keys.Quit):
		return tea.Quit
	case key.Matches(k, keys.Help):
		m.dialogs = append(m.dialogs, help{})
	case key.Matches(k, keys.Hold):
		p.paused = !p.paused && !p.over
	case key.Matches(k, keys.On) && p.mayAct(m):
		p.rests++ // the rest that goes on is cut short
		return p.act(m)
	}
	return nil
}

// mayAct says that nothing is under way, and that it would be seen.
func (p *player) mayAct(m *program) bool {
	return !p.over && formFor(m.w, m.h) != formSmall && m.session != nil && m.call == nil && m.current().Phase != lab.Running
}

// said is the caption, as the rule under the head carries it.
func (p *player) said(pen *pen) string {
	switch caption := clean(p.caption); {
	case p.err != nil:
		return pen.badBold.of("✗ ") + pen.bold.of(caption)
	case p.paused:
		return pen.next(caption) + pen.warnBold.of(" ○ paused ") + pen.dim.of("space goes on")
	case caption == "":
		return ""
	default:
		return pen.next(caption)
	}
}

// hints are the keys of the play.
func (p *player) hints(k keyMap) []hint {
	var out []hint
	switch {
	case p.over:
		return []hint{of(k.Quit), of(k.Help).as("keys"), of(k.Suspend)}
	case p.paused:
		out = append(out, of(k.Hold).as("go on"))
	default:
		out = append(out, of(k.Hold).as("pause"))
	}
	return append(out, hint{"→", k.On.Help().Desc}, of(k.Help).as("keys"), of(k.Quit))
}
