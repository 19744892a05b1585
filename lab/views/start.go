package views

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/crdlab/crdlab/lab/lesson"
)

// start is the first screen: the tracks, and how far the cluster is.
type start struct {
	chosen int // of the tracks, in the order of the groups
	phases []seenPhase
	live   bool
	err    error  // the cluster could not be started
	wanted string // the track to open as soon as the cluster is live
	goOn   int    // the number of the step at which it goes on; 0: it begins anew
	began  time.Time
}

// seenPhase is a phase and when it was first heard of.
type seenPhase struct {
	Phase
	since time.Time
}

// heard notes how a phase goes: the newest of a name counts.
func (s *start) heard(p Phase, now time.Time) {
	for i := range s.phases {
		if s.phases[i].Name == p.Name {
			s.phases[i].Phase = p
			return
		}
	}
	s.phases = append(s.phases, seenPhase{p, now})
}

// trackGroup is a heading with its tracks.
type trackGroup struct {
	title, about string
	tracks       []TrackInfo
	first        int // index of its first track among all
}

// grouped puts the tracks in the order of the groups.
func grouped(tracks []TrackInfo) []trackGroup {
	var out []trackGroup
	n := 0
	for _, g := range []struct {
		id           lesson.Group
		title, about string
	}{
		{lesson.Migration, "The migration", ""}, {lesson.Webhook, "The webhook", "conversion through a Service"}, {lesson.Pitfalls, "Pitfalls", ""},
	} {
		group := trackGroup{title: g.title, about: g.about, first: n}
		for _, t := range tracks {
			if t.Group == g.id {
				group.tracks = append(group.tracks, t)
			}
		}
		if len(group.tracks) == 0 {
			continue
		}
		n += len(group.tracks)
		switch g.id {
		case lesson.Migration:
			group.about = "strategy " + group.tracks[0].Strategy
		case lesson.Pitfalls:
			group.about = number(len(group.tracks)) + ", each short, each with the way back"
		}
		out = append(out, group)
	}
	return out
}

func flattened(groups []trackGroup) []TrackInfo {
	var out []TrackInfo
	for _, g := range groups {
		out = append(out, g.tracks...)
	}
	return out
}

// pressStart answers a key on the start screen.
func (m *program) pressStart(k tea.KeyPressMsg) tea.Cmd {
	groups := grouped(m.lab.Tracks)
	tracks := flattened(groups)
	switch {
	case key.Matches(k, m.keys.Down):
		m.start.chosen = min(m.start.chosen+1, max(0, len(tracks)-1))
	case key.Matches(k, m.keys.Up):
		m.start.chosen = max(m.start.chosen-1, 0)
	case key.Matches(k, m.keys.NextGroup):
		next := 0
		for _, g := range groups {
			if g.first > m.start.chosen {
				next = g.first
				break
			}
		}
		m.start.chosen = next
	case key.Matches(k, m.keys.Begin), key.Matches(k, m.keys.Anew):
		if len(tracks) == 0 || m.call != nil || m.start.err != nil {
			return nil
		}
		m.start.goOn = tracks[m.start.chosen].Left.Step
		if key.Matches(k, m.keys.Anew) {
			m.start.goOn = 0
		}
		return m.open(tracks[m.start.chosen].ID)
	case key.Matches(k, m.keys.Escape):
		m.start.wanted = ""
		m.cancelCall()
	}
	return nil
}

// startLines draws the start screen.
func (m *program) startLines() []string {
	p, w, h := m.pen, m.w, m.h
	out := []string{m.startHead(), m.startNotice()}
	groups := grouped(m.lab.Tracks)
	room := h - 3
	if m.start.err != nil {
		out = append(out, block(inset(2, append([]string{""}, m.startFailure(w-4)...)), w, room)...)
		return append(out, p.keyBar(w, []hint{of(m.keys.Quit), of(m.keys.Help).as("keys"), of(m.keys.Suspend)}))
	}
	if formFor(w, h) == formWide && h >= 32 {
		out = append(out, m.startWide(groups, w, room)...)
	} else {
		out = append(out, m.startNarrow(groups, w, room)...)
	}
	hints := []hint{of(m.keys.Begin)}
	if tracks := flattened(groups); m.start.chosen < len(tracks) && tracks[m.start.chosen].Left.Step > 0 {
		hints = []hint{of(m.keys.Begin).as(fmt.Sprintf("go on at step %d", tracks[m.start.chosen].Left.Step)), of(m.keys.Anew)}
	}
	if len(m.lab.Tracks) > 1 {
		hints = append(hints, of(m.keys.Choose))
	}
	if len(groups) > 1 {
		hints = append(hints, of(m.keys.NextGroup))
	}
	hints = append(hints, of(m.keys.Help).as("keys"), of(m.keys.Quit))
	if m.player != nil {
		hints = []hint{of(m.keys.Quit), of(m.keys.Help).as("keys"), of(m.keys.Suspend)}
	} else if m.call != nil || m.start.wanted != "" {
		hints[0] = of(m.keys.Escape).as("cancel")
	}
	return append(out, p.keyBar(w, hints))
}

func (m *program) startHead() string {
	p := m.pen
	left := " " + p.next("crdlab") + "  " + p.dim.of("your objects, when a CRD changes its version")
	right := p.ok.of("● live")
	switch {
	case m.start.err != nil:
		right = p.badBold.of("✗ not started")
	case !m.start.live:
		right = p.warn.of("○ starting")
	}
	right += "  "
	if m.w >= 110 {
		right = p.noise.of(clean(m.lab.ClusterName)+"   ") + right
	}
	return ends(left, right, m.w)
}

func (m *program) startNotice() string {
	p := m.pen
	said := ""
	switch {
	case m.sight.notice.text != "" && m.sight.notice.bad:
		said = p.badBold.of("✗ ") + p.bold.of(clean(m.sight.notice.text))
	case m.sight.notice.text != "":
		said = p.bold.of(clean(m.sight.notice.text))
	case m.call != nil:
		said = p.bold.of("◐ " + m.call.name)
	case m.start.wanted != "" && m.start.goOn > 0:
		said = p.bold.of(fmt.Sprintf("◐ %s goes on at step %d as soon as the cluster is live", clean(m.start.wanted), m.start.goOn))
	case m.start.wanted != "":
		said = p.bold.of("◐ " + clean(m.start.wanted) + " begins as soon as the cluster is live")
	}
	return p.rule(said, m.w)
}

// rule is a line across the screen that may carry a message.
func (p *pen) rule(said string, w int) string {
	if said == "" {
		return p.line.of(strings.Repeat("─", w))
	}
	said = fit(said, min(width(said), w-6))
	return p.line.of("──") + " " + said + " " + p.line.of(strings.Repeat("─", max(0, w-4-width(said))))
}

// startFailure says why the cluster could not be started, and what to do.
func (m *program) startFailure(w int) []string {
	p := m.pen
	w = min(w, 100)
	var body []string
	for _, l := range strings.Split(m.start.err.Error(), "\n") {
		body = append(body, p.flow(p.clearly(), l, w-4, " ", " ")...)
	}
	body = append(body, "", " "+p.bold.of("→ q quits"))
	return box(frame{line: p.bad, title: " " + p.badBold.of("✗ ") + p.bold.of("the lab did not begin "), heavy: true}, body, w, len(body)+2)
}

func (m *program) trackLines(g trackGroup, w, nameWidth int, airy bool) []string {
	p := m.pen
	out := []string{p.bold.of(g.title) + "  " + p.noise.of(g.about)}
	if airy {
		out = append(out, "")
	}
	for i, t := range g.tracks {
		name, what, aside := clean(t.ID), clean(t.Summary), fmt.Sprintf("%d min ", t.Minutes)
		if left := t.leftAt(); left != "" {
			aside = left + " "
		}
		room := max(0, w-nameWidth-max(12, 5+width(aside)))
		switch {
		case g.first+i == m.start.chosen && width(what) > room: // whole, below its name
			out = append(out, p.raise.under(ends(p.bold.of("▸ "+name), p.dim.of(aside), w)))
			for _, l := range p.flow(p.clearly(), what, w-3, "", "") {
				out = append(out, p.raise.under(fit("  "+l, w)))
			}
		case g.first+i == m.start.chosen:
			out = append(out, p.raise.under(ends(p.bold.of("▸ "+fit(name, nameWidth))+" "+p.say(p.fg, fit(what, room)), p.dim.of(aside), w)))
		case t.Unavailable != "":
			out = append(out, ends("  "+p.noise.of(fit(name, nameWidth)+" "+fit("○ "+clean(t.Unavailable), room)), p.noise.of(aside), w))
		default:
			out = append(out, ends("  "+p.fg.of(fit(name, nameWidth))+" "+p.say(p.dim, fit(what, room)), p.noise.of(aside), w))
		}
	}
	return append(out, "")
}

// leftAt says in a word how far the learner has come; empty where they are at the beginning.
func (t TrackInfo) leftAt() string {
	switch {
	case t.Left.Step > 0:
		return fmt.Sprintf("step %d of %d", t.Left.Step, len(t.Steps))
	case t.Left.Done:
		return "✓ done"
	}
	return ""
}

// leftSaid says, as Markdown, where the learner left a track, and what they predicted until then; empty where they are at
// the beginning.
func (t TrackInfo) leftSaid() string {
	said := t.leftAt()
	switch {
	case t.Left.Step > 0:
		said = fmt.Sprintf("You left at %s, *%s*.", said, t.Steps[t.Left.Step-1])
	case t.Left.Done:
		said = "You have come to its end."
	default:
		return ""
	}
	if t.Left.Given > 0 {
		said += fmt.Sprintf(" Of your predictions at the first try, %d of %d came true.", t.Left.Right, t.Left.Given)
	}
	return said
}

func nameWidth(tracks []TrackInfo, atMost int) int {
	n := 8
	for _, t := range tracks {
		n = max(n, width(t.ID)+1)
	}
	return min(n, atMost)
}

func (m *program) startNarrow(groups []trackGroup, w, h int) []string {
	p, lw := m.pen, m.w-4
	nw := nameWidth(flattened(groups), 26)
	lines := []string{""}
	chosenAt := 0
	for _, g := range groups {
		if m.start.chosen >= g.first {
			chosenAt = len(lines) + 1 + m.start.chosen - g.first
		}
		lines = append(lines, m.trackLines(g, lw, nw, h >= 37)...)
	}
	below := m.phaseLines()
	var about []string
	if room := h - len(lines); room >= 9+len(below) {
		about = append(m.aboutBox(groups, lw, min(room-len(below)-1, 22)), "")
	} else if tracks := flattened(groups); len(tracks) > 0 {
		if left := tracks[m.start.chosen].leftSaid(); left != "" {
			below = slices.Concat(p.flow(p.clearly(), left, lw, "", ""), []string{""}, below)
		}
	}
	room := h - len(about)
	if len(lines)+len(below) <= room {
		lines = append(lines, about...)
		lines = append(lines, below...)
	} else if len(lines) > room { // the list goes on: keep the chosen one in sight
		last := len(lines) - 1                                  // which is air
		from := min(max(0, chosenAt-room+5), max(0, last-room)) // with what is said below its name
		more := last - from - room + 1
		lines = lines[from:]
		if more > 1 {
			lines = append(lines[:room-1:room-1], p.noise.of(fmt.Sprintf("  ↓ %d more", more)))
		}
	}
	return block(inset(2, block(lines, lw, h)), w, h)
}

// startWide has three parts: what the lab is about and the tracks, the pitfalls, and the chosen track's steps.
func (m *program) startWide(groups []trackGroup, w, h int) []string {
	p := m.pen
	lw := (w - 4) / 3
	rw := w - lw - 10
	left := append([]string{""}, m.explained(lw)...)
	right := []string{""}
	var other []trackGroup
	for _, g := range groups {
		if g.tracks[0].Group == lesson.Pitfalls {
			right = append(append(right, m.trackLines(g, rw, nameWidth(g.tracks, 26), true)...), "")
			continue
		}
		other = append(other, g)
	}
	for _, g := range other {
		left = append(append(left, "", ""), m.trackLines(g, lw, nameWidth(g.tracks, lw/3), true)...)
	}
	left = append(left, "", p.bold.of("The cluster")+p.noise.of("  "+clean(m.lab.ClusterName)), "")
	left = append(left, m.phaseLines()...)
	right = append(right, m.aboutBox(groups, rw, h-len(right)-1)...)
	return beside("", block(nil, 3, h), block(left, lw, h), block(nil, 5, h), block(right, rw, h), block(nil, 2, h))
}

// explained is the lab in a picture: the chosen track's oldest and newest version, and the bytes.
func (m *program) explained(w int) []string {
	p := m.pen
	third := (w - 2) / 3
	mini := func(line style, title, a, b string, w int) []string {
		return box(frame{line: line, title: title}, []string{" " + p.dim.of(a), " " + p.dim.of(b)}, w, 4)
	}
	etcd := mini(p.dim, " "+p.bold.of("etcd")+" ", "the bytes,", "as written", w-2-2*third)
	out := []string{p.bold.of("One object, three times"), ""}
	if n := len(p.versions); n > 1 {
		old, young := p.versions[0], p.versions[n-1]
		out = append(out, beside(" ", mini(p.hue(old), p.chip(old, old), "old clients", "read this", third),
			mini(p.hue(young), p.chip(young, young), "new clients", "read this", third), etcd)...)
	}
	return append(append(out, ""), p.flow(p.quietly(), "You change the CRD, predict what happens, and see it on a real API server.", w, "", "")...)
}

func (m *program) phaseLines() []string {
	p := m.pen
	var out []string
	n := 18
	for _, ph := range m.start.phases {
		n = max(n, width(clean(ph.Name))+2)
	}
	for _, ph := range m.start.phases {
		name := fit(clean(ph.Name), n)
		if ph.Done || m.start.live {
			out = append(out, "  "+p.ok.of("✓ ")+p.dim.of(name+took(ph.Took)))
		} else {
			out = append(out, "  "+p.warn.of("○ ")+p.fg.of(name+took(m.clock().Sub(ph.since))))
		}
	}
	if len(out) == 0 && !m.start.live {
		out = append(out, "  "+p.warn.of("○ ")+p.fg.of(fit("starting", n)+took(m.clock().Sub(m.start.began))))
	}
	return out
}

// aboutBox shows the steps of the chosen track and how one goes, with as much air as there is room for.
func (m *program) aboutBox(groups []trackGroup, w, h int) []string {
	p := m.pen
	tracks := flattened(groups)
	if len(tracks) == 0 || h < 5 {
		return nil
	}
	t := tracks[min(m.start.chosen, len(tracks)-1)]
	intro := append([]string{""}, p.flow(p.quietly(), t.Summary, w-6, "", "")...)
	if t.Unavailable != "" {
		intro = append(intro, p.flow(p.clearly(), t.Unavailable, w-6, p.warn.of("○ "), "  ")...)
	}
	if left := t.leftSaid(); left != "" {
		intro = append(append(intro, ""), p.flow(p.clearly(), left, w-6, "", "")...)
	}
	intro = append(intro, "")
	air, head, how := []string{""}, []string{p.bold.of("How a step goes")}, p.howItGoes(w-6)
	body := slices.Concat(intro, p.titles(t.Steps, 2, 2, w-6), air, air, head, air, how, air)
	for _, smaller := range [][]string{
		slices.Concat(intro, p.titles(t.Steps, 2, 1, w-6), air, head, how, air),
		slices.Concat(intro, p.titles(t.Steps, 2, 1, w-6), air),
		slices.Concat(intro, p.titles(t.Steps, 3, 1, w-6), air),
	} {
		if len(body)+2 > h {
			body = smaller
		}
	}
	body = body[:min(len(body), h-2)]
	note := fmt.Sprintf("%d %s · %d min", len(t.Steps), plural(len(t.Steps), "step", "steps"), t.Minutes)
	return box(frame{line: p.line, title: " " + p.bold.of(clean(t.Title)) + " ", note: p.noise.of(note)}, inset(2, body), w, len(body)+2)
}

// titles are the steps of a track in columns, each column read downwards.
func (p *pen) titles(steps []string, cols, every, w int) []string {
	rows := (len(steps) + cols - 1) / cols
	cw := w / cols
	var out []string
	for r := range rows {
		line := ""
		for c := range cols {
			if i := c*rows + r; i < len(steps) {
				line += fit(p.noise.of(fmt.Sprintf("%2d  ", i+1))+p.say(p.fg, brief(clean(steps[i]), cw-5)), cw)
			}
		}
		for len(out) > 0 && len(out)%every != 0 {
			out = append(out, "")
		}
		out = append(out, line)
	}
	return out
}

// howItGoes says what the learner does in a step.
func (p *pen) howItGoes(w int) []string {
	var out []string
	for _, l := range [][2]string{
		{"predict", "1 2 3 say what you think that the API server will do"},
		{"apply", "enter does it; or K shows the commands, and you do it with your own kubectl"},
		{"see", "both versions of an object, its bytes in etcd, and what the CRD has recorded"},
		{"know why", "what the server answered, against what you said"},
	} {
		out = append(out, p.flow(p.quietly(), l[1], w, p.fg.of(fit(l[0], 11)), spaces(11))...)
	}
	return out
}
