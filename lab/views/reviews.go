package views

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
)

// reviews are those that are shown: of the whole session, or of the step that is looked back at.
func (s *screen) reviews() []evidence.Conversion {
	if s.lookingBack() {
		return s.step.Conversions
	}
	return s.state.Conversions
}

// reviewAt is the place of the chosen review among those that are shown: the newest where none is chosen. -1: there is none.
func (s *screen) reviewAt(all []evidence.Conversion) int {
	if at := slices.IndexFunc(all, func(c evidence.Conversion) bool { return c.Seq == s.review }); at >= 0 {
		return at
	}
	return len(all) - 1
}

// chooseReview takes the review that is so many later; the newest stays the newest when others come.
func (m *program) chooseReview(s *screen, by int) {
	all := s.reviews()
	at := min(max(0, s.reviewAt(all)+by), len(all)-1)
	m.sight.sidesScroll, m.sight.review = 0, 0
	if at >= 0 && at < len(all)-1 {
		m.sight.review = all[at].Seq
	}
}

// reviewsTab is the title of the tab; empty where the track has no webhook.
func (s *screen) reviewsTab() string {
	if !s.state.Webhook {
		return ""
	}
	return "reviews"
}

// reviewBand draws the newest reviews beside the log.
func (s *screen) reviewBand(r rect) []string {
	if r.empty() {
		return nil
	}
	all := s.reviews()
	head := "  " + s.noise.of("reviews by the webhook")
	if said := s.slowSaid(); said != "" {
		head = "  " + s.noise.of("reviews") + "  " + said
	}
	focused := s.focus.kind == onReviews
	if focused {
		head += s.laterSaid(all)
	}
	out := []string{head}
	for _, l := range s.reviewList(all, r.w, r.h-1) {
		if focused {
			l = s.fg.of("┃") + strings.TrimPrefix(l, " ")
		}
		out = append(out, l)
	}
	return out
}

// laterSaid says how many reviews came after the chosen one.
func (s *screen) laterSaid(all []evidence.Conversion) string {
	if n := len(all) - 1 - s.reviewAt(all); n > 0 {
		return "  " + s.bold.of("j") + s.noise.of(" ↓ "+number(n)+" later")
	}
	return ""
}

// slowSaid says from when on a call is slow, where one is.
func (s *screen) slowSaid() string {
	if slices.ContainsFunc(s.reviews(), func(c evidence.Conversion) bool { return c.Slow() }) {
		var none, one evidence.Conversion
		one.Objects = 1
		base, each := none.SlowAfter().Milliseconds(), (one.SlowAfter() - none.SlowAfter()).Milliseconds()
		return s.warn.of("▲ slow") + s.dim.of(fmt.Sprintf(": over %d ms + %d ms an object", base, each))
	}
	return ""
}

// reviewList draws reviews down to the chosen one, which is the last where there are more below it.
func (s *screen) reviewList(all []evidence.Conversion, w, h int) []string {
	at := s.reviewAt(all)
	if at < 0 {
		return []string{"  " + s.noise.of("none yet: nobody has asked the webhook")}
	}
	var out []string
	for i := max(0, at+1-h); i < min(len(all), max(at+1, h)); i++ {
		l := " " + s.reviewLine(all[i], w-1)
		if i == at && s.focus.kind == onReviews {
			l = s.raise.under(fit(" "+s.bold.of("▸")+strings.TrimPrefix(l, "  "), w))
		}
		out = append(out, l)
	}
	return out
}

// reviewLine draws one review on one line: how it went, from which version to which, what, how long, and what is remarkable.
func (s *screen) reviewLine(c evidence.Conversion, w int) string {
	col := min(max(8, (w-36)/2), 24)
	took, tone := milliseconds(c.DurationMS), s.noise
	if c.Slow() {
		took, tone = "▲ "+took, s.warn
	}
	line := " " + s.reviewSign(c) + " " + s.converts(c) + "  " + fit(s.fg.of(middle(objectNames(c), col-1)), col) +
		spaces(8-width(took)) + tone.of(took) + "  "
	return fit(line+s.reviewNote(c, w-width(line)), w)
}

// reviewSign says how a review went. A success that a fault has spoiled is none that one can rely on.
func (s *screen) reviewSign(c evidence.Conversion) string {
	switch {
	case c.Result != evidence.ConversionSuccess:
		return s.bad.of("✗")
	case c.Message != "":
		return s.warn.of("▲")
	}
	return s.ok.of("✓")
}

// converts is from which version to which, each as wide as the longest of the track.
func (s *screen) converts(c evidence.Conversion) string {
	w := 0
	for _, v := range s.versions {
		w = max(w, width(v))
	}
	from, to := versionOf(c.From), versionOf(c.DesiredAPIVersion)
	return fit(s.hue(from).of(from), w) + s.noise.of(" → ") + fit(s.hue(to).of(to), w)
}

// versionOf is an apiVersion without its group; of several, all.
func versionOf(apiVersion string) string {
	all := strings.Split(apiVersion, ", ")
	for i, v := range all {
		all[i] = clean(v[strings.LastIndexByte(v, '/')+1:])
	}
	return strings.Join(all, " ")
}

// objectNames are the objects of a review: the first, and how many more.
func objectNames(c evidence.Conversion) string {
	if len(c.Names) == 0 {
		return number(c.Objects) + plural(c.Objects, " object", " objects")
	}
	name := clean(c.Names[0][strings.LastIndexByte(c.Names[0], '/')+1:])
	if c.Objects > 1 {
		name += " +" + number(c.Objects-1)
	}
	return name
}

// reviewNote says what is remarkable about a review, if there is room to say so much that it is understood.
func (s *screen) reviewNote(c evidence.Conversion, room int) string {
	const enough = 6
	if room < enough {
		return ""
	}
	var said []string
	if c.Result != evidence.ConversionSuccess {
		said = append(said, s.bad.of(clean(c.Result)))
	}
	if slow := fmt.Sprintf("slow: over %d ms", c.SlowAfter().Milliseconds()); c.Slow() && room >= len(slow) {
		said = append(said, s.warn.of(slow))
	}
	if c.Message != "" {
		said = append(said, s.say(s.dim, clean(strings.TrimPrefix(c.Message, "fault "))))
	}
	return strings.Join(said, s.noise.of(" · "))
}
