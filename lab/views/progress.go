package views

import (
	"strings"

	"github.com/crdlab/crdlab/lab/rewrite"
)

// running is what is said while a step is at work.
func (s *screen) running(w int) []string {
	var out []string
	if s.rewriting() {
		out = append(out, s.progress(s.state.Progress, w)...)
	}
	return append(out, s.pen.prose(s.quietly(), s.step.Briefing, w)...)
}

// moved says from which version to which objects move, and how many are where: from the bytes where they can be read.
func (s *screen) moved(p *rewrite.Progress) (from, to string, done, total int) {
	obs := s.scene.obs
	to = obs.StorageVersion()
	if obs == nil || !obs.Stored.Access {
		return "", to, p.Done, p.Total
	}
	for v, n := range obs.Stored.ByVersion {
		if v != to && n > obs.Stored.ByVersion[from] {
			from = v
		}
	}
	if from == "" { // nothing is old: what goes on moves no bytes, such as a relabelling
		return "", to, p.Done, p.Total
	}
	return from, to, obs.Stored.ByVersion[to], obs.Stored.Total
}

// progress is the bar and the figures of a rewrite.
func (s *screen) progress(p *rewrite.Progress, w int) []string {
	from, to, done, total := s.moved(p)
	left := s.hueBold(to).of(to+" ") + s.bold.of(number(done))
	right := s.bold.of(number(total-done)) + " " + s.hueBold(from).of(from)
	if from == "" {
		left, right = s.bold.of(number(done))+s.dim.of(" done"), s.bold.of(number(total-done))+s.dim.of(" to go")
	}
	cells := 0
	if total > 0 {
		cells = min(w, done*w/total)
	}
	rest := s.line.of(strings.Repeat("░", w-cells))
	if from != "" {
		rest = s.hue(from).of(strings.Repeat(s.texture(from), w-cells))
	}
	out := []string{ends(left, right, w), s.hue(to).of(strings.Repeat(s.texture(to), cells)) + rest, ""}
	percent := 0
	if total > 0 {
		percent = done * 100 / total
	}
	if p.Waiting != "" {
		out = append(out[:2:2], s.flow(s.clearly(), p.Waiting, w, s.warnBold.of("○ "), "  ")...)
	}
	out = append(out, abreast(s.figures(p, percent), "    ", w)...)
	if said := p.Said(); said != "" {
		out = append(out, s.flow(s.clearly(), said, w, s.warn.of("○ "), "  ")...)
	}
	return append(out, "")
}

// figures are the numbers of a rewrite. How many are done is counted; answered says how many requests were.
func (s *screen) figures(p *rewrite.Progress, percent int) []string {
	figure := func(name, value string) string { return s.noise.of(name+" ") + s.fg.of(value) }
	out := []string{s.bold.of(number(percent) + " %"), figure("rate", number(int(p.Rate+0.5))+"/s")}
	if s.state.Paused {
		out = append(out, s.warnBold.of("○ paused"))
	} else if p.Left > 0 && p.Waiting == "" {
		out = append(out, figure("left", took(p.Left)))
	}
	if p.Migration == nil {
		out = append(out, figure("answered", number(p.Done)+" of "+number(p.Total)))
	}
	if p.BytesAfter > 0 {
		out = append(out, figure("bytes", moveSaid(p.BytesBefore, p.BytesAfter)))
	}
	if p.Migration == nil {
		out = append(out, figure("conflicts", number(p.Conflicts)))
	}
	if p.Failed > 0 {
		out = append(out, s.badBold.of("✗ failed "+number(p.Failed)))
	}
	return out
}

// moveSaid writes two sizes, with one unit where it serves both.
func moveSaid(from, to int64) string {
	unit, name := int64(1), "B"
	switch most := max(from, to); {
	case most >= 10_000_000:
		unit, name = 1_000_000, "MB"
	case most >= 10_000:
		unit, name = 1_000, "kB"
	}
	return number(int(from/unit)) + " → " + number(int(to/unit)) + " " + name
}

// fieldCard shows the objects as cells, each for a few of them.
func (s *screen) fieldCard(r rect) []string {
	from, to, done, total := s.moved(s.state.Progress)
	cols, rows := (r.w-5)/2, r.h-4
	per := max(1, (total+cols*rows-1)/(cols*rows))
	f := frame{line: s.line, title: " " + s.bold.of("etcd") + s.noise.of(" 1 cell = "+number(per)+plural(per, " object ", " objects "))}
	old := s.noise.of("□")
	f.foot = s.hue(to).of(s.cell(to)) + s.noise.of(" done")
	if from != "" {
		old = s.hue(from).of(s.cell(from))
		f.foot = s.hue(to).of(s.cell(to)) + s.noise.of(" "+to+"  ") + old + s.noise.of(" "+from)
	}
	fresh := s.hue(to).of(s.cell(to))
	body := make([]string, rows)
	for i := range (total + per - 1) / per {
		c := old
		switch at := done / per; {
		case i < at:
			c = fresh
		case i == at:
			c = s.bold.of("▪")
		}
		body[min(i/cols, rows-1)] += c + " "
	}
	return box(f, append([]string{""}, inset(2, body)...), r.w, r.h)
}
