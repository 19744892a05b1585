package views

import (
	"fmt"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/crdlab/crdlab/lab"
)

// dialog is a box over the screen that takes the keys. Dialogs are a stack; the topmost has them.
type dialog interface {
	// press answers a key: whether the dialog is done, and what is to be done then.
	press(m *program, k tea.KeyPressMsg) (done bool, cmd tea.Cmd)
	// draw makes the box, at most w by h.
	draw(m *program, w, h int) []string
}

// dialogBox draws lines in the heavy frame of a dialog.
func (p *pen) dialogBox(title, foot string, lines []string, w int) []string {
	return box(frame{line: p.fg, title: title, foot: foot, heavy: true}, inset(2, lines), w, len(lines)+2)
}

// help shows the keys, which come from the key map, and the signs.
type help struct{}

func (help) press(_ *program, _ tea.KeyPressMsg) (bool, tea.Cmd) { return true, nil }

func (help) draw(m *program, w, h int) []string {
	p := m.pen
	cw := min(36, (w-8)/2)
	keys := m.keys
	keys.RewriteWith.SetEnabled(m.state != nil && m.state.Migrates)
	keys.Faults.SetEnabled(m.state != nil && m.state.Webhook)
	keys.WhatIf.SetEnabled(m.branch != nil || m.state != nil && len(m.lab.accidents(m.state)) > 0)
	if m.branch != nil {
		keys.WhatIf.SetHelp(keys.WhatIf.Help().Key, m.branch.place.wayBack())
	}
	if n := m.mostOptions(); n > 0 {
		keys.Predict.SetHelp("1–"+number(n), keys.Predict.Help().Desc)
	}
	g := keys.groups()
	if m.player != nil {
		g = keys.playGroups()
	}
	col := func(gs ...group) []string {
		out := []string{""}
		for i, g := range gs {
			if i > 0 {
				out = append(out, "")
			}
			out = append(out, p.bold.of(g.name))
			for _, b := range g.keys {
				if !b.Enabled() {
					continue
				}
				out = append(out, "  "+fit(p.bold.of(b.Help().Key), 11)+p.dim.of(b.Help().Desc))
			}
		}
		return out
	}
	left, right := col(append(g[:1:1], g[2:]...)...), col(g[1])
	right = append(right, "", p.bold.of("The signs"))
	for _, s := range []struct{ sign, means string }{
		{p.okBold.of("+"), "new since last time"}, {p.warnBold.of("~"), "changed"}, {p.badBold.of("-"), "gone"},
		{p.warn.of("∅"), "not in this view"},
	} {
		right = append(right, "  "+fit(s.sign, 11)+p.dim.of(s.means))
	}
	for _, v := range p.versions {
		right = append(right, "  "+fit(p.hue(v).of(p.texture(v)), 11)+p.dim.of("bytes at ")+p.hue(v).of(v))
	}
	n := min(max(len(left), len(right)), h-3)
	body := beside("", block(left, cw, n), block(right, cw, n))
	return p.dialogBox(" "+p.bold.of("Keys and signs")+" ", p.noise.of("esc back"), append(body, ""), 2*cw+6)
}

// mostOptions is how many options a question of the track has at most; 0 where no track is open.
func (m *program) mostOptions() int {
	n := 0
	if m.state != nil {
		for _, s := range m.state.Steps {
			n = max(n, len(s.Options))
		}
	}
	return n
}

// resetting asks before all is begun anew.
type resetting struct{}

func (resetting) press(m *program, k tea.KeyPressMsg) (bool, tea.Cmd) {
	if key.Matches(k, m.keys.Apply) || k.String() == "y" {
		return true, m.run("reset", m.session.Reset)
	}
	return true, nil
}

func (resetting) draw(m *program, w, _ int) []string {
	p := m.pen
	w = min(w-4, 66)
	lines := append([]string{""}, p.flow(p.clearly(), "The lab removes the CRD and the objects that it made, and begins the track anew. Of your predictions, those of the first tries stay counted.", w-6, "", "")...)
	lines = append(lines, "", p.next("enter reset")+"   "+p.bold.of("esc")+p.dim.of(" back"), "")
	return p.dialogBox(" "+p.bold.of("Reset the track?")+" ", "", lines, w)
}

// goingTo is the list of steps to go to.
type goingTo struct{ at int }

func (d *goingTo) press(m *program, k tea.KeyPressMsg) (bool, tea.Cmd) {
	n := len(m.state.Steps)
	if number := k.String(); len(number) == 1 && number >= "1" && number <= "9" {
		d.at = min(int(number[0]-'1'), n-1)
		return false, nil
	}
	switch {
	case key.Matches(k, m.keys.Down):
		d.at = min(d.at+1, n-1)
	case key.Matches(k, m.keys.Up):
		d.at = max(d.at-1, 0)
	case key.Matches(k, m.keys.Apply):
		step := m.state.Steps[d.at].ID
		session := m.session
		return true, m.run("go to "+step, contextual(session.GoTo, step))
	case key.Matches(k, m.keys.Escape), key.Matches(k, m.keys.GoTo), key.Matches(k, m.keys.Quit):
		return true, nil
	}
	return false, nil
}

func (d *goingTo) draw(m *program, w, h int) []string {
	p := m.pen
	w = min(w-4, 66)
	lines := []string{""}
	lines = append(lines, p.flow(p.quietly(), "The track is reset, and replayed up to the step that you choose.", w-6, "", "")...)
	lines = append(lines, "")
	room := max(3, h-len(lines)-5)
	from := min(max(0, d.at-room/2), max(0, len(m.state.Steps)-room))
	for i := from; i < min(len(m.state.Steps), from+room); i++ {
		step := m.state.Steps[i]
		sign := " "
		if step.Phase == lab.Applied {
			sign = p.ok.of("✓")
		}
		l := fmt.Sprintf("%2d ", i+1)
		if i == d.at {
			l = p.raise.under(fit(p.bold.of("▸ "+l)+sign+" "+p.loud(p.bold, clean(step.Title)), w-6))
		} else {
			l = "  " + p.noise.of(l) + sign + " " + p.say(p.dim, clean(step.Title))
		}
		lines = append(lines, l)
	}
	lines = append(lines, "", p.next("enter go there")+"   "+p.bold.of("↑ ↓ 1–9")+p.dim.of(" choose")+"   "+p.bold.of("esc")+p.dim.of(" back"), "")
	return p.dialogBox(" "+p.bold.of("Go to a step")+" ", "", lines, w)
}
