package views

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/crdlab/crdlab/lab/conversion"
)

// faultSign says, in the rule of every screen, what is wrong with the webhook; empty where nothing is.
func (s *screen) faultSign() string {
	if s.state.Fault.ID == "" {
		return ""
	}
	return " " + s.badBold.of("✗ fault: "+clean(s.state.Fault.ID)) + "  " + s.bold.of("f") + s.dim.of(" heals") + " " + s.line.of("──")
}

// faulting is a fault that is being switched on, or healed where its id is empty.
type faulting struct {
	id     string
	cancel context.CancelFunc
	done   chan struct{}
}

// faultMsg says how the switching went.
type faultMsg struct {
	reading
	of  *faulting
	err error
}

// switchFault switches a fault on in place of the one before. It waits for nobody but the switching before, which it cancels:
// a step may be at work meanwhile, or hang.
func (m *program) switchFault(id string) tea.Cmd {
	earlier := m.faulting
	if earlier != nil {
		earlier.cancel()
	}
	ctx, cancel := context.WithCancel(m.ctx)
	now := &faulting{id, cancel, make(chan struct{})}
	m.faulting = now
	from := m.reader
	return func() tea.Msg {
		defer cancel()
		defer close(now.done)
		if earlier != nil {
			<-earlier.done
		}
		err := from.session.SetFault(ctx, id)
		return faultMsg{from.read(), now, err}
	}
}

// stopSwitching cancels the switching that goes on, and returns what is closed when none does.
func (m *program) stopSwitching() <-chan struct{} {
	if m.faulting != nil {
		m.faulting.cancel()
		return m.faulting.done
	}
	none := make(chan struct{})
	close(none)
	return none
}

func (m *program) faulted(msg faultMsg) {
	m.shown(msg.reading)
	if msg.of != m.faulting {
		return // another key was pressed since
	}
	m.faulting = nil
	if msg.err == nil || errors.Is(msg.err, context.Canceled) {
		return
	}
	m.sight.notice = notice{text: msg.err.Error(), bad: true}
	for _, d := range m.dialogs {
		if f, ok := d.(*faults); ok {
			f.failed = msg.err.Error()
		}
	}
}

// fault is the one that is on, or will be as soon as it is switched.
func (m *program) fault() string {
	if m.faulting != nil {
		return m.faulting.id
	}
	return m.state.Fault.ID
}

// faults is the list of what can be wrong with the webhook.
type faults struct {
	all    []conversion.Fault
	at     int
	failed string      // why the last one could not be switched
	table  *faultTable // in its place; nil where the list is shown
}

// openFaults shows the list, at the fault that is on, so that enter heals it.
func (m *program) openFaults() {
	if !m.state.Webhook {
		m.sight.notice = notice{text: "The track " + m.state.Track.ID + " has no webhook: there is nothing that f could switch."}
		return
	}
	d := &faults{all: conversion.Faults()}
	d.at = max(0, d.index(m.fault()))
	m.dialogs = append(m.dialogs, d)
}

func (d *faults) index(id string) int {
	return slices.IndexFunc(d.all, func(f conversion.Fault) bool { return f.ID == id })
}

func (d *faults) press(m *program, k tea.KeyPressMsg) (bool, tea.Cmd) {
	if d.table != nil {
		done, cmd := d.table.press(m, k)
		if done {
			d.at, d.table = max(0, d.index(d.table.ids[d.table.at])), nil
		}
		return false, cmd
	}
	move := func(by int) { d.at = min(max(0, d.at+by), len(d.all)-1) }
	switch keys := m.keys; {
	case key.Matches(k, keys.Switch): // before the pages: space is one of them elsewhere
		d.failed = ""
		if id := d.all[d.at].ID; id != m.fault() {
			return false, m.switchFault(id)
		}
		return false, m.switchFault("")
	case key.Matches(k, keys.Heal):
		d.failed = ""
		return false, m.switchFault("")
	case key.Matches(k, keys.Try):
		table, cmd := newTable(m, d.all[d.at].ID)
		d.table = table
		return false, cmd
	case key.Matches(k, keys.Down):
		move(1)
	case key.Matches(k, keys.Up):
		move(-1)
	case key.Matches(k, keys.PageDown):
		move(8)
	case key.Matches(k, keys.PageUp):
		move(-8)
	case key.Matches(k, keys.Escape), key.Matches(k, keys.Faults), key.Matches(k, keys.Quit):
		return true, nil
	}
	return false, nil
}

func (d *faults) draw(m *program, w, h int) []string {
	if d.table != nil {
		return d.table.draw(m, w, h)
	}
	p := m.pen
	w = min(w-4, 112)
	in := w - 6
	foot := d.said(m, in)
	room := max(3, min(len(d.all), h-2-2-len(foot)))
	from := min(max(0, d.at-room/2), len(d.all)-room)
	lines := []string{""}
	for i := from; i < from+room; i++ {
		lines = append(lines, d.line(m, i, in))
	}
	note := ""
	if more := len(d.all) - from - room; more > 0 {
		note = p.noise.of(fmt.Sprintf("↓ %d more", more))
	}
	return p.dialogBox(" "+p.bold.of("Faults of the webhook")+" ", note, append(lines, foot...), w)
}

func (d *faults) line(m *program, i, w int) string {
	p, f := m.pen, d.all[i]
	name, does := p.fg, p.dim
	sign := " "
	switch {
	case m.faulting != nil && m.faulting.id == f.ID:
		sign = p.bold.of("◐")
	case m.state.Fault.ID == f.ID:
		sign, name = p.badBold.of("✗"), p.badBold
	}
	if i == d.at {
		return p.raise.under(fit(p.bold.of("▸ ")+sign+" "+p.bold.of(fit(f.ID, 21))+p.fg.of(f.Does), w))
	}
	return fit("  "+sign+" "+name.of(fit(f.ID, 21))+does.of(f.Does), w)
}

// said is below the list: what the chosen fault does, whole, what is on, and the keys.
func (d *faults) said(m *program, w int) []string {
	p, chosen := m.pen, d.all[d.at]
	out := []string{""}
	does := p.flow(p.clearly(), chosen.Does, w, "", "")
	if width(chosen.Does)+25 > w {
		for len(does) < 2 { // so that the list does not move
			does = append(does, "")
		}
		out = append(out, append(does, "")...)
	} else if w < 90 {
		out = append(out, "", "", "")
	}
	action := "switch on"
	if chosen.ID == m.fault() {
		action = "heal"
	}
	keys := p.next("enter "+action) + "   " + p.bold.of("0") + p.dim.of(" heal") + "   " + p.bold.of("t") + p.dim.of(" try every operation") + "   " + p.bold.of("↑ ↓") + p.dim.of(" choose") + "   " + p.bold.of("esc") + p.dim.of(" back")
	out = append(out, d.state(m), "", fit(keys, w))
	if d.failed != "" {
		out = append(out, "")
		out = append(out, p.flow(p.clearly(), d.failed, w, p.badBold.of("✗ "), "  ")...)
	}
	return append(out, "")
}

// state says what is on.
func (d *faults) state(m *program) string {
	p := m.pen
	switch id := m.fault(); {
	case m.faulting != nil && id == "":
		return p.bold.of("◐ ") + p.fg.of("healing …")
	case m.faulting != nil:
		return p.bold.of("◐ ") + p.fg.of("switching on "+id+" …")
	case id != "":
		return p.badBold.of("✗ "+id+" is on") + p.dim.of(": look at what the API server answers now")
	}
	return p.ok.of("✓ ") + p.dim.of("the webhook is well")
}
