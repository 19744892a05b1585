package views

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/conversion/bench"
)

// faultTable shows what became of every operation under a fault, one fault at a time, and what is to be said of it.
type faultTable struct {
	ids    []string // of all faults; the first is that in which all is well
	at     int
	down   int    // of the prose
	below  int    // lines of it that have no room
	call   *call  // by which cells come; nil where none is under way
	failed string // why it ended early
}

// newTable shows a fault, and tries it where it was not tried yet.
func newTable(m *program, fault string) (*faultTable, tea.Cmd) {
	t := &faultTable{}
	for _, f := range bench.Faults() {
		t.ids = append(t.ids, bench.ID(f))
	}
	t.at = max(0, slices.Index(t.ids, fault))
	return t, t.try(m, fault)
}

// tabled says whether all cells of a fault are there.
func (m *program) tabled(fault string) bool { return len(m.tried[fault]) == 2*len(bench.Operations) }

// try has the session try faults, those that were not yet tried. Nothing else may be at work meanwhile.
func (t *faultTable) try(m *program, faults ...string) tea.Cmd {
	faults = slices.DeleteFunc(slices.Clone(faults), m.tabled)
	if len(faults) == 0 || t.call != nil {
		return nil
	}
	if m.call != nil || m.current().Phase == lab.Running {
		t.failed = "The lab is still at work: wait until it is done, or cancel it by esc on the screen behind. Then t tries the fault."
		return nil
	}
	t.failed = ""
	for _, f := range faults {
		delete(m.tried, f)
	}
	cells := make(chan bench.Cell)
	session := m.session
	run := m.run("trying faults", func(ctx context.Context) error {
		defer close(cells)
		return session.Bench(ctx, faults, func(c bench.Cell) {
			select {
			case cells <- c:
			case <-ctx.Done():
			}
		})
	})
	t.call = m.call
	return tea.Batch(run, hearTried(m.ctx, m.reader, cells))
}

// triedMsg is a cell that has come.
type triedMsg struct {
	reader *reader
	cells  <-chan bench.Cell
	cell   bench.Cell
}

func hearTried(ctx context.Context, from *reader, cells <-chan bench.Cell) tea.Cmd {
	return func() tea.Msg {
		select {
		case c, open := <-cells:
			if open {
				return triedMsg{from, cells, c}
			}
		case <-ctx.Done():
		}
		return nil
	}
}

func (m *program) heardTried(msg triedMsg) tea.Cmd {
	if msg.reader == m.reader {
		m.tried[msg.cell.Fault] = append(m.tried[msg.cell.Fault], msg.cell)
	}
	return hearTried(m.ctx, msg.reader, msg.cells)
}

// benched notes the end of a trying.
func (m *program) benched(msg calledMsg) {
	for _, d := range m.dialogs {
		f, ok := d.(*faults)
		if !ok || f.table == nil || f.table.call == nil || f.table.call != msg.call {
			continue
		}
		f.table.call = nil
		if msg.err != nil && !errors.Is(msg.err, context.Canceled) {
			f.table.failed = msg.err.Error()
		}
	}
}

func (t *faultTable) press(m *program, k tea.KeyPressMsg) (bool, tea.Cmd) {
	step := func(by int) { t.at, t.down = (t.at+by+len(t.ids))%len(t.ids), 0 }
	switch keys := m.keys; {
	case key.Matches(k, keys.Back), key.Matches(k, keys.PrevObject):
		step(-1)
	case key.Matches(k, keys.Forward), key.Matches(k, keys.NextObject), key.Matches(k, keys.NextPane):
		step(1)
	case key.Matches(k, keys.Down), key.Matches(k, keys.PageDown):
		t.down++
	case key.Matches(k, keys.Up), key.Matches(k, keys.PageUp):
		t.down = max(0, t.down-1)
	case key.Matches(k, keys.Try), key.Matches(k, keys.Apply):
		return false, t.try(m, t.ids[t.at])
	case key.Matches(k, keys.TryAll):
		return false, t.try(m, t.ids...)
	case key.Matches(k, keys.Escape), key.Matches(k, keys.Quit), key.Matches(k, keys.Faults):
		if t.call != nil {
			t.call.cancel()
		}
		return true, nil
	}
	return false, nil
}

// besideWidth is from which width on the words stand beside the table.
const besideWidth = 140

func (t *faultTable) draw(m *program, w, h int) []string {
	p := m.pen
	w -= 4
	in := w - 6
	id := t.ids[t.at]
	tail := t.keys(m, in)
	room := h - 2 - len(tail)
	table, words := t.table(m, in), []string(nil)
	if in >= besideWidth {
		tw := in * 3 / 5
		table = t.table(m, tw)
		words = t.window(t.words(m, in-tw-4), room-1)
		n := max(len(table), len(words))
		table = beside("    ", block(table, tw, n), block(words, in-tw-4, n))
	} else {
		table = append(append(table, ""), t.window(t.words(m, in), room-len(table)-2)...)
		for len(table) < room-1 {
			table = append(table, "")
		}
	}
	note := p.noise.of(fmt.Sprintf("%d of %d", t.at+1, len(t.ids)))
	lines := append(append([]string{""}, table[:min(len(table), room-1)]...), tail...)
	f := frame{line: p.fg, heavy: true, foot: t.more(p), title: " " + p.bold.of(id) + p.noise.of(" what every operation is answered "), note: note}
	return box(f, inset(2, lines), w, len(lines)+2)
}

// table is the cells of a fault: a row an operation, a column a version.
func (t *faultTable) table(m *program, w int) []string {
	p, id := m.pen, t.ids[t.at]
	fault, _ := bench.FaultByID(id) // it is one of those
	does := fault.Does
	if id == bench.None {
		does = "All is well: what the others are to be compared with."
	}
	const name = 13
	col := (w - name) / 2
	versions := m.state.Track.Versions
	old, young := versions[0], versions[len(versions)-1]
	head := func(v, what string) string { return fit(p.noise.of("at ")+p.hueBold(v).of(v)+p.noise.of(what), col) }
	out := append(p.flow(p.clearly(), does, w, "", ""), "", fit("", name)+head(old, ", stored")+head(young, ", converted"))
	for _, op := range bench.Operations {
		out = append(out, fit(p.fg.of(op), name)+t.cell(m, op, bench.Stored, col)+t.cell(m, op, bench.Other, col))
	}
	return out
}

func (t *faultTable) cell(m *program, op, at string, w int) string {
	p, id := m.pen, t.ids[t.at]
	i := slices.IndexFunc(m.tried[id], func(c bench.Cell) bool { return c.Operation == op && c.At == at })
	if i < 0 {
		return fit(p.noise.of("·"), w)
	}
	c := m.tried[id][i]
	answer := middle(clean(c.Answer), w-6)
	switch {
	case c.Status == 0:
		return fit(p.warn.of("▲   "+answer), w)
	case c.Status < 400 && strings.HasPrefix(answer, "no "): // a watch that began, and brought nothing
		return fit(p.warn.of("▲ "+statusText(c.Status)+" "+middle(answer, w-8)), w)
	}
	style, said := p.statusStyle(c.Status), p.say(p.dim, answer)
	if c.Answer == "" && c.Reviews > 0 {
		said = p.noise.of(number(c.Reviews) + plural(c.Reviews, " review", " reviews"))
	}
	return fit(style.of(statusText(c.Status))+" "+said, w)
}

// words are what is to be said of a fault, once all its cells are there.
func (t *faultTable) words(m *program, w int) []string {
	p, id := m.pen, t.ids[t.at]
	if t.failed != "" {
		return p.flow(p.clearly(), t.failed, w, p.badBold.of("✗ "), "  ")
	}
	switch {
	case m.tabled(id):
		text, err := bench.Prose(id, m.tried[id])
		if err != nil {
			return p.flow(p.clearly(), err.Error(), w, p.badBold.of("✗ "), "  ")
		}
		return p.prose(p.quietly(), text, min(w, 92))
	case t.call != nil:
		return []string{p.bold.of("◐ ") + p.fg.of("trying: what takes longer than "+took(bench.Patience)+" is not waited for")}
	}
	return []string{p.noise.of("○ not tried yet: ") + p.bold.of("t") + p.dim.of(" tries it, on a CRD and objects of its own")}
}

// window is the part of the words that has room.
func (t *faultTable) window(words []string, room int) []string {
	room = max(2, room)
	t.down = min(t.down, max(0, len(words)-room))
	words = words[t.down:]
	shown := min(len(words), room)
	t.below = len(words) - shown
	return slices.Clone(words[:shown])
}

// more says that the words go on.
func (t *faultTable) more(p *pen) string {
	if t.below == 0 {
		return ""
	}
	return p.bold.of("j") + p.noise.of(fmt.Sprintf(" ↓ %d", t.below))
}

func (t *faultTable) keys(m *program, w int) []string {
	p := m.pen
	first := p.next("t try it")
	switch {
	case t.call != nil:
		done := 0
		for _, id := range t.ids {
			if m.tabled(id) {
				done++
			}
		}
		first = p.bold.of("◐ ") + p.fg.of(fmt.Sprintf("%d of %d tried", done, len(t.ids)))
	case m.tabled(t.ids[t.at]):
		first = p.next("→ next fault")
	}
	keys := first + "   " + p.bold.of("← →") + p.dim.of(" fault") + "   " + p.bold.of("a") + p.dim.of(" try all, 4 s each") + "   " +
		p.bold.of("j k") + p.dim.of(" text") + "   " + p.bold.of("esc") + p.dim.of(" back")
	return []string{"", fit(keys, w), ""}
}
