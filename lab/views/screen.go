package views

import (
	"time"

	"github.com/crdlab/crdlab/lab"
)

// focus is where the keys go that scroll.
type focus struct {
	kind focusKind
	pane int // of onPane
}

type focusKind int

const (
	onProse focusKind = iota
	onPane
	onBoth // the oldest and the newest version beside each other; only where panes are tabs
	onLog
	onReviews // only in tracks with a webhook
)

// sight is what the learner has chosen to see of a session. It says nothing about the cluster.
type sight struct {
	focus       focus
	shown       focus // the tab that stays where the prose has the focus
	zoom        zoom
	back        int    // the step that is looked back at; -1 for the current one
	selected    string // the object that the learner chose; the step's own where empty
	managers    bool   // m was pressed: managedFields are shown; hidden in a step that shows them by itself
	proseScroll int
	paneScroll  int
	logScroll   int // how many of the newest exchanges are below the window
	review      int // the place of the chosen review in its log; 0: the newest, whichever that is
	sidesScroll int // of a review's objects
	notice      notice
}

// notice is a message that stays until the next key.
type notice struct {
	text string
	bad  bool
}

// screen draws one picture of a session. It changes nothing.
type screen struct {
	*pen
	sight
	lay    layout
	state  *lab.State
	branch *branch   // nil where it is of the track that the learner chose
	step   *lab.Step // the one that is shown
	scene  *scene
	busy   string // the call that is going on
	aside  bool   // the explanation stands in the card
	keys   keyMap
	now    time.Time

	player *player // nil where somebody goes through the track
}

func (s *screen) lookingBack() bool { return s.step.Index != s.state.Current }

// rewriting says that a rewrite is going on in the step that is shown.
func (s *screen) rewriting() bool {
	p := s.state.Progress
	return p != nil && !p.Finished && s.step.Phase == lab.Running && !s.lookingBack()
}

// tabs are the panes, and what else can stand in their place.
func (s *screen) tabs() []focus {
	var out []focus
	for i := range s.scene.etcdPane() + 1 {
		out = append(out, focus{onPane, i})
	}
	return s.withReviews(append(out, focus{onBoth, 0}, focus{onLog, 0}))
}

func (s *screen) withReviews(stops []focus) []focus {
	if s.state.Webhook {
		stops = append(stops, focus{onReviews, 0})
	}
	return stops
}

// stops are all that tab goes through.
func (s *screen) stops() []focus {
	if s.lay.form == formTabs {
		return append([]focus{{onProse, 0}}, s.tabs()...)
	}
	out := []focus{{onProse, 0}}
	for i := range s.scene.etcdPane() + 1 {
		out = append(out, focus{onPane, i})
	}
	return s.withReviews(append(out, focus{onLog, 0}))
}

// settle lays the screen out, and gives the text over the panes what room they can spare.
func (s *screen) settle(w, h int, m measures) {
	s.lay = arrange(w, h, m)
	if s.lay.form == formSmall || s.lay.zoomOn != noZoom {
		return
	}
	spare := max(0, s.lay.panes[0].h-s.scene.least(s.step.Verdict != nil || len(wanted(s.step)) > 1))
	band := s.lay.prose.h
	text, card := s.needed()
	need := max(text, card)
	if s.aside = s.canStandAside(); s.aside {
		text, card = s.needed()
		beside := max(text, card)
		s.aside = card <= band || card <= band+spare && beside <= need
		if s.aside {
			need = beside
		}
	}
	if m.more = min(need-band, spare); m.more > 0 {
		s.lay = arrange(w, h, m)
	}
}

// canStandAside says whether there is an explanation, and a card under whose options it could stand.
func (s *screen) canStandAside() bool {
	return !s.lay.card.empty() && s.step.Phase == lab.Applied && s.step.Explanation != "" && !s.failed()
}

// needed is how many lines the text over the panes would have to have, and the card beside it. While a step runs it is
// what it was before, so that nothing moves for a moment.
func (s *screen) needed() (text, card int) {
	w := s.measure()
	switch {
	case s.step.Phase == lab.Running:
		text = 2 + len(s.before(w))
	default:
		text = len(s.told(w))
	}
	if s.lay.card.empty() {
		if s.step.Phase == lab.Ready && s.step.Err == nil || s.step.Phase == lab.Running {
			text += len(s.changes(w, true)) + len(s.question(w, false)) + 1
		}
		return text, 0
	}
	if s.step.Phase != lab.Running {
		card = len(s.cardBody(s.lay.card.w-5)) + 2
	}
	return text, card
}

// lines draws the whole screen: exactly as many lines as it is high, each exactly as wide.
func (s *screen) lines() []string {
	l := s.lay
	parts := []part{
		{l.head, []string{s.head()}},
		{l.notice, []string{s.noticeLine()}},
		{l.fault, []string{s.faultSign()}},
		{l.keys, []string{s.keyLine()}},
	}
	switch l.zoomOn {
	case zoomLog:
		parts = append(parts, part{l.log, s.log()})
	case zoomReviews:
		parts = append(parts, part{l.reviews, s.zoomedReviews(l.reviews)})
	case zoomProse:
		parts = append(parts, part{l.prose, s.proseBand()})
	case zoomPane:
		parts = append(parts, s.panes()...)
	default:
		parts = append(parts, part{l.rail, s.rail()}, part{l.prose, s.proseBand()}, part{l.card, s.card()},
			part{l.table, s.table()}, part{l.log, s.log()}, part{l.reviews, s.reviewBand(l.reviews)})
		parts = append(parts, s.panes()...)
	}
	return compose(l.w, l.h, parts)
}
