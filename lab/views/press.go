package views

import (
	"slices"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/lesson"
)

// pressSession answers a key while a track is gone through.
func (m *program) pressSession(k tea.KeyPressMsg) tea.Cmd {
	s := m.screen()
	switch keys := m.keys; {
	case key.Matches(k, keys.Escape):
		m.escape()
	case key.Matches(k, keys.Apply):
		if s.lay.zoomOn != noZoom { // what it would do is out of sight
			m.zoom(s)
			return nil
		}
		return m.enter(s)
	case key.Matches(k, keys.Predict):
		return m.predict(int(k.String()[0] - '1'))
	case key.Matches(k, keys.Choose) && m.asking(s):
		return m.choose(k.String() == "down")
	case key.Matches(k, keys.Back):
		m.lookBack(s.step.Index - 1)
	case key.Matches(k, keys.Forward):
		m.lookBack(s.step.Index + 1)
	case key.Matches(k, keys.GoTo):
		m.dialogs = append(m.dialogs, &goingTo{at: m.state.Current})
	case key.Matches(k, keys.Reset):
		m.dialogs = append(m.dialogs, resetting{})
	case key.Matches(k, keys.ByHand):
		m.dialogs = append(m.dialogs, &byHand{step: s.step})
	case key.Matches(k, keys.Faults):
		m.openFaults()
	case key.Matches(k, keys.WhatIf):
		return m.whatIf(s)
	case key.Matches(k, keys.Pause):
		return m.pause(s)
	case key.Matches(k, keys.RewriteWith):
		return m.otherRewriter(s)
	case key.Matches(k, keys.Export):
		return m.export()
	default:
		return m.pressSight(k, s)
	}
	return nil
}

// pressSight answers the keys that change only what is seen.
func (m *program) pressSight(k tea.KeyPressMsg, s *screen) tea.Cmd {
	page := max(1, s.lay.prose.h-2)
	switch keys := m.keys; {
	case key.Matches(k, keys.NextPane):
		m.move(s, 1)
	case key.Matches(k, keys.PrevPane):
		m.move(s, -1)
	case key.Matches(k, keys.NextObject):
		return m.another(s, 1)
	case key.Matches(k, keys.PrevObject):
		return m.another(s, -1)
	case key.Matches(k, keys.Managers):
		m.sight.managers = !m.sight.managers
	case key.Matches(k, keys.Zoom):
		m.zoom(s)
	case s.lay.zoomOn == zoomReviews && key.Matches(k, keys.PageDown):
		m.scrollSides(s, 1)
	case s.lay.zoomOn == zoomReviews && key.Matches(k, keys.PageUp):
		m.scrollSides(s, -1)
	case key.Matches(k, keys.Down):
		m.scroll(s, 1)
	case key.Matches(k, keys.Up):
		m.scroll(s, -1)
	case key.Matches(k, keys.PageDown):
		m.scroll(s, page)
	case key.Matches(k, keys.PageUp):
		m.scroll(s, -page)
	}
	return nil
}

// escape undoes one thing: a call that goes on, a zoom, the look back, and at last an accident or the track, if that is meant.
func (m *program) escape() {
	switch {
	case m.call != nil:
		m.cancelCall()
	case m.sight.zoom != noZoom:
		m.sight.zoom = noZoom
	case m.sight.back >= 0:
		m.lookBack(m.state.Current)
	case m.branch != nil:
		m.dialogs = append(m.dialogs, leavingBranch{})
	case m.current().Phase != lab.Running:
		m.dialogs = append(m.dialogs, leavingTrack{})
	}
}

// enter applies the current step, or goes on from it.
func (m *program) enter(s *screen) tea.Cmd {
	step := m.current()
	switch {
	case s.lookingBack():
		m.lookBack(m.state.Current)
	case m.call != nil, step.Phase == lab.Running:
	case !done(step):
		return m.run("applying "+step.ID, m.session.Apply)
	case m.state.Current == len(m.state.Steps)-1 && m.branch != nil:
		return m.comeBack()
	case m.state.Current == len(m.state.Steps)-1:
		return m.leaveTrack()
	default:
		return m.quick(func(s Session) error { s.Next(); return nil })
	}
	return nil
}

// asking says whether up and down choose an option just now.
func (m *program) asking(s *screen) bool {
	return !s.lookingBack() && m.call == nil && s.step.Phase == lab.Ready && len(s.step.Options) > 0 && m.sight.focus.kind == onProse
}

func (m *program) predict(option int) tea.Cmd {
	step := m.current()
	if m.sight.back >= 0 || m.call != nil || step.Phase != lab.Ready || option >= len(step.Options) {
		return nil
	}
	id := step.Options[option].ID
	return m.quick(func(s Session) error { return s.Predict(id) })
}

// choose moves the prediction to the option below or above.
func (m *program) choose(down bool) tea.Cmd {
	step := m.current()
	at := slices.IndexFunc(step.Options, func(o lab.Option) bool { return o.ID == step.Given })
	switch {
	case at < 0 && down:
		at = 0
	case at < 0:
		at = len(step.Options) - 1
	case down:
		at = min(at+1, len(step.Options)-1)
	default:
		at = max(at-1, 0)
	}
	return m.predict(at)
}

// lookBack shows an earlier step as it was; the current one where there is no earlier.
func (m *program) lookBack(step int) {
	if step < 0 {
		return
	}
	m.sight.proseScroll, m.sight.paneScroll, m.sight.logScroll, m.sight.review = 0, 0, 0, 0
	m.sight.back = step
	if step >= m.state.Current {
		m.sight.back = -1
	}
}

func (m *program) pause(s *screen) tea.Cmd {
	if !s.rewriting() || m.state.Progress.Migration != nil {
		return nil
	}
	hold := !m.state.Paused
	return m.quick(func(s Session) error { s.Pause(hold); return nil })
}

// otherRewriter has the step rewrite with the other of the two, while it is the learner's turn.
func (m *program) otherRewriter(s *screen) tea.Cmd {
	if !s.choosesRewriter() || m.call != nil {
		return nil
	}
	with := lesson.WithMigration
	if m.state.RewriteWith == lesson.WithMigration {
		with = lesson.WithPatch
	}
	return m.quick(func(s Session) error { return s.RewriteWith(with) })
}

// move takes the focus to the next place.
func (m *program) move(s *screen, by int) {
	stops := s.stops()
	at := slices.Index(stops, m.sight.focus)
	if at < 0 {
		at = 0
	}
	m.sight.focus = stops[(at+by+len(stops))%len(stops)]
	if m.sight.focus.kind != onProse {
		m.sight.shown = m.sight.focus
	}
	if m.sight.zoom != noZoom {
		m.sight.zoom = zoomOf(m.sight.focus, s.lay.form)
	}
}

// zoom gives what has the focus the screen for itself, and takes it back.
func (m *program) zoom(s *screen) {
	m.sight.paneScroll, m.sight.proseScroll = 0, 0
	if m.sight.zoom != noZoom {
		m.sight.zoom = noZoom
		return
	}
	m.sight.zoom = zoomOf(m.sight.focus, s.lay.form)
}

// zoomOf is the zoom of what has the focus; among tabs the log is one of them.
func zoomOf(f focus, in form) zoom {
	switch {
	case f.kind == onProse:
		return zoomProse
	case f.kind == onLog && in != formTabs:
		return zoomLog
	case f.kind == onReviews:
		return zoomReviews
	}
	return zoomPane
}

// another shows the next object of those that are held, and asks that it be held.
func (m *program) another(s *screen, by int) tea.Cmd {
	if s.lookingBack() && s.scene.obs == nil || s.scene.obs == nil || len(s.scene.obs.Objects) == 0 {
		return nil
	}
	objects := s.scene.obs.Objects
	at := s.scene.subjects[len(s.scene.subjects)-1].place - 1
	o := objects[(at+by+len(objects))%len(objects)]
	m.sight.selected, m.sight.paneScroll = o.Name, 0
	return m.quick(func(s Session) error { s.Select(o.Namespace, o.Name); return nil })
}

// scroll moves what has the focus; where all of a pane is in sight, the prose.
func (m *program) scroll(s *screen, by int) {
	clamp := func(at, most int) int { return min(max(0, at+by), most) }
	if m.sight.focus.kind == onReviews {
		m.chooseReview(s, by)
		return
	}
	if m.sight.focus.kind == onLog {
		m.sight.logScroll = min(max(0, m.sight.logScroll-by), max(0, len(s.exchanges())-1))
		return
	}
	if over := s.paneOverflow(); m.sight.focus.kind != onProse && over > 0 {
		m.sight.paneScroll = clamp(min(m.sight.paneScroll, over), over)
		return
	}
	over := s.proseOverflow()
	m.sight.proseScroll = clamp(min(m.sight.proseScroll, over), over)
}
