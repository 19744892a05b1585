package views

import (
	"context"
	"errors"
	"fmt"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/crdlab/crdlab/lab"
)

// branch is a what-if: the track of an accident that is gone through on the cluster of the track that it branches off.
//
// The session of that track is parked meanwhile, not closed: so what the learner predicted is kept where it was given, and
// whatever fails on the way there or back leaves a session that waits for a reset, with the keys for it.
type branch struct {
	from  Session
	place place
	title string // of the accident
}

// place is where a learner was in a track.
type place struct {
	track       string
	number      int // of the step, from 1
	step, title string
	given       string // what they predicted there
	done        bool   // they had applied it
}

func placeIn(st *lab.State) place {
	step := st.Steps[st.Current]
	return place{track: st.Track.ID, number: st.Current + 1, step: step.ID, title: step.Title, given: step.Given, done: done(step)}
}

// restore resets a track, and brings it to the place again.
func (p place) restore(ctx context.Context, s Session) error {
	err := s.GoTo(ctx, p.step)
	if err == nil && p.given != "" {
		err = s.Predict(p.given)
	}
	if err == nil && p.done {
		err = s.Apply(ctx)
	}
	if err != nil {
		return fmt.Errorf("come %s of %s: %w", p.wayBack(), p.track, err)
	}
	return nil
}

// wayBack is what leads there, in few words.
func (p place) wayBack() string { return fmt.Sprintf("back to step %d", p.number) }

// accidents are what branches off the step at which a learner is.
func (l *Lab) accidents(st *lab.State) []TrackInfo {
	var out []TrackInfo
	step := st.Steps[st.Current]
	if step.Lesson == nil {
		return nil
	}
	for _, id := range step.Lesson.WhatIf {
		for _, t := range l.Tracks {
			if t.ID == id {
				out = append(out, t)
			}
		}
	}
	return out
}

// branchOff opens the track of an accident on the cluster of a session, which it parks.
func (s *sessions) branchOff(ctx context.Context, l *Lab, from Session, track string) (Session, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.opening.Done()
	if err := from.Park(ctx); err != nil {
		return nil, err
	}
	return s.open(ctx, l.Open, track)
}

// comeBack ends the session of an accident, and takes up the one that it branched off.
func (s *sessions) comeBack(ctx context.Context, accident Session, b *branch) error {
	left := s.end(ctx, accident)
	if err := b.place.restore(ctx, b.from); err != nil {
		return errors.Join(err, left)
	}
	return nil // what the accident could not put right has gone with the reset
}

// branches says whether something branches off just now.
func (s *screen) branches() bool {
	ready := s.step.Phase == lab.Ready || s.step.Phase == lab.Applied
	return s.branch == nil && s.busy == "" && ready && !s.lookingBack() && s.step.Lesson != nil && len(s.step.Lesson.WhatIf) > 0
}

// whatIf offers the accidents of a step; from one of them it leads back.
func (m *program) whatIf(s *screen) tea.Cmd {
	switch {
	case m.branch != nil && m.call != nil:
		m.dialogs = append(m.dialogs, leavingBranch{})
	case m.branch != nil:
		return m.comeBack()
	case s.branches():
		m.dialogs = append(m.dialogs, &whatIf{})
	case !s.lookingBack() && s.busy == "":
		m.sight.notice = notice{text: "No accident branches off this step."}
	}
	return nil
}

// branchOff begins an accident.
func (m *program) branchOff(track TrackInfo) tea.Cmd {
	if m.call != nil || m.branch != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(m.ctx)
	m.call = &call{"what if: " + track.Title, cancel}
	b := &branch{from: m.session, title: track.Title}
	earlier, begun := m.queue()
	switched := m.stopSwitching()
	return func() tea.Msg {
		<-earlier // a prediction may have been given just before
		close(begun)
		<-switched
		b.place = placeIn(b.from.State())
		s, err := m.sessions.branchOff(ctx, m.lab, b.from, track.ID)
		if err != nil {
			err = fmt.Errorf("what if: %s did not begin: %w", track.Title, err)
		}
		return openedMsg{track.ID, s, err, b}
	}
}

// branched shows an accident that has begun; where it has not, it takes the track up again, for it is parked.
func (m *program) branched(msg openedMsg) tea.Cmd {
	if msg.err == nil {
		cmd := m.take(msg.session)
		m.branch = msg.branch
		return cmd
	}
	b := msg.branch
	cmd := m.run(b.place.wayBack(), func(ctx context.Context) error { return keysAfter(b.place.restore(ctx, b.from)) })
	m.sight.notice = notice{text: "cancelled"}
	if !errors.Is(msg.err, context.Canceled) {
		m.sight.notice = notice{text: msg.err.Error(), bad: true}
	}
	return cmd
}

// comeBack leads from an accident to the step that it branched off.
func (m *program) comeBack() tea.Cmd {
	b, accident := m.branch, m.session
	m.cancelCall()
	m.call, m.branch = nil, nil
	switched := m.stopSwitching()
	follows := m.take(b.from)
	return tea.Batch(follows, m.run(b.place.wayBack(), func(ctx context.Context) error {
		<-switched
		return keysAfter(m.sessions.comeBack(ctx, accident, b))
	}))
}

// keysAfter says how it goes on where the way back has failed.
func keysAfter(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; g goes to a step, r begins the track anew", err)
}

// whatIf is the list of the accidents that branch off a step.
type whatIf struct{ at int }

func (d *whatIf) press(m *program, k tea.KeyPressMsg) (bool, tea.Cmd) {
	accidents := m.lab.accidents(m.state)
	last := len(accidents) - 1
	if n := k.String(); len(n) == 1 && n >= "1" && n <= "9" {
		d.at = min(int(n[0]-'1'), last)
		return false, nil
	}
	switch {
	case key.Matches(k, m.keys.Down):
		d.at = min(d.at+1, last)
	case key.Matches(k, m.keys.Up):
		d.at = max(d.at-1, 0)
	case key.Matches(k, m.keys.Apply):
		if last < 0 || accidents[d.at].Unavailable != "" {
			return false, nil
		}
		return true, m.branchOff(accidents[d.at])
	case key.Matches(k, m.keys.Escape), key.Matches(k, m.keys.WhatIf), key.Matches(k, m.keys.Quit):
		return true, nil
	}
	return false, nil
}

func (d *whatIf) draw(m *program, w, h int) []string {
	p := m.pen
	w = min(w-4, 76)
	said := fmt.Sprintf("Accidents that happen to people at this step. Each is gone through on this cluster: what the lab made is removed. "+
		"Afterwards, or with **w**, step %d is made again as it is now, with what you predicted.", m.state.Current+1)
	lines := append([]string{""}, p.flow(p.quietly(), said, w-6, "", "")...)
	foot := []string{"", p.next("enter begin") + "   " + p.bold.of("↑ ↓ 1–9") + p.dim.of(" choose") + "   " + p.bold.of("esc") + p.dim.of(" back"), ""}
	list := d.list(m, w-6, true)
	if len(lines)+len(list)+len(foot)+2 > h {
		list = d.list(m, w-6, false)
	}
	return p.dialogBox(" "+p.bold.of("What if …")+" ", "", append(append(lines, list...), foot...), w)
}

// list tells the accidents: of the chosen one what happens, and of the others where there is room.
func (d *whatIf) list(m *program, w int, whole bool) []string {
	p := m.pen
	var out []string
	for i, t := range m.lab.accidents(m.state) {
		title, minutes := clean(t.Title), p.noise.of(fmt.Sprintf("%d min", t.Minutes))
		about := p.flow(p.quietly(), t.Summary, w, "    ", "    ")
		head := "  " + p.noise.of(number(i+1)) + " " + p.say(p.fg, title)
		if t.Unavailable != "" {
			head = "  " + p.noise.of(number(i+1)+" "+title)
			about = p.flow(p.quietly(), t.Unavailable, w, "  "+p.warn.of("○ "), "    ")
		}
		if whole {
			out = append(out, "")
		}
		if i == d.at {
			head = p.raise.under(ends(p.bold.of("▸ "+number(i+1)+" ")+p.loud(p.bold, title), minutes, w))
		} else {
			head = ends(head, minutes, w)
		}
		out = append(out, head)
		if whole || i == d.at {
			out = append(out, about...)
		}
	}
	return out
}

// leavingBranch asks before an accident is left: while a step of it is under way, and by a key that people press for less.
type leavingBranch struct{}

func (leavingBranch) press(m *program, k tea.KeyPressMsg) (bool, tea.Cmd) {
	if m.branch != nil && (key.Matches(k, m.keys.Apply, m.keys.WhatIf) || k.String() == "y") {
		return true, m.comeBack()
	}
	return true, nil
}

func (leavingBranch) draw(m *program, w, _ int) []string {
	p := m.pen
	w = min(w-4, 66)
	said := fmt.Sprintf("What the lab made for it is removed, and step %d of %s is made again.", m.branch.place.number, m.branch.place.track)
	if m.call != nil {
		said = "A step is under way, and is broken off. " + said
	}
	lines := append([]string{""}, p.flow(p.clearly(), said, w-6, "", "")...)
	lines = append(lines, "", p.next("enter leave")+"   "+p.bold.of("esc")+p.dim.of(" stay"), "")
	return p.dialogBox(" "+p.bold.of("Leave the accident?")+" ", "", lines, w)
}
