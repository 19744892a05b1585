package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/conversion/bench"
)

// FaultTable is the document of a bench: what every fault of a conversion webhook does to every operation.
type FaultTable struct {
	Head
	Cluster Cluster `json:"cluster"`
	Faults  []Fault `json:"faults"` // the first is none, where all is well
}

// Fault is one row of a FaultTable.
type Fault struct {
	ID    string       `json:"id"`
	Does  string       `json:"does"`  // in words
	Text  string       `json:"text"`  // Markdown: what is seen first, where to look, how to tell it from others
	Cells []bench.Cell `json:"cells"` // in the order of bench.Operations, each at the stored version and at the other
}

// NewFaultTable makes the document of the cells that a bench has told, in their order.
func NewFaultTable(s *lab.State, cells []bench.Cell) (*FaultTable, error) {
	t := &FaultTable{Head: Head{APIVersion, "FaultTable"}, Faults: []Fault{},
		Cluster: Cluster{Type: s.Cluster.Type, Version: s.Cluster.Version, StorageAccess: storageAccess(s)}}
	for len(cells) > 0 {
		id, n := cells[0].Fault, slices.IndexFunc(cells, func(c bench.Cell) bool { return c.Fault != cells[0].Fault })
		if n < 0 {
			n = len(cells)
		}
		f, err := newFault(id, cells[:n])
		if err != nil {
			return nil, err
		}
		t.Faults, cells = append(t.Faults, f), cells[n:]
	}
	return t, nil
}

func newFault(id string, cells []bench.Cell) (Fault, error) {
	fault, err := bench.FaultByID(id)
	if err != nil {
		return Fault{}, err
	}
	text, err := bench.Prose(id, cells)
	if err != nil {
		return Fault{}, err
	}
	does := fault.Does
	if id == bench.None {
		does = "All is well."
	}
	return Fault{ID: id, Does: does, Text: text, Cells: list(cells)}, nil
}

// at are a row's cells at a version.
func (f *Fault) at(at string) []bench.Cell {
	var out []bench.Cell
	for _, c := range f.Cells {
		if c.At == at {
			out = append(out, c)
		}
	}
	return out
}

// MarkdownFaults writes a table a fault as a page.
func MarkdownFaults(out io.Writer, t *FaultTable) error {
	m := &page{out: out}
	m.line("# What every fault of a conversion webhook does")
	m.text(fmt.Sprintf("Asked on %s, one fault after the other. Every status, answer and number is the server's, of this run.",
		strings.TrimSpace(t.Cluster.Type+" "+t.Cluster.Version)))
	for _, f := range t.Faults {
		m.text("## " + f.ID)
		m.text(f.Does)
		var rows [][]string
		for _, c := range f.Cells {
			rows = append(rows, []string{c.Operation, c.At, statusOf(c), c.Answer, Number(c.Reviews), fmt.Sprintf("%.1f ms", c.DurationMS)})
		}
		m.table([]string{"operation", "at", "status", "answer", "reviews", "took"}, rows)
		m.text(f.Text)
	}
	return m.err
}

func statusOf(c bench.Cell) string {
	if c.Status == 0 {
		return "–"
	}
	return fmt.Sprint(c.Status)
}

// Faults tells a table: of each fault what is answered, the operations that are answered alike together.
func (t *Text) Faults(table *FaultTable) error {
	for i, f := range table.Faults {
		if i > 0 {
			t.line("")
		}
		t.line(t.ink(bold, f.ID) + "  " + f.Does)
		for _, at := range []string{bench.Stored, bench.Other} {
			t.answers(at, f.at(at))
		}
		t.line("")
		t.paragraph(f.Text)
	}
	return t.err
}

// answers tells the cells of a fault at one version.
func (t *Text) answers(at string, cells []bench.Cell) {
	rows := t.rows(at)
	for len(cells) > 0 {
		first := cells[0]
		var alike, rest []bench.Cell
		for _, c := range cells {
			if c.Status == first.Status && c.Answer == first.Answer {
				alike = append(alike, c)
			} else {
				rest = append(rest, c)
			}
		}
		code := green
		if first.Status >= 400 || first.Status == 0 {
			code = red
		}
		rows.wrapped(t.ink(code, fill(statusOf(first), len("200 "))), t.say("", asked(alike)))
		rows.wrapped("      ", t.ink(faint, first.Answer))
		cells = rest
	}
	rows.end()
}

// asked names operations, each with its reviews where there were any.
func asked(cells []bench.Cell) string {
	var out []string
	for _, c := range cells {
		o := c.Operation
		if c.Reviews > 0 {
			o += " (" + plural(c.Reviews, "review") + ")"
		}
		out = append(out, o)
	}
	return strings.Join(out, ", ")
}
