package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
)

// Text tells a run to a person in a terminal, step by step.
type Text struct {
	out io.Writer
	style
	err error // the first one of out
}

// NewText makes a Text of so many columns (80 are enough, and more than 100 are not used), with or without colour.
func NewText(out io.Writer, width int, colour bool) *Text {
	return &Text{out: out, style: newStyle(min(max(width, 40), 100), colour, nil)}
}

const (
	margin     = "    "
	label      = 8  // columns of the words asked, seen, checks, answer
	nameColumn = 16 // columns of the names of what was seen
)

// Begin tells which track runs, and where.
func (t *Text) Begin(s *lab.State) error {
	t.style = newStyle(t.width, t.colour, s.Track.Versions)
	left := t.ink(bold, "crdlab "+s.Track.ID)
	right := t.ink(faint, s.Resource.String()+" · "+strings.TrimSpace(s.Cluster.Type+" "+s.Cluster.Version))
	t.ends(left, right)
	t.line(t.ink(faint, strings.Repeat("─", t.width)))
	return t.err
}

// Step tells a step that was applied.
func (t *Text) Step(s *lab.State, step *lab.Step) error {
	t.line("")
	t.ends(fmt.Sprintf("%2d  %s", step.Index+1, t.ink(bold, step.Title)), t.outcome(step))
	t.paragraph(firstParagraph(step.Briefing))
	t.asked(step)
	t.seen(s, step)
	t.checks(step)
	t.answer(step)
	t.hints(step)
	if step.Verdict != nil {
		t.line("")
		t.findings(step.Verdict, margin)
	}
	if step.Explanation != "" && step.Err == nil {
		t.line("")
		t.paragraph(step.Explanation)
	}
	return t.err
}

// End tells how the run went that was to end at a step, or at the track's end where until is empty.
func (t *Text) End(s *lab.State, until string) error {
	return t.ended(string(Result(s, until)), s)
}

// Interrupted tells how far a run came that was interrupted.
func (t *Text) Interrupted(s *lab.State) error {
	return t.ended("interrupted", Interrupted(s))
}

func (t *Text) ended(result string, s *lab.State) error {
	told := " · " + tally(s)
	var took time.Duration
	for _, step := range s.Steps {
		took += step.Took
	}
	if took > 0 {
		told += " · " + seconds(took)
	}
	t.line("")
	t.line(t.ink(faint, strings.Repeat("─", t.width)))
	t.line(t.mark(result) + " " + t.ink(bold, result) + t.ink(faint, told))
	return t.err
}

// outcome is the result at the end of a step's heading.
func (t *Text) outcome(step *lab.Step) string {
	r := stepResult(step)
	told := string(r)
	if step.ByHand {
		told += ", by hand"
	}
	return t.mark(string(r)) + " " + told + t.ink(faint, " · "+seconds(step.Took))
}

// asked tells the requests of a step, action by action.
func (t *Text) asked(step *lab.Step) {
	rows := t.rows("asked")
	for _, a := range step.Actions {
		rs := requests(step, a)
		reviews := reviews(a)
		if len(rs) > 0 && (len(step.Actions) > 1 || reviews != "") {
			rows.ends(t.ink(faint, a.ID), t.ink(faint, reviews))
		}
		t.requests(rows, rs)
	}
	t.requests(rows, byHand(step))
	if n := probes(step); n > 0 {
		rows.add(t.ink(faint, fmt.Sprintf("… and %s by the lab", plural(n, "probe"))))
	}
	if step.Err != nil {
		rows.wrapped(t.ink(red, "✗ "), t.ink(bold, step.Err.Error()))
	}
	rows.end()
}

func (t *Text) requests(rows *rows, rs []request) {
	left := 0
	if len(rs) > maxRequests {
		left = len(rs) - maxRequests
		head := maxRequests * 2 / 3
		rs = append(rs[:head:head], rs[len(rs)-(maxRequests-head):]...)
	}
	for i, r := range rs {
		if left > 0 && i == maxRequests*2/3 {
			rows.add(t.ink(faint, fmt.Sprintf("… and %s", plural(left, "more request"))))
		}
		t.request(rows, r)
	}
}

func (t *Text) request(rows *rows, r request) {
	code := green
	switch {
	case r.wanted:
		code = bold
	case r.Refused() || r.Status == 0:
		code = red
	}
	note := strings.TrimPrefix(strings.Join([]string{by(r.Exchange), how(r.Exchange)}, ", "), ", ")
	note = strings.TrimSuffix(note, ", ")
	took := fmt.Sprintf("%.1f ms", r.DurationMS)
	if r.more > 0 {
		took = "and " + Number(r.more) + " more"
	}
	room := rows.width - len("422 DELETE  ") - len(took) - 1
	short := shorten(parsePath(r.Path).short(), room)
	left := fmt.Sprintf("%s %-6s %s", t.ink(code, status(r.Exchange)), r.Method, t.say("", short))
	if note != "" && ansi.StringWidth(short)+2+ansi.StringWidth(note) <= room {
		left += "  " + t.ink(faint, note)
		note = ""
	}
	rows.ends(left, t.ink(faint, took))
	if note != "" {
		rows.wrapped("           ", t.ink(faint, note))
	}
	for _, w := range r.Warnings {
		rows.wrapped("    "+t.ink(yellow, "▲")+" ", t.say("", w))
	}
	if !r.Refused() && r.Status != 0 {
		return
	}
	told := r.Reason
	if r.wanted {
		told = strings.TrimPrefix(told+", refused as intended", ", ")
	}
	if told != "" {
		rows.add("    " + t.ink(bold, told))
	}
	for _, l := range refusal(r.Exchange) {
		rows.wrapped("    ", t.say("", l))
	}
}

// seen tells the observation in which the step settled, beside the one before it.
func (t *Text) seen(s *lab.State, step *lab.Step) {
	after := step.After
	if after == nil {
		return
	}
	rows := t.rows("seen")
	defer rows.end()
	if after.CRD == nil {
		rows.add("no CRD " + s.Resource.String())
		return
	}
	for i, v := range after.CRD.Versions {
		rows.named(when(i == 0, "spec.versions"), fill(t.version(v.Name), t.nameWidth())+"  "+flags(v))
	}
	rows.named("storedVersions", t.record(step.Before, after))
	t.counted(rows, after, s.Track.Versions)
	if told := conversions(step, s.Track.Versions); told != "" {
		rows.named("conversions", t.say("", told))
	}
	if step.Rewrite != nil {
		rows.named("rewrite", rewritten(step.Rewrite))
	}
	for _, o := range shown(s, step) {
		t.object(rows, step.Before, o, s.Track.Versions)
	}
}

func (t *Text) record(before, after *evidence.Observation) string {
	var out []string
	for _, l := range storedVersions(before, after) {
		sign := l.sign
		switch sign {
		case "+":
			sign = t.ink(green, sign)
		case "-":
			sign = t.ink(red, sign)
		}
		out = append(out, sign+t.version(l.version))
	}
	return strings.Join(out, "  ")
}

// counted tells the objects by stored version as bars.
func (t *Text) counted(rows *rows, o *evidence.Observation, order []string) {
	if !o.Stored.Access {
		rows.named("stored", o.Stored.Missing())
		return
	}
	if o.Stored.Total == 0 {
		rows.named("stored", "no objects")
		return
	}
	const longest = 20
	for i, c := range counts(o, order) {
		cells := 0
		if c.objects > 0 {
			cells = max(1, c.objects*longest/o.Stored.Total)
		}
		bar := strings.Repeat(t.texture(c.version), cells)
		if p := t.place(c.version); p >= 0 {
			bar = t.ink(hues[p%len(hues)], bar)
		}
		rows.named(when(i == 0, "stored"), fill(t.version(c.version), t.nameWidth())+"  "+bar+" "+Number(c.objects))
	}
}

// object tells one object side by side: its view at each version, and its stored value.
func (t *Text) object(rows *rows, before *evidence.Observation, o *evidence.Object, order []string) {
	sheet := newSheet(before, o, order)
	width := (rows.width - nameColumn) / max(len(sheet.columns), 1)
	if last := len(sheet.columns) - 1; last > 0 && sheet.columns[last] == stored {
		width = min(width, 14) // the stored value says more
	}
	lay := func(cells []string, ink func(int, string) string) string {
		var b strings.Builder
		for i, c := range cells {
			room := width - 1
			if i == len(cells)-1 {
				room = rows.width - nameColumn - i*width
			}
			b.WriteString(fill(ink(i, ansi.Truncate(c, room, "…")), width))
		}
		return b.String()
	}
	rows.add("")
	rows.add(fill(t.ink(bold, o.Name), nameColumn) + lay(sheet.columns, func(i int, c string) string {
		if c == stored {
			return t.ink(bold, "stored value")
		}
		return t.version(c)
	}))
	for _, r := range sheet.rows {
		name := t.ink(faint, ansi.Truncate(r.name, nameColumn-1, "…"))
		rows.add(fill(name, nameColumn) + lay(r.cells, func(_ int, c string) string {
			switch {
			case c == absent:
				return t.ink(yellow, c)
			case r.name == answerRow && c != "200":
				return t.ink(red, c)
			}
			return t.say("", c)
		}))
	}
	for _, l := range sheet.refused {
		rows.wrapped(strings.Repeat(" ", nameColumn), t.say("", l))
	}
	if m := managers(before, o); m != "" {
		rows.named("managers", t.say("", m))
	}
}

// checks tells each check; of one that failed, what was wanted and what was seen. What a passed one saw is told where
// there is room for it on its line.
func (t *Text) checks(step *lab.Step) {
	rows := t.rows("checks")
	for _, c := range step.Checks {
		if c.Result == "" {
			continue
		}
		title := c.Title
		if title == "" {
			title = c.ID
		}
		told := strings.Join(t.prose(title, 4*t.width), " ")
		if seen := " · " + c.Got; c.Result == lesson.Passed && c.Got != "" && !strings.Contains(title, c.Got) &&
			ansi.StringWidth(told+seen)+2 <= rows.width {
			told += t.ink(faint, seen)
		}
		rows.wrapped(t.mark(string(c.Result))+" ", told)
		switch c.Result {
		case lesson.Failed:
			rows.wrapped("    want  ", t.say(bold, c.Want))
			rows.wrapped("    got   ", t.say(red, c.Got))
		case lesson.Skipped:
			rows.wrapped("    ", t.ink(faint, "skipped: "+c.Reason))
		}
	}
	rows.end()
}

// answer tells the question, and which option the server showed to be right.
func (t *Text) answer(step *lab.Step) {
	if step.Question == "" || step.Answer == "" {
		return
	}
	rows := t.rows("answer")
	rows.wrapped("", t.ink(bold, strings.Join(t.prose(step.Question, 4*t.width), " ")))
	for _, o := range step.Options {
		text := strings.Join(t.prose(o.Text, 4*t.width), " ")
		switch {
		case o.ID == step.Answer:
			rows.wrapped(t.ink(green, "✓")+" ", text)
		case o.ID == step.Given:
			rows.wrapped(t.ink(red, "✗")+" ", t.ink(faint, text+" (your prediction)"))
		}
	}
	rows.end()
}

// hints tells what may be done about a step that failed.
func (t *Text) hints(step *lab.Step) {
	if stepResult(step) != lesson.Failed {
		return
	}
	rows := t.rows("hints")
	for _, h := range step.Hints {
		for i, l := range t.prose(h, rows.width-2) {
			rows.add(when(i == 0, "→ ") + when(i > 0, "  ") + l)
		}
	}
	rows.end()
}

// paragraph writes prose under a heading.
func (t *Text) paragraph(markdown string) {
	for _, l := range t.prose(markdown, t.width-2*len(margin)) {
		t.line(strings.TrimRight(margin+l, " "))
	}
}

// ends writes one text at each end of a line.
func (t *Text) ends(left, right string) {
	t.line(fill(left, t.width-ansi.StringWidth(right)-1) + " " + right)
}

func (t *Text) line(s string) {
	if t.err == nil {
		_, t.err = fmt.Fprintln(t.out, s)
	}
}

// nameWidth is the width of the longest name of a version.
func (t *Text) nameWidth() int {
	w := 0
	for _, v := range t.versions {
		w = max(w, len(v))
	}
	return w
}

// rows are lines beside a word that says what they are.
type rows struct {
	t     *Text
	word  string
	width int // of a line, without the word
	lines []string
}

func (t *Text) rows(word string) *rows {
	return &rows{t: t, word: word, width: t.width - len(margin) - label}
}

func (r *rows) add(line string) { r.lines = append(r.lines, line) }

func (r *rows) ends(left, right string) {
	r.add(fill(left, r.width-ansi.StringWidth(right)-1) + " " + right)
}

// wrapped adds a text behind a first mark; its further lines stand under it.
func (r *rows) wrapped(mark, text string) {
	indent := ansi.StringWidth(mark)
	for i, l := range wrap(text, r.width-indent) {
		if i > 0 {
			mark = strings.Repeat(" ", indent)
		}
		r.add(mark + l)
	}
}

// named adds a text beside a name.
func (r *rows) named(name, text string) {
	r.wrapped(fill(r.t.ink(faint, name), nameColumn), text)
}

// end writes the lines, if there are any.
func (r *rows) end() {
	if len(r.lines) == 0 {
		return
	}
	r.t.line("")
	for i, l := range r.lines {
		word := strings.Repeat(" ", label)
		if i == 0 {
			word = r.t.ink(faint, fill(r.word, label))
		}
		r.t.line(strings.TrimRight(margin+word+l, " "))
	}
}

func when(yes bool, s string) string {
	if yes {
		return s
	}
	return ""
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Number(n) + " " + what + "s"
}

// Number writes a count for people, with its thousands apart.
func Number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// seconds is a duration as it is shown.
func seconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
