package views

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/conversion/bench"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
)

// program is the Bubble Tea model. Update never waits: whatever asks a session or the cluster is a command with a
// context.
type program struct {
	ctx  context.Context
	lab  *Lab
	keys keyMap

	theme   string
	profile colorprofile.Profile
	ground  background
	pen     *pen
	w, h    int
	clock   func() time.Time

	start    start
	sessions *sessions
	session  Session    // nil on the start screen
	branch   *branch    // nil where the session is of the track that the learner chose
	reader   *reader    // of its states
	newest   int        // the number of the newest reading that was shown
	state    *lab.State // of the session
	sight    sight
	call     *call           // what is going on
	queued   <-chan struct{} // closed when the call of the last key has begun, or is done if it is a quick one
	dialogs  []dialog
	faulting *faulting               // a fault that is being switched
	tried    map[string][]bench.Cell // what became of every operation, by the fault
	leaving  bool                    // q was pressed while a step is at work: once more, and it quits
	player   *player                 // who goes through the track by itself; nil where somebody does

	scene    *scene
	sceneFor sceneKey

	ticking     bool // a tick is under way
	interrupted bool
}

// call is one call to the session that takes its time.
type call struct {
	name   string
	cancel context.CancelFunc
}

func newProgram(ctx context.Context, l *Lab, o Options) (*program, error) {
	theme, err := ParseTheme(o.Theme)
	if err != nil {
		return nil, err
	}
	if o.NoColor {
		theme = "none"
	}
	m := &program{ctx: ctx, lab: l.own(), keys: newKeyMap(), theme: theme, profile: o.Profile, w: o.Width, h: o.Height,
		clock: time.Now, sessions: &sessions{}}
	m.keys.Export.SetEnabled(l.Report != nil)
	m.start.wanted = o.Track
	m.start.chosen = max(0, slices.IndexFunc(flattened(grouped(m.lab.Tracks)), func(t TrackInfo) bool { return t.ID == l.Chosen }))
	m.sight.notice = notice{text: l.Notice, bad: l.Notice != ""}
	m.start.began = m.clock()
	m.sight.back = -1
	m.ink()
	return m, nil
}

// ink makes the pen anew: for another theme, or another track.
func (m *program) ink() {
	var versions []string
	switch tracks := flattened(grouped(m.lab.Tracks)); {
	case m.state != nil:
		versions = m.state.Track.Versions
	case len(tracks) > 0:
		versions = tracks[min(m.start.chosen, len(tracks)-1)].Versions
	}
	m.pen = newPen(themeFor(m.theme, m.profile, m.ground), versions)
}

// Messages of the program's own commands.
type (
	startedMsg struct{ err error }
	phaseMsg   struct {
		Phase
		open bool
	}
	openedMsg struct {
		track   string
		session Session
		err     error
		branch  *branch // nil where it is of the track that the learner chose
	}
	stateMsg struct {
		reading
		changed <-chan struct{}
	}
	unavailableMsg struct{ why map[string]string }
	calledMsg      struct {
		reading
		call *call
		err  error
	}
	tickMsg struct{}
)

// Init starts the cluster behind the first frame.
func (m *program) Init() tea.Cmd {
	cmds := []tea.Cmd{m.startCluster(), m.hearPhase(), m.keepTicking()}
	if m.theme == "auto" || m.theme == "16" {
		cmds = append(cmds, tea.RequestBackgroundColor)
	}
	return tea.Batch(cmds...)
}

func (m *program) startCluster() tea.Cmd {
	if m.lab.Start == nil {
		return nil
	}
	return func() tea.Msg { return startedMsg{m.lab.Start(m.ctx)} }
}

func (m *program) hearPhase() tea.Cmd {
	if m.lab.Phases == nil {
		return nil
	}
	return func() tea.Msg {
		select {
		case p, open := <-m.lab.Phases:
			return phaseMsg{p, open}
		case <-m.ctx.Done():
			return nil
		}
	}
}

// keepTicking keeps the seconds running of a start, and of an answer that is waited for.
func (m *program) keepTicking() tea.Cmd {
	starting := !m.start.live && m.start.err == nil
	waiting := m.state != nil && m.state.Waiting != nil
	if m.ticking || !starting && !waiting {
		return nil
	}
	m.ticking = true
	return tea.Tick(200*time.Millisecond, func(time.Time) tea.Msg { return tickMsg{} })
}

// Update takes a message. It does no work that could take longer than a frame.
func (m *program) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
	case tea.ColorProfileMsg:
		m.profile = msg.Profile
		m.ink()
	case tea.BackgroundColorMsg:
		m.ground = lightGround
		if msg.IsDark() {
			m.ground = darkGround
		}
		m.ink()
	case tea.KeyPressMsg:
		return m, m.press(msg)
	case tickMsg:
		m.ticking = false
		return m, m.keepTicking()
	case startedMsg:
		return m, m.started(msg.err)
	case phaseMsg:
		return m, m.heardPhase(msg)
	case unavailableMsg:
		m.lab.unavailable(msg.why)
	case openedMsg:
		return m, m.opened(msg)
	case stateMsg:
		m.shown(msg.reading)
		if msg.reader == m.reader {
			return m, tea.Batch(follow(m.ctx, m.reader, msg.changed, frameTime), m.keepTicking())
		}
	case calledMsg:
		m.called(msg)
		return m, m.keepTicking()
	case faultMsg:
		m.faulted(msg)
	case triedMsg:
		return m, m.heardTried(msg)
	case leftMsg:
		m.left(msg)
	case savedMsg:
		m.saved(msg)
	}
	return m, nil
}

func (m *program) started(err error) tea.Cmd {
	if err != nil {
		if m.ctx.Err() == nil {
			m.start.err = err
		}
		return nil
	}
	if m.lab.Phases == nil {
		return m.live()
	}
	return nil
}

func (m *program) heardPhase(msg phaseMsg) tea.Cmd {
	if !msg.open {
		return m.live()
	}
	m.start.heard(msg.Phase, m.clock())
	return m.hearPhase()
}

// live begins the track that is waited for.
func (m *program) live() tea.Cmd {
	if m.start.err != nil {
		return nil
	}
	m.start.live = true
	if wanted := m.start.wanted; wanted != "" {
		m.start.wanted = ""
		return tea.Batch(m.askAvailable(), m.open(wanted))
	}
	return m.askAvailable()
}

// askAvailable finds out which tracks the live cluster cannot carry. Where that fails, a track says so when it begins.
func (m *program) askAvailable() tea.Cmd {
	if m.lab.Unavailable == nil {
		return nil
	}
	return func() tea.Msg {
		why, err := m.lab.Unavailable(m.ctx)
		if err != nil {
			return nil
		}
		return unavailableMsg{why}
	}
}

// open begins a track, or notes that it is to begin as soon as the cluster is live.
func (m *program) open(track string) tea.Cmd {
	for _, t := range m.lab.Tracks {
		if t.ID == track && t.Unavailable != "" {
			m.sight.notice = notice{text: t.Title + ": " + t.Unavailable, bad: true}
			return nil
		}
	}
	if !m.start.live {
		m.start.wanted = track
		return nil
	}
	ctx, cancel := context.WithCancel(m.ctx)
	way, name := m.lab.Open, "opening "+track
	if m.start.goOn > 0 {
		way, name = m.lab.GoOn, fmt.Sprintf("rebuilding %s up to step %d", track, m.start.goOn)
	}
	m.call = &call{name, cancel}
	earlier, begun := m.queue()
	return func() tea.Msg {
		<-earlier // the track before may still be ending
		close(begun)
		s, err := m.sessions.open(ctx, way, track)
		return openedMsg{track, s, err, nil}
	}
}

func (m *program) opened(msg openedMsg) tea.Cmd {
	if m.call != nil {
		m.call.cancel()
		m.call = nil
	}
	switch {
	case msg.branch != nil:
		return m.branched(msg)
	case msg.err != nil && !errors.Is(msg.err, context.Canceled):
		m.sight.notice = notice{text: msg.err.Error(), bad: true}
	case msg.err == nil:
		return m.take(msg.session)
	}
	return nil
}

// take takes a session onto the screen, and follows it.
func (m *program) take(s Session) tea.Cmd {
	m.begin(s)
	changed := s.Changed()
	m.show(s.State())
	m.ink()
	return follow(m.ctx, m.reader, changed, 0)
}

// begin makes a session the one that is shown.
func (m *program) begin(s Session) {
	m.session, m.reader, m.newest = s, &reader{session: s}, 0
	m.state, m.sight, m.faulting, m.tried = nil, sight{back: -1}, nil, map[string][]bench.Cell{}
}

// show takes a new state; where a step began or ended, the eye is led to what matters then.
func (m *program) show(st *lab.State) {
	before := m.state
	m.state = st
	if before == nil || before.Current != st.Current || before.Track != st.Track {
		m.sight.selected, m.sight.back = "", -1
		m.lead()
		return
	}
	if was, is := before.Steps[st.Current].Phase, st.Steps[st.Current].Phase; was != is {
		m.lead()
	}
	if m.sight.back >= len(st.Steps) {
		m.sight.back = -1
	}
}

// lead puts the focus where the phase wants it: on the question, then on what the newest version shows, where the panes
// are tabs on the bytes.
func (m *program) lead() {
	m.sight.proseScroll, m.sight.paneScroll, m.sight.logScroll, m.sight.review = 0, 0, 0, 0
	last := len(m.state.Track.Versions)
	step := m.state.Steps[m.state.Current]
	newest, bytes := focus{onPane, 0}, focus{onPane, last}
	for i, v := range m.state.Track.Versions {
		if m.state.Live.Version(v) != nil {
			newest.pane = i
		}
	}
	m.sight.focus, m.sight.shown = focus{onProse, 0}, newest
	if step.Phase == lab.Ready || step.Phase == lab.Coming {
		return
	}
	m.sight.focus, m.sight.shown = newest, bytes
	failed := step.Err != nil || step.Phase == lab.Applied && step.Result == lesson.Failed
	if failed || formFor(m.w, m.h) == formTabs {
		m.sight.focus = focus{onProse, 0}
	}
}

// press takes a key: those that work everywhere, then the topmost dialog's, then the screen's.
func (m *program) press(k tea.KeyPressMsg) tea.Cmd {
	m.sight.notice = notice{}
	leaving := m.leaving
	m.leaving = false
	switch {
	case key.Matches(k, m.keys.Suspend):
		return tea.Suspend
	case key.Matches(k, m.keys.Interrupt):
		m.interrupted = m.player == nil || !m.player.over // a play that has come to its end is whole
		return tea.Quit
	}
	if n := len(m.dialogs); n > 0 {
		d := m.dialogs[n-1]
		done, cmd := d.press(m, k)
		if done {
			m.dialogs = m.dialogs[:n-1]
		}
		return cmd
	}
	if m.player != nil {
		return m.player.press(m, k)
	}
	switch {
	case key.Matches(k, m.keys.Quit):
		return m.leave(leaving)
	case leaving && key.Matches(k, m.keys.Escape):
		return nil
	case key.Matches(k, m.keys.Help):
		m.dialogs = append(m.dialogs, help{})
		return nil
	}
	if m.session == nil {
		before := m.start.chosen
		cmd := m.pressStart(k)
		if m.start.chosen != before {
			m.ink()
		}
		return cmd
	}
	return m.pressSession(k)
}

// leave quits; where a step is at work, and gets on, only when it is asked for a second time.
func (m *program) leave(again bool) tea.Cmd {
	if again || m.state == nil || m.current().Phase != lab.Running || m.stuck() {
		return tea.Quit
	}
	what := "the step is being applied"
	if m.screen().rewriting() || m.state.Paused {
		what = "a rewrite is going on"
	}
	m.leaving = true
	m.sight.notice = notice{text: what + ": q again quits, esc stays"}
	return nil
}

// stuck says that the cluster keeps the lab waiting.
func (m *program) stuck() bool {
	p := m.state.Progress
	return m.state.Trouble != nil || m.state.Waiting != nil || p != nil && p.Waiting != ""
}

// View draws the screen.
func (m *program) View() tea.View {
	v := tea.NewView(strings.Join(m.lines(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "crdlab"
	if m.state != nil {
		v.WindowTitle = "crdlab " + clean(m.state.Track.ID)
	}
	return v
}

// lines are the screen: as many as it is high, each as wide as it is.
func (m *program) lines() []string {
	switch {
	case m.w <= 0 || m.h <= 0:
		return nil
	case formFor(m.w, m.h) == formSmall:
		return small(m.w, m.h)
	}
	var out []string
	if m.session == nil {
		out = m.startLines()
	} else {
		out = m.screen().lines()
	}
	for _, d := range m.dialogs {
		out = over(out, d.draw(m, m.w, m.h), m.pen.line)
	}
	return out
}

// screen gathers what one picture needs. The scene is kept: it is made anew only for other observations.
func (m *program) screen() *screen {
	s := &screen{pen: m.pen, sight: m.sight, state: m.state, branch: m.branch, keys: m.keys, now: m.clock(), player: m.player}
	at := m.state.Current
	if m.sight.back >= 0 {
		at = m.sight.back
	}
	s.step = m.state.Steps[at]
	obs, was := m.observed(s.step)
	managers := m.sight.managers
	if s.step.Lesson != nil && s.step.Lesson.ShowManagers { // then the key hides them
		managers = !managers
	}
	if want := (sceneKey{obs, was, s.step, m.sight.selected, managers}); m.scene == nil || want != m.sceneFor {
		m.scene, m.sceneFor = newScene(m.state, s.step, obs, was, m.sight.selected, managers), want
	}
	m.scene.state = m.state
	s.scene = m.scene
	if m.call != nil {
		s.busy = m.call.name
	}
	s.settle(m.w, m.h, measures{panes: len(m.scene.versions) + 1, versions: len(tableVersions(m.scene)), zoom: m.sight.zoom,
		fault: width(s.faultSign()), reviews: m.state.Webhook})
	return s
}

// observed is what a step shows, and what its marks compare with.
func (m *program) observed(step *lab.Step) (obs, was *evidence.Observation) {
	was = step.Before
	if was == nil && step.Index > 0 {
		was = m.state.Steps[step.Index-1].After
	}
	obs = m.state.Live
	if step.Index != m.state.Current {
		obs = step.After
		if obs == nil {
			obs = step.Before
		}
	}
	return obs, was
}

func (m *program) current() *lab.Step { return m.state.Steps[m.state.Current] }

// done says whether the learner may go on.
func done(step *lab.Step) bool { return step.Phase == lab.Applied && step.Result != lesson.Failed }

// export writes a report.
func (m *program) export() tea.Cmd {
	state := m.state
	return func() tea.Msg {
		path, err := m.lab.Report(state)
		if err != nil {
			err = fmt.Errorf("write the report: %w", err)
		}
		return savedMsg{what: "the report", path: path, err: err}
	}
}
