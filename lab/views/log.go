package views

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

// target is where an exchange went, in brief: the version apart, so that it can wear its colour.
func target(path string, r storage.Resource) (version, rest string) {
	bare, _, _ := strings.Cut(path, "?")
	if crd, ok := strings.CutPrefix(bare, evidence.DefinitionsPath); ok {
		return "", "crds" + clean(crd)
	}
	within, ok := strings.CutPrefix(bare, "/apis/"+r.Group+"/")
	if !ok {
		return "", clean(bare)
	}
	version, rest, _ = strings.Cut(within, "/")
	if after, ok := strings.CutPrefix(rest, "namespaces/"); ok {
		if _, below, deeper := strings.Cut(after, "/"); deeper {
			return clean(version), "…/" + clean(below)
		}
	}
	return clean(version), "…/" + clean(rest)
}

// statusStyle is the colour of a status: a conflict is no harm, it is tried again.
func (p *pen) statusStyle(status int) style {
	switch {
	case status == 409 || status == 429:
		return p.warn
	case status >= 400, status == 0:
		return p.bad
	}
	return p.ok
}

func statusText(status int) string {
	if status == 0 {
		return " – "
	}
	return strconv.Itoa(status)
}

// logLine draws one exchange on one line.
func (s *screen) logLine(x evidence.Exchange, left int, col int, w int) string {
	version, rest := target(x.Path, s.state.Resource)
	where := s.dim.of(middle(rest, col-1))
	if version != "" {
		vw := max(9, width(version)+1)
		where = fit(s.hue(version).of(version), vw) + s.dim.of(middle(rest, col-vw-1))
	}
	status, verb := s.statusStyle(x.Status), s.fg
	if x.Actor == evidence.ByProbe { // what the lab finds out for itself is no part of the story
		status, verb = s.noise, s.noise
	}
	line := spaces(left) + status.of(statusText(x.Status)) + "  " + fit(verb.of(x.Method), 7) + fit(where, col) +
		s.noise.of(fmt.Sprintf("%7s", milliseconds(x.DurationMS))) + spaces(max(2, left))
	return fit(line+s.note(x), w)
}

func milliseconds(ms float64) string {
	switch {
	case ms >= 1000:
		return strconv.FormatFloat(ms/1000, 'f', 1, 64) + " s"
	case ms >= 100:
		return strconv.Itoa(int(ms)) + " ms"
	}
	return strconv.FormatFloat(ms, 'f', 1, 64) + " ms"
}

// note says what is remarkable about an exchange: who sent it, a warning, why it was refused, or what it asked for.
func (s *screen) note(x evidence.Exchange) string {
	var said []string
	switch x.Actor {
	case evidence.ByHand:
		said = append(said, s.bold.of("by hand"))
	case evidence.ByProbe:
		said = append(said, s.noise.of("probe"))
	}
	if x.DryRun() {
		said = append(said, s.noise.of("dry run"))
	}
	if name := created(x); name != "" {
		said = append(said, s.noise.of(name))
	}
	switch asked := asks(x); {
	case x.Status == 0:
		said = append(said, s.bad.of("no answer: ")+s.dim.of(clean(x.Message)))
	case x.Refused():
		said = append(said, s.say(s.dim, gist(refusal(x))))
	case len(x.Warnings) > 0:
		said = append(said, s.warn.of("▲ ")+s.say(s.dim, clean(strings.Join(x.Warnings, " · "))))
	case asked != "":
		said = append(said, s.noise.of(asked))
	}
	return strings.Join(said, s.noise.of(" · "))
}

// refusal says in brief why an exchange was refused.
func refusal(x evidence.Exchange) string {
	why := clean(x.Message)
	if len(x.Causes) > 0 && x.Causes[0].Field != "" {
		why = clean(x.Causes[0].Field)
	}
	if x.Reason == "" {
		return why
	}
	return clean(x.Reason) + ": " + why
}

// conversionFailed is how the API server begins to tell what was wrong with a conversion webhook's answer, after what it
// has to say of itself.
var conversionFailed = regexp.MustCompile(`^.*conversion webhook for \S+ Kind=\w+ (failed: |returned )?(Post "[^"]*": )?`)

// gist is a message in brief. What a conversion webhook did wrong stands at the end of a long one, which the log has whole; any
// other is left as it is.
func gist(message string) string {
	if at := conversionFailed.FindStringSubmatchIndex(message); at != nil {
		said := ""
		if at[2] >= 0 {
			said = " " + message[at[2]:at[3]]
		}
		return "… conversion webhook" + strings.TrimRight(said, " ") + " " + message[at[1]:]
	}
	return message
}

// created is the name of the object that a request was to create; its path does not have it.
func created(x evidence.Exchange) string {
	var o struct{ Metadata struct{ Name string } }
	if x.Method != http.MethodPost || json.Unmarshal([]byte(x.Body), &o) != nil {
		return ""
	}
	return clean(o.Metadata.Name)
}

// asks says in brief what a request asked for.
func asks(x evidence.Exchange) string {
	if x.Body == "" {
		return ""
	}
	switch x.ContentType {
	case evidence.JSONPatch:
		var ops []struct{ Op, Path string }
		if json.Unmarshal([]byte(x.Body), &ops) == nil {
			var said []string
			for _, o := range ops {
				if o.Op != "test" {
					said = append(said, clean(o.Op+" "+o.Path))
				}
			}
			return strings.Join(said, ", ")
		}
	case evidence.ApplyPatch:
		_, query, _ := strings.Cut(x.Path, "?")
		if q, err := url.ParseQuery(query); err == nil && q.Get("fieldManager") != "" {
			return "server-side apply by " + clean(q.Get("fieldManager"))
		}
		return "server-side apply"
	case evidence.JSON:
		return "" // a whole object; created names it
	}
	return clean(x.Body[:min(len(x.Body), 400)])
}

// exchanges are those that the log shows: of the whole session, or of the step that is looked back at.
func (s *screen) exchanges() []evidence.Exchange {
	if s.lookingBack() {
		return s.step.Exchanges
	}
	return s.state.Log
}

// story is the log without the lab's own probes: what stands under the panes, where there are few lines.
func (s *screen) story() []evidence.Exchange {
	var out []evidence.Exchange
	for _, x := range slices.Backward(s.exchanges()) {
		if x.Actor != evidence.ByProbe {
			out = append(out, x)
		}
		if len(out) >= s.logScroll+s.lay.log.h {
			break
		}
	}
	slices.Reverse(out)
	return out
}

// log draws the newest exchanges, or on the whole screen each with what the server said.
func (s *screen) log() []string {
	r := s.lay.log
	if s.lay.zoomOn == zoomLog {
		f := frame{line: s.fg, title: " " + s.bold.of("Requests") + " ", note: s.newerSaid(), heavy: true}
		return inset(1, box(f, s.requests(r.w-4, r.h-2), r.w-2, r.h))
	}
	left, col := 4, 30
	if s.lay.form == formTabs {
		left, col = 2, 25
	}
	if !s.lay.reviews.empty() && s.lay.form == formPanes {
		left, col = 2, 26
	}
	xs := window(s.story(), s.logScroll, r.h)
	focused := s.focus.kind == onLog && s.lay.form != formTabs
	var out []string
	for i, x := range xs {
		hint := ""
		if focused && i == len(xs)-1 && s.logScroll > 0 {
			hint = "  " + s.newerSaid() + "  "
		}
		l := s.logLine(x, left, col, r.w-width(hint)) + hint
		if focused {
			l = " " + s.fg.of("┃") + strings.TrimPrefix(l, "  ")
		}
		out = append(out, l)
	}
	return out
}

// window is the part of a log that the learner has scrolled to.
func window(xs []evidence.Exchange, below, h int) []evidence.Exchange {
	end := max(min(h, len(xs)), len(xs)-below)
	return xs[max(0, end-h):end]
}

func (s *screen) newerSaid() string {
	if s.logScroll == 0 {
		return ""
	}
	return s.bold.of("j") + s.noise.of(" ↓ "+strconv.Itoa(s.logScroll)+" newer")
}

// requests draws the log where it has room: a refusal whole.
func (s *screen) requests(w, h int) []string {
	all := s.exchanges()
	xs := all[:max(0, len(all)-s.logScroll)]
	var out []string
	for i := len(xs) - 1; i >= 0 && len(out) < h; i-- {
		out = append(s.requestLines(xs[i], w), out...)
	}
	return out[max(0, len(out)-h):]
}

// requestLines draws one exchange, and below it whatever of what was said has no room beside it.
func (s *screen) requestLines(x evidence.Exchange, w int) []string {
	line := s.logLine(x, 1, 30, w)
	said := whole(x)
	if said == "" || width(said)+width(created(x)) <= w-58 {
		return []string{line}
	}
	return append([]string{line}, inset(13, s.flow(s.quietly(), said, w-15, "", ""))...)
}

// whole is all that the server said of an exchange.
func whole(x evidence.Exchange) string {
	switch {
	case x.Refused() && len(x.Causes) > 0:
		said := make([]string, len(x.Causes))
		for i, c := range x.Causes {
			said[i] = strings.TrimPrefix(c.Field+": "+c.Message, ": ")
		}
		return strings.Join(said, " · ")
	case x.Refused() || x.Status == 0:
		return x.Message
	}
	return strings.Join(x.Warnings, " · ")
}
