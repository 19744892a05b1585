package views

import (
	"strconv"
	"strings"

	"github.com/crdlab/crdlab/lab/evidence"
)

// etcdPane is the index of the pane with the stored value; before it stand the versions.
func (s *scene) etcdPane() int { return len(s.versions) }

// visible is what of the subjects stands in panes of a height: all of them where there is room, else the last.
type visible struct {
	subjects []subject
	rows     [][]row
	lines    int
}

func (s *scene) visible(h int, whole bool) visible {
	n := len(s.subjects)
	for _, subjects := range [][]subject{s.subjects, s.subjects[n-1:]} {
		v := visible{subjects: subjects}
		room, fits := (h-len(subjects)+1)/len(subjects), true
		for _, sub := range subjects {
			rows := sub.rows
			if !whole {
				rows = lower(rows, room)
			}
			fits = fits && len(rows) <= room
			v.rows = append(v.rows, rows)
			v.lines += max(len(rows), sub.faultLines())
		}
		v.lines += len(subjects) - 1
		if fits || len(subjects) == 1 {
			return v
		}
	}
	return visible{}
}

func (s subject) faultLines() int {
	if len(s.rows) > 0 {
		return 0
	}
	return 4
}

// shows says whether a row of a path is among those that are shown of the last subject.
func (v visible) shows(path string) bool {
	for _, r := range v.rows[len(v.rows)-1] {
		if r.path == path {
			return true
		}
	}
	return false
}

// omitted is how many rows have no room.
func (v visible) omitted() int {
	n := 0
	for i, sub := range v.subjects {
		n += len(sub.rows) - len(v.rows[i])
	}
	return n
}

// panes draws the panes side by side, or the one that has the screen for itself.
func (s *screen) panes() []part {
	if s.lay.zoomOn == zoomPane {
		return []part{{s.lay.panes[0], s.zoomedPane(s.lay.panes[0])}}
	}
	if s.lay.form == formTabs {
		return []part{{s.lay.panes[0], s.tab(s.lay.panes[0])}}
	}
	var out []part
	for i, r := range s.lay.panes {
		v := s.scene.visible(r.h-2, false)
		f := s.paneFrame(i, r.w, v)
		lines, sides := s.paneLines(i, r.w-2, r.h-2, v)
		f.sides = sides
		out = append(out, part{r, box(f, lines, r.w, r.h)})
	}
	return out
}

// zoomedPane is one pane on the whole screen, nothing left out.
func (s *screen) zoomedPane(r rect) []string {
	if s.lay.form == formTabs {
		return s.tab(r)
	}
	pane := max(0, s.focus.pane)
	v := s.scene.visible(r.h-2, true)
	f := s.paneFrame(pane, r.w, v)
	if pane != 0 && pane != s.scene.etcdPane() {
		f.foot = s.objectSaid(r.w)
	}
	lines, sides := s.paneLines(pane, r.w-2, r.h-2, v)
	f.sides = sides
	return box(f, lines, r.w, r.h)
}

// paneLines is what stands in a pane, and the colour of each line's sides.
func (s *screen) paneLines(pane, w, h int, v visible) (lines []string, sides []style) {
	for i, sub := range v.subjects {
		side := s.side(pane, sub)
		if i > 0 {
			name := s.bold.of(" " + clean(sub.name) + " ")
			if pane == s.scene.etcdPane() && sub.stored() != "" {
				name += s.noise.of("stored as ") + s.hueBold(sub.stored()).of(sub.stored()) + " "
			}
			lines, sides = append(lines, divider+name), append(sides, side)
		}
		body := s.subjectLines(pane, w, sub, v.rows[i])
		lines = append(lines, body...)
		for range body {
			sides = append(sides, side)
		}
	}
	from := min(s.paneScroll, max(0, len(lines)-h))
	if from > 0 {
		lines, sides = lines[from:], sides[from:]
	}
	if len(sides) == 0 {
		sides = []style{s.side(pane, v.subjects[len(v.subjects)-1])}
	}
	return lines, sides
}

func (s *screen) subjectLines(pane, w int, sub subject, rows []row) []string {
	var out []string
	if f := sub.faults[pane]; !f.none() {
		out = s.faultLines(f, w)
		for len(out) < len(rows) {
			out = append(out, "")
		}
		return out[:max(len(rows), min(len(out), sub.faultLines()))]
	}
	for _, r := range rows {
		out = append(out, s.row(r, pane, w))
	}
	return out
}

// faultLines say why a pane shows no object.
func (s *screen) faultLines(f fault, w int) []string {
	if f.status == 0 {
		return append([]string{""}, inset(1, s.flow(s.quietly(), f.text, w-4, s.noise.of("∅ "), "  "))...)
	}
	text := strings.TrimPrefix(f.text, strconv.Itoa(f.status)+" ")
	out := []string{"", " " + s.bad.of("✗ ") + s.badBold.of(strconv.Itoa(f.status)) + s.dim.of(" instead of the object")}
	return append(out, inset(3, s.flow(s.clearly(), text, w-5, "", ""))...)
}

// row draws one line of a pane: sign, indentation, key, value.
func (s *screen) row(r row, pane, w int) string {
	c := r.cells[pane]
	pad := strings.Repeat("  ", r.depth)
	switch c.sign {
	case blank:
		return spaces(w)
	case absent:
		return fit(" "+s.warn.of("∅")+" "+pad+s.dim.of(r.key)+s.noise.of(" · "+c.text), w)
	}
	mark, tint := " ", style("")
	switch c.sign {
	case added:
		mark, tint = s.okBold.of("+"), s.added
	case changed:
		mark, tint = s.warnBold.of("~"), s.changed
	case gone:
		mark, tint = s.badBold.of("-"), s.gone
	}
	return tint.under(fit(" "+mark+" "+pad+s.keyValue(r, c, w-3-len(pad)), w))
}

// keyValue is the key and the value of a row.
func (s *screen) keyValue(r row, c cell, w int) string {
	news := c.sign != same
	switch {
	case c.remark && news:
		return s.bold.of(c.text)
	case c.remark:
		return s.noise.of(c.text)
	case r.path == "apiVersion":
		group, version, ok := strings.Cut(c.text, "/")
		if !ok {
			group, version = "", c.text
		}
		if width(c.text)+13 > w {
			group = "…"
		}
		return s.dim.of("apiVersion: ") + s.noise.of(group+"/") + s.hueBold(version).of(version)
	case strings.HasPrefix(r.path, "metadata.managedFields."):
		if news {
			return s.fg.of(r.key+": ") + s.loud(s.bold, c.text)
		}
		return s.dim.of(r.key+": ") + s.say(s.fg, c.text)
	case r.path == "metadata" || r.shrink > 0 && !news:
		return s.noise.of(strings.TrimSuffix(r.key+": "+c.text, " "))
	case news:
		return s.fg.of(r.key+": ") + s.bold.of(c.text)
	case c.text == "":
		return s.dim.of(r.key + ":")
	}
	return s.dim.of(r.key+": ") + s.fg.of(c.text)
}

// stored is the version of a subject's bytes.
func (sub subject) stored() string { return sub.object.StoredVersion() }

// side is the colour of a pane: its version's; etcd wears that of the bytes.
func (s *screen) side(pane int, sub subject) style {
	if pane == s.scene.etcdPane() {
		if sub.stored() == "" {
			return s.line
		}
		return s.hue(sub.stored())
	}
	if s.scene.obs.Version(s.scene.versions[pane]) == nil {
		return s.line
	}
	return s.hue(s.scene.versions[pane])
}

func (s *screen) paneFrame(pane, w int, v visible) frame {
	last, first := v.subjects[len(v.subjects)-1], v.subjects[0]
	f := frame{line: s.side(pane, first), heavy: s.focus == focus{onPane, pane}}
	if pane == s.scene.etcdPane() {
		f.title = " " + s.bold.of("etcd") + " "
		f.note = s.storedAs(first)
		f.foot = s.bytesSaid(last, v, w)
	} else {
		version := s.scene.versions[pane]
		f.title = s.versionTitle(version)
		f.note = s.flags(s.scene.obs.Version(version), w-len(version)-12)
		if pane == 0 {
			f.foot = s.objectSaid(w)
			if left := " · z " + number(v.omitted()) + " lines more"; v.omitted() > 0 && width(f.foot+left)+6 <= w {
				f.foot += s.noise.of(" · ") + s.bold.of("z") + s.noise.of(left[len(" · z"):])
			}
		}
	}
	if more := v.lines - s.lay.panes[0].h + 2; more > s.paneScroll && f.heavy {
		f.foot = strings.TrimSpace(f.foot + "  " + s.bold.of("j") + s.noise.of(" ↓ "+strconv.Itoa(more-s.paneScroll)))
	}
	return f
}

func (s *screen) versionTitle(version string) string {
	if s.scene.obs.Version(version) == nil {
		return " " + s.hue(version).of(version) + " "
	}
	return s.chip(version, version)
}

func (s *screen) storedAs(sub subject) string {
	if sub.stored() == "" {
		return ""
	}
	return s.noise.of("stored as ") + s.hueBold(sub.stored()).of(sub.stored())
}

// objectSaid names the object, its place among all, and what its marks compare it with.
func (s *screen) objectSaid(w int) string {
	sub := s.scene.subjects[len(s.scene.subjects)-1]
	if sub.object == nil {
		return ""
	}
	said := " " + number(sub.place) + "/" + number(s.scene.total())
	if sub.against != "" {
		long := said + " · marked against " + clean(sub.against)
		if said += " · against " + clean(sub.against); width(sub.name+long)+6 <= w {
			said = long
		}
	}
	return s.bold.of(clean(sub.name)) + s.noise.of(said)
}

// bytesSaid says how large the stored value is, and where there is no row for it, its revision.
func (s *screen) bytesSaid(sub subject, v visible, w int) string {
	if sub.object == nil || sub.object.Stored == nil {
		return ""
	}
	now := sub.object.Stored
	said := number(now.Size) + " bytes"
	if sub.was != nil && sub.was.Stored != nil && sub.against == "" && sub.was.Stored.Size != now.Size {
		said += ", was " + number(sub.was.Stored.Size)
	}
	long := "mod revision " + strconv.FormatInt(now.ModRevision, 10) + " · " + said
	if !v.shows("metadata.resourceVersion") && width(long)+6 <= w {
		said = long
	}
	return s.noise.of(said)
}

// flags says what the CRD says of a version; in a narrow pane the plain ones, which stand first, give way.
func (s *screen) flags(v *evidence.Version, w int) string {
	if v == nil {
		return ""
	}
	parts := []string{s.dim.of("served")}
	if !v.Served {
		parts[0] = s.bad.of("✗ not served")
	}
	if v.Storage {
		parts = append(parts, s.bold.of("storage"))
	}
	if v.Deprecated {
		parts = append(parts, s.warn.of("deprecated"))
	}
	joined := func() string { return strings.Join(parts, s.noise.of(" · ")) }
	for len(parts) > 1 && width(joined()) > w {
		if v.Served {
			parts = parts[1:]
		} else { // that it is not served is what one must know
			parts = parts[:len(parts)-1]
		}
	}
	return joined()
}

// tab shows one pane at a time, with its tabs in the frame.
func (s *screen) tab(r rect) []string {
	v := s.scene.visible(r.h-2, s.lay.zoomOn != noZoom)
	sub := v.subjects[len(v.subjects)-1]
	at := s.shown
	f := frame{line: s.line, heavy: s.focus == at}
	var lines []string
	switch at.kind {
	case onBoth:
		f.line = s.turned(f)
		lines = s.both(r.w-2, r.h-2, v)
		f.foot = s.objectSaid(r.w)
	case onLog:
		f.line = s.turned(f)
		lines = s.requests(r.w-2, r.h-2)
		f.note = s.newerSaid()
	case onReviews:
		f.line = s.turned(f)
		lines = s.reviewList(s.reviews(), r.w-4, r.h-2)
		f.note, f.foot = s.slowSaid(), s.bold.of("z")+s.noise.of(" shows its objects")
	default:
		pf := s.paneFrame(at.pane, r.w-34-width(s.reviewsTab()), v)
		f.line, f.note = pf.line, pf.note
		lines, f.sides = s.paneLines(at.pane, r.w-2, r.h-2, v)
		f.foot = s.objectSaid(r.w)
		if b := s.bytesSaid(sub, v, r.w-30); b != "" {
			f.foot += s.noise.of(" · ") + b
		}
	}
	if more := v.lines - r.h + 2; more > s.paneScroll && at.kind != onLog && at.kind != onReviews {
		f.foot += "  " + s.bold.of("j") + s.noise.of(" ↓ "+strconv.Itoa(more-s.paneScroll))
	}
	f.title = s.tabTitles(sub)
	return box(f, lines, r.w, r.h)
}

// turned is the line of a frame that belongs to no version.
func (s *screen) turned(f frame) style {
	if f.heavy {
		return s.fg
	}
	return s.line
}

func (s *screen) tabTitles(sub subject) string {
	var b strings.Builder
	for _, t := range s.tabs() {
		name, c := "", s.dim
		switch t.kind {
		case onBoth:
			name = "both"
		case onLog:
			name = "requests"
		case onReviews:
			name = s.reviewsTab()
		default:
			name = "etcd"
			if t.pane < s.scene.etcdPane() {
				name = s.scene.versions[t.pane]
				c = s.hue(name)
			}
		}
		switch {
		case t != s.shown:
			b.WriteString(" " + c.of(name) + " ")
		case t.kind == onPane && t.pane == s.scene.etcdPane() && sub.stored() != "":
			b.WriteString(s.chip(sub.stored(), name))
		case t.kind == onPane && t.pane < s.scene.etcdPane():
			b.WriteString(s.chip(name, name))
		default:
			b.WriteString(s.next(name))
		}
	}
	return b.String()
}

// both shows the oldest and the newest version side by side.
func (s *screen) both(w, h int, v visible) []string {
	left := (w - 1) / 2
	right := w - 1 - left
	last := len(s.scene.versions) - 1
	a, _ := s.paneLines(0, left, h, v)
	b, _ := s.paneLines(last, right, h, v)
	var out []string
	for i := range max(len(a), len(b)) {
		l, r := "", ""
		if i < len(a) {
			l = strings.TrimPrefix(a[i], divider)
		}
		if i < len(b) {
			r = strings.TrimPrefix(b[i], divider)
		}
		out = append(out, fit(l, left)+s.line.of("│")+fit(r, right))
	}
	return out
}
