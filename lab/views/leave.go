package views

import (
	"context"
	"errors"
	"slices"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
)

// leftMsg says that the session of a track has ended, and where the learner left it.
type leftMsg struct {
	track string
	left  Left
	err   error
}

// leaveTrack goes back to the list of tracks. The session ends behind it; the next one begins when it has.
func (m *program) leaveTrack() tea.Cmd {
	session, track := m.session, m.state.Track.ID
	m.cancelCall()
	m.call = nil
	switched := m.stopSwitching()
	earlier, ended := m.queue()
	m.session, m.reader, m.state, m.scene, m.faulting, m.dialogs = nil, nil, nil, nil, nil, nil
	m.sight = sight{back: -1}
	m.start.chosen = max(0, slices.IndexFunc(flattened(grouped(m.lab.Tracks)), func(t TrackInfo) bool { return t.ID == track }))
	m.ink()
	return func() tea.Msg {
		<-earlier
		defer close(ended)
		<-switched
		msg := leftMsg{track: track, err: m.sessions.end(m.ctx, session)}
		if m.lab.Left != nil {
			msg.left = m.lab.Left(m.ctx, track)
		}
		return msg
	}
}

// left takes over where the learner left a track.
func (m *program) left(msg leftMsg) {
	for i, t := range m.lab.Tracks {
		if t.ID == msg.track && m.lab.Left != nil {
			m.lab.Tracks[i].Left = msg.left
		}
	}
	if msg.err != nil && !errors.Is(msg.err, context.Canceled) {
		m.sight.notice = notice{text: msg.err.Error(), bad: true}
	}
}

// leavingTrack asks before a track is left by a key that people press for less.
type leavingTrack struct{}

func (leavingTrack) press(m *program, k tea.KeyPressMsg) (bool, tea.Cmd) {
	if key.Matches(k, m.keys.Apply) || k.String() == "y" {
		return true, m.leaveTrack()
	}
	return true, nil
}

func (leavingTrack) draw(m *program, w, _ int) []string {
	p := m.pen
	w = min(w-4, 66)
	lines := append([]string{""}, p.flow(p.clearly(), "It leads to the list of tracks. You can go on here later, at the step where you are now.", w-6, "", "")...)
	lines = append(lines, "", p.next("enter leave")+"   "+p.bold.of("esc")+p.dim.of(" stay"), "")
	return p.dialogBox(" "+p.bold.of("Leave the track?")+" ", "", lines, w)
}
