package views

import (
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab"
)

// tableVersions are the rows of the version table: those of the track, and any other that the CRD, its record or the
// bytes name.
func tableVersions(s *scene) []string {
	out := slices.Clone(s.versions)
	add := func(v string) {
		if v != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	if s.obs == nil {
		return out
	}
	if s.obs.CRD != nil {
		for _, v := range s.obs.CRD.Versions {
			add(v.Name)
		}
	}
	for _, v := range s.obs.StoredVersions() {
		add(v)
	}
	var stored []string
	for v := range s.obs.Stored.ByVersion {
		stored = append(stored, v)
	}
	slices.Sort(stored)
	for _, v := range stored {
		add(v)
	}
	return out
}

// table says of each version what the CRD says, what its record says, and what the bytes say.
func (s *screen) table() []string {
	w := s.lay.table.w
	if s.lay.form == formTabs {
		return []string{s.tableLine(w)}
	}
	third := (w - 4) / 3
	cols := []int{14, 12, 12, third - 37, third + 1}
	if s.lay.form != formWide {
		cols = []int{11, 8, 9, 12, 30}
	}
	line := func(c ...string) string {
		out := "    "
		for i, n := range cols {
			out += fit(c[i], n)
		}
		return fit(out+c[len(cols)], w)
	}
	used := 4
	for _, n := range cols {
		used += n
	}
	out := []string{line(s.noise.of("version"), s.noise.of("served"), s.noise.of("storage"), s.noise.of("deprecated"),
		s.noise.of("status.storedVersions"), s.noise.of("objects stored in etcd"))}
	for _, v := range tableVersions(s.scene) {
		out = append(out, line(s.hueBold(v).of(clean(v)), s.served(v), s.storage(v), s.deprecated(v), s.listed(v, true),
			s.stored(v, min(w-used-8, 40))))
	}
	return out
}

// flag draws a yes or a no, and whether it became so.
func (s *screen) flag(now, was, known bool, yes, no string) string {
	switch {
	case known && now && !was:
		return s.noise.of("– → ") + yes
	case known && !now && was:
		return s.noise.of("✓ → ") + s.badBold.of("–")
	case now:
		return yes
	}
	return no
}

func (s *screen) served(v string) string {
	now, was := s.scene.obs.Version(v), s.scene.was.Version(v)
	if now == nil {
		if was != nil {
			return s.noise.of("✓ → ") + s.badBold.of("–")
		}
		return s.noise.of("–")
	}
	no := s.bad.of("✗ no")
	return s.flag(now.Served, was != nil && was.Served, was != nil, s.bold.of("✓"), no)
}

func (s *screen) storage(v string) string {
	now, was := s.scene.obs.Version(v), s.scene.was.Version(v)
	return s.flag(now != nil && now.Storage, was != nil && was.Storage, was != nil && now != nil, s.bold.of("✓"), s.noise.of("–"))
}

func (s *screen) deprecated(v string) string {
	now, was := s.scene.obs.Version(v), s.scene.was.Version(v)
	is := now != nil && now.Deprecated
	return s.flag(is, was != nil && was.Deprecated, was != nil && is, s.warn.of("▲ yes"), s.noise.of("–"))
}

// bywhom says who has changed what is not as it was before the step: the lab did it only if it applied the step.
func (s *screen) bywhom() string {
	if s.step.ByHand || s.step.Phase < lab.Running {
		return "by hand"
	}
	return "by this step"
}

// listed says whether storedVersions names a version; one that was just added is a chip.
func (s *screen) listed(v string, aloud bool) string {
	is := s.scene.obs.Lists(v)
	was := is
	if s.scene.was != nil {
		was = s.scene.was.Lists(v)
	}
	switch {
	case is && !was && aloud:
		return s.okBold.of("+") + s.chip(v, v) + s.dim.of(" "+s.bywhom())
	case is && !was:
		return s.okBold.of("+") + s.chip(v, v)
	case is && aloud:
		return "  " + s.hue(v).of(clean(v))
	case is:
		return s.hue(v).of(clean(v))
	case was && aloud:
		return s.badBold.of("- ") + s.noise.of(clean(v)) + s.dim.of(" "+s.bywhom())
	case was:
		return s.badBold.of("-") + s.noise.of(clean(v))
	case aloud:
		return s.noise.of("–")
	}
	return ""
}

// stored is a bar of the objects that are stored at a version.
func (s *screen) stored(v string, room int) string {
	obs := s.scene.obs
	if obs == nil {
		return s.noise.of("–")
	}
	if !obs.Stored.Access {
		return s.noise.of("unknown: no access to the bytes")
	}
	n := obs.Stored.ByVersion[v]
	return s.bar(v, n, obs.Stored.Total, room) + " " + s.bold.of(number(n))
}

func (s *screen) bar(v string, n, total, room int) string {
	if n == 0 || total == 0 {
		return s.noise.of("·")
	}
	return s.hue(v).of(strings.Repeat(s.texture(v), max(1, n*room/total)))
}

// tableLine says in one line what the table says in several.
func (s *screen) tableLine(w int) string {
	left, right := "  "+s.noise.of("storedVersions "), s.noise.of("etcd")
	names, empty := tableVersions(s.scene), true
	for _, v := range names {
		if l := s.listed(v, false); l != "" {
			left += " " + l
			empty = false
		}
	}
	if empty {
		left += " " + s.noise.of("–")
	}
	obs := s.scene.obs
	if obs == nil || !obs.Stored.Access {
		return ends(left, right+" "+s.noise.of("no access to the bytes")+"  ", w)
	}
	for _, v := range names {
		n := obs.Stored.ByVersion[v]
		bar := ""
		if n > 0 {
			bar = " " + s.bar(v, n, obs.Stored.Total, 4)
		}
		right += "  " + s.hue(v).of(clean(v)+bar) + " " + s.bold.of(number(n))
	}
	return ends(left, right+"  ", w)
}
