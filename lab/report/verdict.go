package report

import (
	"fmt"
	"strings"

	"github.com/crdlab/crdlab/lab/verdict"
)

// maxEvidence is how many lines of evidence of one finding are told; a JSON document has all of them.
const maxEvidence = 12

// Verdict tells a verdict: the answer, and every finding with its evidence and what to do.
func (t *Text) Verdict(v *verdict.Verdict) error {
	t.ends(t.ink(bold, v.CRD), t.mark(string(v.Verdict))+" "+t.ink(bold, string(v.Verdict)))
	t.line(t.ink(faint, strings.Repeat("─", t.width)))
	for _, l := range wrap(v.Summary, t.width) {
		t.line(l)
	}
	t.line("")
	t.findings(v, "")
	t.line("")
	for _, l := range wrap(t.ink(faint, basis(v)), t.width) {
		t.line(l)
	}
	return t.err
}

// basis says of which state of the cluster a verdict speaks.
func basis(v *verdict.Verdict) string {
	read := "the stored values were not read"
	if v.Revision > 0 {
		read = fmt.Sprintf("the stored values as of revision %d", v.Revision)
	}
	return fmt.Sprintf("%s · CRD generation %d · %s", v.At, v.CRDGeneration, read)
}

// findings tells each finding on a line of its own, its evidence and its remedy below it.
func (t *Text) findings(v *verdict.Verdict, indent string) {
	id := 0
	for _, f := range v.Findings {
		id = max(id, len(f.ID))
	}
	hang := strings.Repeat(" ", 2+id+2)
	width := t.width - len(indent) - len(hang)
	for _, f := range v.Findings {
		mark := t.mark(string(f.Result)) + " " + fill(f.ID, id) + "  "
		for _, l := range wrap(t.say("", f.Summary), width) {
			t.line(indent + mark + l)
			mark = hang
		}
		for _, e := range told(f.Evidence) {
			for _, l := range wrap(t.ink(faint, e), width-2) {
				t.line(indent + hang + "  " + l)
			}
		}
		if f.Result != verdict.Pass {
			t.remedy(f.Remedy, indent, hang)
		}
	}
}

// remedy tells what to do. A command stands whole on a line of its own, so that it can be copied.
func (t *Text) remedy(remedy, indent, hang string) {
	if verdict.IsCommand(remedy) {
		remedy = "run\n" + remedy
	}
	for l := range strings.Lines(remedy) {
		l = strings.TrimRight(l, "\n")
		if verdict.IsCommand(l) {
			t.line(indent + "    " + l)
			continue
		}
		arrow := "→ "
		for _, l := range wrap(strings.TrimPrefix(l, "# "), t.width-len(indent)-len(hang)-2) {
			t.line(indent + hang + t.ink(bold, arrow) + l)
			arrow = "  "
		}
	}
}

// told is the evidence as it is told, cut at maxEvidence.
func told(lines []string) []string {
	if len(lines) <= maxEvidence {
		return lines
	}
	return append(lines[:maxEvidence:maxEvidence], fmt.Sprintf("… and %s more (all of them with -o json)", Number(len(lines)-maxEvidence)))
}
