package views

import (
	"encoding/json"
	"fmt"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/evidence"
)

// A review on the whole screen: above the list, below what the API server sent and what the webhook answered.

func (s *screen) zoomedReviews(r rect) []string {
	all := s.reviews()
	f := frame{line: s.fg, heavy: true, title: " " + s.bold.of("Reviews by the webhook") + " ", note: s.slowSaid()}
	at := s.reviewAt(all)
	if at < 0 {
		return box(f, s.reviewList(all, r.w-2, r.h-2), r.w, r.h)
	}
	listed := min(len(all), max(3, (r.h-2)/4))
	lines := s.reviewList(all, r.w-2, listed)
	lines = append(lines, divider+s.sidesTitle(all[at], r.w-2))
	sides := s.reviewSides(all[at], r.w-2)
	room := r.h - 2 - len(lines)
	from := min(s.sidesScroll, max(0, len(sides)-room))
	f.foot = s.bold.of("j k") + s.noise.of(" another review")
	if more := len(sides) - room - from; more > 0 {
		f.foot += "  " + s.bold.of("pgdn") + s.noise.of(" ↓ "+number(more))
	} else if from > 0 {
		f.foot += "  " + s.bold.of("pgup") + s.noise.of(" ↑ "+number(from))
	}
	return box(f, append(lines, sides[from:]...), r.w, r.h)
}

// scrollSides moves the objects of a review by half of their height.
func (m *program) scrollSides(s *screen, by int) {
	all := s.reviews()
	at := s.reviewAt(all)
	if at < 0 {
		return
	}
	r := s.lay.reviews
	room := r.h - 3 - min(len(all), max(3, (r.h-2)/4))
	over := max(0, len(s.reviewSides(all[at], r.w-2))-room)
	m.sight.sidesScroll = min(max(0, min(s.sidesScroll, over)+by*max(1, room/2)), over)
}

// sidesTitle stands over the two objects.
func (s *screen) sidesTitle(c evidence.Conversion, w int) string {
	from, to := versionOf(c.From), versionOf(c.DesiredAPIVersion)
	left := " " + s.noise.of("the API server sent ") + s.hueBold(from).of(from) + " "
	right := " " + s.noise.of("the webhook, asked for ") + s.hueBold(to).of(to) + " "
	gap := (w-1)/2 - width(left) - 1
	line := ""
	for range max(0, gap) {
		line += "─"
	}
	return left + s.fg.of(line+"┬") + right
}

// reviewSides are the objects of a review as they were sent and as they were answered. What the webhook changed is marked on
// the right; what it added has a line on the left that says that it was not there.
func (s *screen) reviewSides(c evidence.Conversion, w int) []string {
	left := (w - 1) / 2
	right := w - 1 - left
	sent, answered := reviewObjects(c)
	if sent == nil {
		return inset(2, s.flow(s.quietly(), fmt.Sprintf("The request is longer than %d KiB: of such a one the lab keeps only the beginning.", cluster.MaxRecordedBody>>10), w-4, s.noise.of("∅ "), "  "))
	}
	var out []string
	for i := range sent {
		if i > 0 {
			out = append(out, s.line.of(spaces(left)+"│"))
		}
		var answer map[string]any
		if i < len(answered) {
			answer = s.decoded(answered[i])
		}
		rows := s.reviewRows(c, s.decoded(sent[i]), answer)
		var instead []string
		if answer == nil {
			instead = s.noObject(c, right)
		}
		for j := range max(len(rows), len(instead)) {
			l, r := "", ""
			if j < len(rows) {
				l, r = s.row(rows[j], 0, left), s.row(rows[j], 1, right)
			}
			if answer == nil {
				r = ""
				if j < len(instead) {
					r = instead[j]
				}
			}
			out = append(out, fit(l, left)+s.line.of("│")+fit(r, right))
		}
	}
	return out
}

func (s *screen) decoded(raw json.RawMessage) map[string]any { return decode(raw, s.managers) }

// reviewRows are the two objects line by line.
func (s *screen) reviewRows(c evidence.Conversion, sent, answered map[string]any) []row {
	sources := []source{{now: sent, was: sent}, {now: answered, was: sent}}
	return levelRows(sources, withItself, nil, func(int, []string) string { return "not in the request" })
}

// noObject says why there is no object in an answer.
func (s *screen) noObject(c evidence.Conversion, w int) []string {
	if c.Result == evidence.ConversionSuccess && c.Message == "" {
		return append([]string{""}, inset(1, s.flow(s.quietly(), fmt.Sprintf("The answer is longer than %d KiB: of such a one the lab keeps only the beginning.", cluster.MaxRecordedBody>>10), w-4, s.noise.of("∅ "), "  "))...)
	}
	out := append([]string{""}, inset(1, s.flow(s.loudly(), c.Result, w-4, s.badBold.of("✗ "), "  "))...)
	if c.Message != "" {
		out = append(out, inset(3, s.flow(s.clearly(), c.Message, w-6, "", ""))...)
	}
	if !json.Valid([]byte(c.Response)) && c.Response != "" {
		out = append(out, "", "   "+s.noise.of("what it sent:"))
		for _, l := range wrap(clean(c.Response), w-6) {
			out = append(out, "   "+s.dim.of(l))
		}
	}
	return out
}

// reviewObjects are the objects of a review's request and of its answer; nil where the body was cut, or has none.
func reviewObjects(c evidence.Conversion) (sent, answered []json.RawMessage) {
	var body struct {
		Request  struct{ Objects []json.RawMessage }
		Response struct{ ConvertedObjects []json.RawMessage }
	}
	if json.Unmarshal([]byte(c.Request), &body) == nil {
		sent = body.Request.Objects
	}
	if json.Unmarshal([]byte(c.Response), &body) == nil {
		answered = body.Response.ConvertedObjects
	}
	return sent, answered
}
