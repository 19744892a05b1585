package views

import (
	"slices"
	"strconv"
	"strings"
)

// MinWidth and MinHeight are the smallest screen on which the lab can be read.
const (
	MinWidth  = 80
	MinHeight = 24
)

// rect is a place on the screen, in cells.
type rect struct{ x, y, w, h int }

func (r rect) empty() bool { return r.w <= 0 || r.h <= 0 }

// part is a block of lines at its place. Parts do not overlap.
type part struct {
	rect
	lines []string
}

// form is how much the screen can show at once.
type form int

const (
	formSmall form = iota
	formTabs       // one pane at a time, under its tabs
	formPanes      // the panes side by side, the question under the briefing
	formWide       // and the question beside it
)

// zoom says what has the screen for itself.
type zoom int

const (
	noZoom zoom = iota
	zoomPane
	zoomLog
	zoomProse
	zoomReviews
)

// layout is where everything stands. What has no room in the band over the panes may take the lines that they can spare;
// nothing else moves between the states of a step.
type layout struct {
	w, h                                              int
	form                                              form
	airy                                              bool // there is room for air
	zoomOn                                            zoom
	head, notice, rail, prose, card, table, log, keys rect
	fault, reviews                                    rect   // empty where no fault is on, and where there is no webhook
	panes                                             []rect // one for each pane, or one with tabs
}

// measures is what a layout depends on besides the size.
type measures struct {
	panes    int // side by side
	versions int // rows of the version table
	zoom     zoom
	fault    int // width of what is said of a fault
	reviews  bool
	more     int // lines that the panes can spare for the band over them
}

const railWidth = 27

func arrange(w, h int, m measures) layout {
	l := layout{w: w, h: h, form: formFor(w, h), airy: h >= 40, zoomOn: m.zoom}
	if l.form == formSmall {
		return l
	}
	l.head, l.notice, l.keys = rect{0, 0, w, 1}, rect{0, 1, w - m.fault, 1}, rect{0, h - 1, w, 1}
	l.fault = rect{w - m.fault, 1, m.fault, 1}
	if m.zoom != noZoom {
		l.zoomed(m)
		return l
	}
	y := 2
	if l.airy {
		y++
	}
	top := l.above(y, m.more)
	y += top
	bottom := h - 1 // exclusive; grows upwards from the keys
	if l.airy {
		bottom--
	}
	logH := 2
	if l.airy {
		logH = 4
	}
	bottom -= logH
	l.log = rect{0, bottom, w, logH}
	if l.form == formTabs {
		bottom--
		l.table = rect{0, bottom, w, 1}
		if l.airy {
			y++
		}
		l.panes = []rect{{1, y, w - 2, bottom - y}}
		return l
	}
	if m.reviews {
		rw := l.reviewsWidth()
		l.log.w -= rw + 2
		l.reviews = rect{w - rw - 1, bottom - 1, rw, logH + 1} // its head stands in the air above
	}
	bottom -= 1 + 1 + m.versions // air, heads, rows
	l.table = rect{0, bottom, w, 1 + m.versions}
	if l.airy {
		bottom--
	}
	y++
	l.panes = columns(w, y, bottom-y, m.panes)
	return l
}

// reviewsWidth is the room for reviews beside the log: under the counts of stored objects, as far as they fit there.
func (l *layout) reviewsWidth() int {
	if l.form == formWide {
		return (l.w - 4) / 3
	}
	return max(46, l.w-73)
}

func formFor(w, h int) form {
	switch {
	case w < MinWidth || h < MinHeight:
		return formSmall
	case w < 110 || h < 28:
		return formTabs
	case w < 150:
		return formPanes
	}
	return formWide
}

// above lays out the band over the panes and says how high it is.
func (l *layout) above(y, more int) int {
	h := 11
	switch {
	case l.form == formTabs && l.h < 30:
		h = 9
	case l.form == formTabs:
		h = 11 + (l.h-30)/4
	case l.h >= 43:
		h = 13 + (l.h-43)/4
	}
	h += more
	switch {
	case l.w < 100:
		l.prose = rect{2, y, l.w - 4, h}
	case l.form != formWide:
		l.rail = rect{1, y, railWidth, h}
		l.prose = rect{railWidth + 3, y, l.w - railWidth - 5, h}
	default:
		third := (l.w - 4) / 3
		l.rail = rect{1, y, railWidth, h}
		l.card = rect{l.w - 1 - third, y, third, h}
		l.prose = rect{railWidth + 4, y, l.w - third - railWidth - 6, h}
	}
	return h
}

// columns are the panes: of one width, but for what a division leaves.
func columns(w, y, h, n int) []rect {
	room := w - 2 - (n - 1)
	var out []rect
	x := 1
	for i := range n {
		cw := room / n
		if i < room%n {
			cw++
		}
		out = append(out, rect{x, y, cw, h})
		x += cw + 1
	}
	return out
}

func (l *layout) zoomed(m measures) {
	body := rect{0, 2, l.w, l.h - 3}
	switch {
	case m.zoom == zoomLog:
		l.log = body
	case m.zoom == zoomReviews:
		l.reviews = rect{1, 2, l.w - 2, l.h - 3}
	case m.zoom == zoomProse:
		l.prose = rect{3, 3, l.w - 6, l.h - 5}
	default:
		l.panes = []rect{{1, 2, l.w - 2, l.h - 3}}
	}
}

// compose puts parts on an empty screen of exactly w by h cells.
func compose(w, h int, parts []part) []string {
	parts = slices.DeleteFunc(parts, func(p part) bool { return p.empty() })
	slices.SortStableFunc(parts, func(a, b part) int { return a.x - b.x })
	out := make([]string, h)
	var b strings.Builder
	for y := range out {
		b.Reset()
		x := 0
		for _, p := range parts {
			if i := y - p.y; i >= 0 && i < p.h {
				b.WriteString(spaces(p.x - x))
				if i < len(p.lines) {
					b.WriteString(fit(p.lines[i], p.w))
				} else {
					b.WriteString(spaces(p.w))
				}
				x = p.x + p.w
			}
		}
		b.WriteString(spaces(w - x))
		out[y] = b.String()
	}
	return out
}

// small is the one line that is shown where there is no room for the lab.
func small(w, h int) []string {
	said := ""
	for _, s := range []string{
		"crdlab needs a window of 80×24, this one is " + size(w, h),
		"crdlab needs 80×24, this is " + size(w, h),
		"needs 80×24, is " + size(w, h),
		"needs 80×24",
	} {
		said = s
		if width(s) <= w {
			break
		}
	}
	return block([]string{said}, w, h)
}

func size(w, h int) string { return strconv.Itoa(w) + "×" + strconv.Itoa(h) }
