package steps_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
	"text/template/parse"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/steps"
)

var (
	// digits are in statuses, versions and counts: all of them the server's to say.
	digits = regexp.MustCompile(`\S*\d\S*`)
	// counted are number words before what the server counts.
	counted = regexp.MustCompile(`(?i)\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozens?|hundreds?|thousands?)\s+(of\s+)?([a-z-]+\s+)?` +
		`(objects?|widgets?|managers?|versions?|reviews?|entries|requests?|lists?|findings?|conversions?)\b`)
	// asked is a status in a template, that must have been seen.
	asked = regexp.MustCompile(`\.Status "(\w+)" (old|new)`)
)

// aboutLoss are steps whose lesson is that a field is no longer there: a placeholder that says "nothing" is what they show.
var aboutLoss = map[string]bool{
	"pitfalls/downgrade/loss":         true,
	"pitfalls/downgrade/way-back":     true,
	"pitfalls/none-rename/hidden":     true,
	"pitfalls/none-rename/lost":       true,
	"pitfalls/old-client-write/label": true,
}

// TestNoNumberIsWrittenInTheProse holds that what a run shows is read in that run: no literal text has a number, and in a run
// every placeholder is filled.
func TestNoNumberIsWrittenInTheProse(t *testing.T) {
	t.Parallel()
	common, err := os.ReadFile("../lesson/kit/wrong.en.md")
	if err != nil {
		t.Fatal(err)
	}
	written(t, "wrong.en.md", string(common))
	for _, track := range steps.Tracks() {
		files, err := fs.Glob(track.Prose, "*.md")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", track.ID, files, err)
		}
		for _, file := range files {
			raw, err := fs.ReadFile(track.Prose, file)
			if err != nil {
				t.Fatal(err)
			}
			written(t, track.ID+"/"+file, string(raw))
		}
	}
	for _, track := range labtest.OnEmbedded() {
		t.Run(track.ID, func(t *testing.T) {
			t.Parallel()
			filled(t, track)
		})
	}
}

// written looks for numbers in the literal text of a file of prose.
func written(t *testing.T, file, prose string) {
	t.Helper()
	var text strings.Builder
	for line := range strings.Lines(prose) {
		if !strings.HasPrefix(line, "## ") { // the names of pieces are nobody's prose
			text.WriteString(line)
		}
	}
	tree := parse.New(file)
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse(text.String(), "", "", map[string]*parse.Tree{}); err != nil {
		t.Errorf("%s: %v", file, err)
		return
	}
	for _, literal := range literals(tree.Root) {
		for _, number := range append(digits.FindAllString(literal, -1), counted.FindAllString(literal, -1)...) {
			t.Errorf("%s: %q is written down, and is to come from the evidence", file, number)
		}
	}
}

// literals are the texts of a template between its placeholders, those of every branch.
func literals(list *parse.ListNode) []string {
	if list == nil {
		return nil
	}
	var out []string
	branch := func(b *parse.BranchNode) { out = append(append(out, literals(b.List)...), literals(b.ElseList)...) }
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			out = append(out, string(n.Text))
		case *parse.IfNode:
			branch(&n.BranchNode)
		case *parse.RangeNode:
			branch(&n.BranchNode)
		case *parse.WithNode:
			branch(&n.BranchNode)
		}
	}
	return out
}

// filled runs a track, and renders what its steps say before them and after.
func filled(t *testing.T, track *lesson.Track) {
	s := labtest.Start(t, track)
	if err := lab.Run(t.Context(), s, "", func(step *lab.Step) {
		if step.Result == lesson.Failed {
			t.Fatalf("%s %s: %v, %+v", step.ID, step.Result, step.Err, step.Checks)
		}
		prose, err := track.ReadProse(step.ID)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := fs.ReadFile(track.Prose, step.ID+"."+lesson.Locale+".md")
		if err != nil {
			t.Fatal(err)
		}
		sources := pieces(string(raw))
		after := labtest.Seen(s.State(), step, step.After)
		before := after
		before.After, before.Exchanges, before.Conversions, before.Calls, before.Rewrite, before.Verdict = step.Before, nil, nil, nil, nil, nil
		for _, piece := range prose.Pieces() {
			e := after
			switch kind, _, _ := strings.Cut(piece, ":"); kind {
			case "wrong": // of a state that this run was not in
				continue
			case "briefing", "question", "option", "hint":
				e = before
			}
			text, err := prose.Render(track, piece, e)
			if err != nil {
				t.Errorf("%s/%s: %v", step.ID, piece, err)
				continue
			}
			source := sources[piece]
			if strings.Contains(text, "<no value>") || strings.Contains(text, "<nil>") || strings.Contains(text, "uncounted") ||
				strings.Count(text, "nothing") > strings.Count(source, "nothing") && !aboutLoss[track.ID+"/"+step.ID] {
				t.Errorf("%s/%s: a placeholder is not filled: %s", step.ID, piece, text)
			}
			for _, m := range asked.FindAllStringSubmatch(source, -1) {
				version := map[string]string{"old": track.Versions[0], "new": track.Versions[len(track.Versions)-1]}[m[2]]
				if e.Status(m[1], version) == 0 {
					t.Errorf("%s/%s: nobody read %s at %s: %s", step.ID, piece, m[1], version, text)
				}
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// pieces are the sources of a file's pieces, by their names.
func pieces(prose string) map[string]string {
	out := map[string]string{}
	for _, part := range strings.Split("\n"+prose, "\n## ")[1:] {
		name, source, _ := strings.Cut(part, "\n")
		out[name] = source
	}
	return out
}
