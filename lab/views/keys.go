package views

import (
	"slices"

	"charm.land/bubbles/v2/key"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/lesson"
)

// keyMap is every key of the program. The line at the bottom and the help are made of it.
type keyMap struct {
	Apply, Predict, Choose, Back, Forward, GoTo, Reset, ByHand, WhatIf, Pause, RewriteWith, Escape key.Binding
	NextPane, PrevPane, PrevObject, NextObject, Managers, Zoom                                     key.Binding
	Up, Down, PageUp, PageDown                                                                     key.Binding
	Export, Help, Suspend, Quit, Interrupt                                                         key.Binding
	Begin, Anew, NextGroup                                                                         key.Binding // of the start screen
	Faults, Switch, Heal, Try, TryAll                                                              key.Binding // of the webhook; all but the first in their dialogs
	Copy, File                                                                                     key.Binding // of the dialog by hand
	Hold, On                                                                                       key.Binding // of a track that is played by itself
}

func bind(help, does string, keys ...string) key.Binding {
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(help, does))
}

func newKeyMap() keyMap {
	return keyMap{
		Apply:       bind("enter", "apply, then go on", "enter"),
		Predict:     bind("1 2 …", "predict", "1", "2", "3", "4"),
		Choose:      bind("↑ ↓", "choose", "up", "down"),
		Back:        bind("← →", "look back", "left"),
		Forward:     bind("← →", "look back", "right"),
		GoTo:        bind("g", "go to a step", "g"),
		Reset:       bind("r", "reset the track", "r"),
		ByHand:      bind("K", "do it by hand", "K"),
		WhatIf:      bind("w", "what if: an accident", "w"),
		Pause:       bind("p", "pause a rewrite", "p"),
		RewriteWith: bind("v", "rewrite with patch, svm", "v"),
		Escape:      bind("esc", "cancel, return, leave", "esc"),
		Faults:      bind("f", "faults of the webhook", "f"),
		Switch:      bind("enter", "switch on or off", "enter", "space"),
		Heal:        bind("0", "heal", "0"),
		Try:         bind("t", "try", "t"),
		TryAll:      bind("a", "try all", "a"),

		NextPane:   bind("tab", "next pane or tab", "tab"),
		PrevPane:   bind("shift+tab", "previous pane or tab", "shift+tab"),
		PrevObject: bind("[ ]", "another object", "["),
		NextObject: bind("[ ]", "another object", "]"),
		Managers:   bind("m", "managedFields", "m"),
		Zoom:       bind("z", "zoom text, pane, log", "z"),
		Up:         bind("j k", "scroll", "k", "up"),
		Down:       bind("j k", "scroll", "j", "down"),
		PageUp:     bind("pgup pgdn", "by pages", "pgup"),
		PageDown:   bind("pgup pgdn", "by pages", "pgdown", "space"),

		Export:    bind("e", "export a report", "e"),
		Help:      bind("?", "these keys", "?"),
		Suspend:   bind("ctrl+z", "suspend", "ctrl+z"),
		Quit:      bind("q", "quit", "q"),
		Interrupt: bind("ctrl+c", "quit at once", "ctrl+c"),

		Begin:     bind("enter", "begin", "enter"),
		Anew:      bind("n", "begin anew", "n"),
		NextGroup: bind("tab", "next group", "tab"),
		Copy:      bind("c", "copy", "c"),
		File:      bind("o", "all in a file", "o"),
		Hold:      bind("space", "pause, go on", "space"),
		On:        bind("→ n", "next", "right", "n"),
	}
}

// group is a heading in the help, with its keys.
type group struct {
	name string
	keys []key.Binding
}

func (k keyMap) groups() []group {
	return []group{
		{"The step", []key.Binding{k.Apply, k.Predict, k.Back, k.GoTo, k.Reset, k.ByHand, k.WhatIf, k.Faults, k.Pause, k.RewriteWith, k.Escape}},
		{"The object", []key.Binding{k.NextPane, k.NextObject, k.Down, k.PageDown, k.Managers, k.Zoom}},
		{"The lab", []key.Binding{k.Export, k.Help, k.Suspend, k.Quit}},
	}
}

// playGroups are those of a track that is played by itself.
func (k keyMap) playGroups() []group {
	return []group{{"The play", []key.Binding{k.Hold, k.On}}, {"The lab", []key.Binding{k.Help, k.Suspend, k.Quit}}}
}

// hint is a key with what it does just now.
type hint struct{ key, does string }

func (b hint) as(does string) hint { return hint{b.key, does} }

func of(b key.Binding) hint { return hint{b.Help().Key, b.Help().Desc} }

// nextKeys are the keys of a state of the session: the first is the next one to press.
func (s *screen) nextKeys(k keyMap) []hint {
	if s.player != nil {
		return s.player.hints(k)
	}
	st := s.state
	var out []hint
	switch {
	case s.lookingBack():
		out = append(out, of(k.Escape).as("return to step "+number(st.Current+1)), of(k.Back).as("look back"))
	case s.rewriting() && st.Paused:
		out = append(out, of(k.Pause).as("go on"))
	case s.rewriting() && st.Progress.Migration == nil: // a controller cannot be held up
		out = append(out, of(k.Pause).as("pause"))
	case s.busy != "" || s.step.Phase == lab.Running:
		out = append(out, of(k.Escape).as("cancel"))
		if st.Webhook {
			out = append(out, of(k.Faults).as("faults"))
		}
	case s.failed() && s.state.Fault.ID != "":
		out = append(out, of(k.Faults).as("heal"), of(k.Apply).as("try again"), of(k.GoTo).as("go to"), of(k.Reset).as("reset"))
	case s.failed() && len(s.step.Hints) > 0: // to do the same again is not what they say
		out = append(out, of(k.GoTo).as("go to"), of(k.Reset).as("reset"), of(k.Apply).as("try again"))
	case s.failed():
		out = append(out, of(k.Apply).as("try again"), of(k.GoTo).as("go to"), of(k.Reset).as("reset"))
	case s.step.Phase == lab.Applied && st.Current == len(st.Steps)-1 && s.branch != nil:
		out = append(out, of(k.Apply).as(s.branch.place.wayBack()), of(k.Back).as("look back"), of(k.Reset).as("reset"))
	case s.step.Phase == lab.Applied && st.Current == len(st.Steps)-1:
		out = append(out, of(k.Apply).as("to the tracks"))
		if k.Export.Enabled() {
			out = append(out, of(k.Export))
		}
		out = append(out, of(k.Back).as("look back"), of(k.Reset).as("reset"))
	case s.step.Phase == lab.Applied:
		out = append(out, of(k.Apply).as("go on"), of(k.Back).as("look back"))
	default:
		out = append(out, of(k.Apply).as("apply"))
		if n := len(s.step.Options); n > 0 {
			out = append(out, hint{"1–" + number(n), "predict"})
		}
		if s.choosesRewriter() {
			out = append(out, of(k.RewriteWith).as("rewrite with: "+rewriter(st.RewriteWith)))
		}
		out = append(out, of(k.Back).as("look back"))
	}
	if s.branches() && !s.failed() {
		at := slices.IndexFunc(out, func(h hint) bool { return h.key == k.Back.Help().Key })
		out = slices.Insert(out, max(at, 1), of(k.WhatIf).as("what if"))
	} else if s.branch != nil && out[0].does != s.branch.place.wayBack() {
		out = slices.Insert(out, 1, of(k.WhatIf).as(s.branch.place.wayBack()))
	}
	out = append(out, of(k.NextPane).as("pane"), of(k.NextObject).as("object"))
	if st.Webhook && !slices.ContainsFunc(out, func(h hint) bool { return h.key == k.Faults.Help().Key }) {
		out = append(out, of(k.Faults).as("faults"))
	}
	return append(out, of(k.Managers), of(k.ByHand).as("by hand"), of(k.Zoom).as("zoom"), of(k.Help).as("keys"), of(k.Quit))
}

// choosesRewriter says whether the learner may choose just now with what objects are rewritten.
func (s *screen) choosesRewriter() bool {
	return s.state.Migrates && !s.lookingBack() && s.step.Phase == lab.Ready && s.step.Lesson != nil && s.step.Lesson.Rewrites
}

// rewriter is what a key offers to change.
func rewriter(with lesson.RewriteWith) string {
	if with == lesson.WithMigration {
		return "StorageVersionMigration"
	}
	return string(with)
}

func (s *screen) keyLine() string { return s.keyBar(s.lay.w, s.nextKeys(s.keys)) }

// keyBar draws keys on one line. They drop from the right; the last two, help and quit, keep their place.
func (p *pen) keyBar(w int, hints []hint) string {
	draw := func(h hint) string { return "   " + p.bold.of(h.key) + " " + p.dim.of(h.does) }
	last := hints[max(1, len(hints)-2):]
	kept := ""
	for _, h := range last {
		kept += draw(h)
	}
	line := " " + p.next(hints[0].key+" "+hints[0].does)
	for _, h := range hints[1:max(1, len(hints)-2)] {
		next := draw(h)
		if width(line)+width(next)+width(kept) > w {
			break
		}
		line += next
	}
	return fit(line+kept, w)
}
