package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/verdict"
)

// Markdown writes a run as a page for a wiki or a pull request: a heading a step, tables of the exchanges and the
// checks, and the object's views and stored value where they differ. The steps that were not applied are named at its
// end.
func Markdown(out io.Writer, s *lab.State, until string) error {
	m := &page{out: out}
	result := Result(s, until)
	m.line("# crdlab %s: %s", s.Track.ID, result)
	m.line("")
	m.line("`%s` on %s %s, %s.", s.Resource, s.Cluster.Type, s.Cluster.Version, s.StartedAt.UTC().Format(time.RFC3339))
	var left []string
	for _, step := range s.Steps {
		if step.Phase != lab.Applied && step.Err == nil {
			left = append(left, step.Title)
			continue
		}
		m.step(s, step)
	}
	if len(left) > 0 {
		m.line("")
		m.line("Not run: %s.", strings.Join(left, ", "))
	}
	return m.err
}

// page is a document that is being written.
type page struct {
	out io.Writer
	err error // the first one of out
}

func (m *page) line(format string, args ...any) {
	if m.err == nil {
		_, m.err = fmt.Fprintf(m.out, format+"\n", args...)
	}
}

func (m *page) text(markdown string) {
	if markdown != "" {
		m.line("")
		m.line("%s", markdown)
	}
}

// table writes a head and rows; nothing where there are no rows.
func (m *page) table(head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	m.line("")
	m.line("| %s |", strings.Join(head, " | "))
	m.line("|%s", strings.Repeat(" --- |", len(head)))
	for _, r := range rows {
		for i := range r {
			r[i] = cell(r[i])
		}
		m.line("| %s |", strings.Join(r, " | "))
	}
}

// cell makes a text fit for a table.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}

// fenced is a text as code in a sentence or a cell.
func fenced(s string) string {
	if s == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(s, "`", "'") + "`"
}

func (m *page) step(s *lab.State, step *lab.Step) {
	m.line("")
	m.line("## %d. %s", step.Index+1, step.Title)
	m.text(step.Briefing)
	m.prediction(step)
	m.exchanges(step)
	if step.Err != nil {
		m.text("**" + step.Err.Error() + "**")
	}
	m.kubectl(step)
	m.seen(s, step)
	m.checks(step)
	if step.Verdict != nil {
		m.findings(step.Verdict)
	}
	if stepResult(step) == lesson.Failed {
		for _, h := range step.Hints {
			m.text("→ " + h)
		}
	}
	m.text(step.Explanation)
}

func (m *page) prediction(step *lab.Step) {
	if step.Question == "" {
		return
	}
	m.text("**" + strings.Join(strings.Fields(step.Question), " ") + "**")
	m.line("")
	for _, o := range step.Options {
		text := strings.Join(strings.Fields(o.Text), " ")
		switch {
		case o.ID == step.Answer:
			text = "✓ **" + text + "**"
		case o.ID == step.Given:
			text = "✗ " + text + " (the prediction)"
		}
		m.line("- %s", text)
	}
}

func (m *page) exchanges(step *lab.Step) {
	var rows [][]string
	add := func(action string, rs []request) {
		for _, r := range rs {
			rows = append(rows, exchangeRow(action, r))
		}
	}
	for _, a := range step.Actions {
		name := a.ID
		if told := reviews(a); told != "" {
			name += ", " + told
		}
		add(name, requests(step, a))
	}
	add("", byHand(step))
	m.table([]string{"action", "request", "", "answer", "warnings, refusal"}, rows)
	if n := probes(step); n > 0 {
		m.text(fmt.Sprintf("And %s by the lab.", plural(n, "probe")))
	}
}

func exchangeRow(action string, r request) []string {
	if action == "" {
		action = by(r.Exchange)
	}
	what := r.Method + " " + fenced(parsePath(r.Path).short())
	note := how(r.Exchange)
	if r.more > 0 {
		note = strings.TrimPrefix(note+", and "+Number(r.more)+" more", ", ")
	}
	var said []string
	for _, w := range r.Warnings {
		said = append(said, "▲ "+w)
	}
	answer := strings.TrimSpace(status(r.Exchange) + " " + r.Reason)
	if r.wanted {
		answer += ", refused as intended"
	}
	return []string{action, what, note, answer, strings.Join(append(said, refusal(r.Exchange)...), "; ")}
}

// kubectl shows the commands that do the same as the step's actions.
func (m *page) kubectl(step *lab.Step) {
	var commands []string
	for _, a := range step.Actions {
		commands = append(commands, a.Kubectl...)
	}
	if len(commands) == 0 {
		return
	}
	m.text("By hand:")
	m.line("")
	m.line("```sh")
	m.line("%s", strings.Join(commands, "\n"))
	m.line("```")
}

func (m *page) seen(s *lab.State, step *lab.Step) {
	o := step.After
	if o == nil || o.CRD == nil {
		return
	}
	var rows [][]string
	for _, v := range o.CRD.Versions {
		listed := "no"
		if o.Lists(v.Name) {
			listed = "yes"
		}
		objects := "cannot be read"
		if o.Stored.Access {
			objects = Number(o.Stored.ByVersion[v.Name])
		}
		rows = append(rows, []string{v.Name, flags(v), listed, objects})
	}
	m.table([]string{"version", "spec.versions", "in storedVersions", "objects stored"}, rows)
	m.line("")
	m.line("storedVersions: %s", fenced("["+strings.Join(o.StoredVersions(), " ")+"]"))
	if told := conversions(step, s.Track.Versions); told != "" {
		m.text("Conversions: " + told + ".")
	}
	if step.Rewrite != nil {
		m.text("Rewrite: " + rewritten(step.Rewrite) + ".")
	}
	for _, x := range shown(s, step) {
		m.object(step.Before, x, s.Track.Versions)
	}
}

// object shows an object side by side, and whole at each version and in its bytes where these differ in more than the
// apiVersion.
func (m *page) object(before *evidence.Observation, o *evidence.Object, order []string) {
	sheet := newSheet(before, o, order)
	head := []string{"**" + o.Name + "**"}
	for _, c := range sheet.columns {
		head = append(head, inWords(c))
	}
	var rows [][]string
	for _, r := range sheet.rows {
		rows = append(rows, append([]string{r.name}, r.cells...))
	}
	m.table(head, rows)
	for _, l := range sheet.refused {
		m.text(l)
	}
	if who := managers(before, o); who != "" {
		m.text("Managers: " + who + ".")
	}
	cols := columns(o, order)
	if len(differences(o, cols)) == 0 {
		return
	}
	for _, c := range cols {
		m.line("")
		m.line("```yaml")
		m.line("# %s, %s", o.Name, inWords(c))
		m.line("%s", asYAML(document(o, c)))
		m.line("```")
	}
}

// inWords says what a column of a sheet shows.
func inWords(column string) string {
	if column == stored {
		return "the stored value"
	}
	return "at " + column
}

// asYAML is a document without its managedFields.
func asYAML(raw json.RawMessage) string {
	var root map[string]any
	if err := json.Unmarshal(raw, &root); err != nil {
		return string(raw)
	}
	if meta, ok := root["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
	}
	out, err := yaml.Marshal(root)
	if err != nil {
		return string(raw)
	}
	return strings.TrimRight(string(out), "\n")
}

func (m *page) checks(step *lab.Step) {
	var rows [][]string
	for _, c := range step.Checks {
		if c.Result == "" {
			continue
		}
		got := fenced(c.Got)
		if c.Result == lesson.Skipped {
			got = c.Reason
		}
		title := c.Title
		if title == "" {
			title = c.ID
		}
		rows = append(rows, []string{plainMark(string(c.Result)), title, fenced(c.Want), got})
	}
	m.table([]string{"", "check", "want", "got"}, rows)
}

// MarkdownVerdict writes a verdict as a page.
func MarkdownVerdict(out io.Writer, v *verdict.Verdict) error {
	m := &page{out: out}
	m.line("# %s: %s", v.CRD, v.Verdict)
	m.text(v.Summary + ".")
	m.findings(v)
	m.text(basis(v))
	return m.err
}

func (m *page) findings(v *verdict.Verdict) {
	var rows [][]string
	var scripts []string
	for _, f := range v.Findings {
		remedy := f.Remedy
		if slices.ContainsFunc(strings.Split(f.Remedy, "\n"), verdict.IsCommand) {
			remedy = "see below"
			scripts = append(scripts, "# "+f.ID+"\n"+f.Remedy)
		}
		rows = append(rows, []string{plainMark(string(f.Result)), f.ID, f.Summary, strings.Join(told(f.Evidence), "; "), remedy})
	}
	m.table([]string{"", "finding", "summary", "evidence", "remedy"}, rows)
	if len(scripts) > 0 {
		m.text("```sh\n" + strings.Join(scripts, "\n\n") + "\n```")
	}
}

// plainMark is the sign of a result.
func plainMark(result string) string { return style{}.mark(result) }
