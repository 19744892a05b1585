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
	t.line(question(v))
	t.line("")
	t.findings(v, "")
	t.line("")
	for _, l := range wrap(t.ink(faint, basis(v)), t.width) {
		t.line(l)
	}
	return t.err
}

// question is what a verdict answers, with the answer.
func question(v *verdict.Verdict) string {
	what := "the migration"
	if len(v.Drop) > 0 {
		what = "the migration away from " + strings.Join(v.Drop, ", ")
	}
	switch v.Verdict {
	case verdict.Complete:
		return what + " is complete"
	case verdict.Incomplete:
		return what + " is not complete"
	}
	return "cannot tell whether " + what + " is complete"
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
		if f.Remedy == "" || f.Result == verdict.Pass {
			continue
		}
		arrow := "→ "
		for _, l := range wrap(f.Remedy, width-2) {
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
	return append(lines[:maxEvidence:maxEvidence], fmt.Sprintf("… and %d more (all of them with -o json)", len(lines)-maxEvidence))
}
