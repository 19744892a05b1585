package views

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/lesson"
)

// head says where one is: the product, the track, how far, on which cluster, and whether it can be followed.
func (s *screen) head() string {
	st := s.state
	far := "   "
	for i, step := range st.Steps {
		switch {
		case i < st.Current, i == st.Current && step.Phase == lab.Applied && step.Result != lesson.Failed:
			far += s.fg.of("━")
		case i == st.Current:
			far += s.bold.of("╸")
		default:
			far += s.line.of("─")
		}
	}
	far += "  " + s.dim.of(fmt.Sprintf("%d of %d", st.Current+1, len(st.Steps)))
	right := s.ok.of("● live")
	if st.Trouble != nil {
		right = s.warn.of("▲ out of sight")
	} else if st.Waiting != nil {
		right = s.warn.of("○ waiting")
	}
	right += "  "
	if s.lay.w >= 110 && s.branch == nil || s.lay.w >= 150 { // the names of two tracks take the room of the CRD's
		name := clean(st.Resource.String())
		if st.Live != nil && st.Live.CRD != nil && st.Live.CRD.Terminating {
			name += s.warn.of(" ▲ terminating") + string(s.noise)
		}
		right = s.noise.of(name+"   "+clean(st.Cluster.Type+" "+st.Cluster.Version)+"   ") + right
	}
	left := " " + s.next("crdlab") + "  "
	return ends(left+s.track(s.lay.w-width(left+far+right)-2)+far, right, s.lay.w)
}

// track names the track, and what branched off it; at most so wide.
func (s *screen) track(w int) string {
	if b := s.branch; b != nil {
		from := s.dim.of(clean(b.place.track) + " ▸ what if: ")
		return from + s.bold.of(ansi.Truncate(clean(b.title), max(0, w-width(from)), "…"))
	}
	name := s.bold.of(clean(s.state.Track.ID))
	if live := s.state.Live; live != nil && live.CRD != nil {
		name += s.noise.of("  strategy ") + s.dim.of(clean(live.CRD.Strategy))
	}
	return name
}

// noticeLine is the rule under the head; it carries what must not be missed.
func (s *screen) noticeLine() string {
	said := ""
	switch {
	case s.notice.text != "" && s.notice.bad:
		said = s.badBold.of("✗ ") + s.bold.of(clean(s.notice.text))
	case s.notice.text != "":
		said = s.bold.of(clean(s.notice.text))
	case s.lookingBack():
		said = s.primary.of(fmt.Sprintf(" looking back: step %d as it was ", s.step.Index+1)) + s.dim.of("  esc returns to step "+strconv.Itoa(s.state.Current+1))
	case s.state.Trouble != nil && s.troubleAtLength() && s.lay.zoomOn == noZoom:
		said = s.warnBold.of("▲ the cluster cannot be followed at the moment")
	case s.state.Trouble != nil:
		said = s.warnBold.of("▲ the cluster cannot be followed: ") + s.fg.of(clean(s.state.Trouble.Error()))
	case s.state.Waiting != nil:
		said = s.waiting(s.lay.notice.w - 8)
	case s.player != nil:
		said = s.player.said(s.pen)
	case s.state.Paused:
		said = s.warnBold.of("○ paused ") + s.dim.of("p goes on")
	case s.branch != nil:
		at := s.branch.place
		said = s.bold.of("w") + s.dim.of(fmt.Sprintf(" leads back to step %d of %s, %s", at.number, clean(at.track), clean(at.title)))
	}
	return s.rule(said, s.lay.notice.w)
}

// troubleAtLength says that the rule has no room for what is amiss, so that it stands in the prose.
func (s *screen) troubleAtLength() bool {
	return s.lookingBack() || width(clean(s.state.Trouble.Error()))+42 > s.lay.w
}

// waiting says for which answer the lab has been waiting, and for how long.
func (s *screen) waiting(w int) string {
	x := s.state.Waiting
	since := s.warnBold.of("○ waiting " + number(max(1, int(s.now.Sub(x.Since).Seconds()))) + " s for ")
	version, rest := target(x.Path, s.state.Resource)
	rest = strings.TrimPrefix(rest, "…/")
	if version != "" {
		rest = version + " " + rest
	}
	return since + s.fg.of(clean(x.Method)+" ") + s.say(s.fg, middle(rest, max(8, w-width(since)-width(x.Method)-1)))
}

// rail lists the steps; where it is cut it says how many more there are.
func (s *screen) rail() []string {
	r := s.lay.rail
	if r.empty() {
		return nil
	}
	out := make([]string, len(s.state.Steps))
	for i := range s.state.Steps {
		out[i] = s.railLine(i, r.w)
	}
	if len(out) <= r.h {
		return out
	}
	from := min(max(0, s.step.Index-r.h/2), len(out)-r.h)
	out = out[from : from+r.h]
	if from > 0 {
		out[0] = s.noise.of(fmt.Sprintf("  ↑ %d more", from+1))
	}
	if below := len(s.state.Steps) - from - r.h; below > 0 {
		out[r.h-1] = s.noise.of(fmt.Sprintf("  ↓ %d more", below+1))
	}
	return out
}

func (s *screen) railLine(i, w int) string {
	step := s.state.Steps[i]
	num, title := fmt.Sprintf("%2d", i+1), brief(clean(step.Title), w-6)
	sign := s.stepSign(step)
	switch {
	case i == s.step.Index:
		return s.raise.under(fit(s.bold.of("▸"+num)+" "+sign+" "+s.bold.of(title), w))
	case i == s.state.Current:
		return fit(" "+s.bold.of(num)+" "+sign+" "+s.bold.of(title), w)
	case step.Phase == lab.Applied:
		return fit(" "+s.noise.of(num)+" "+sign+" "+s.dim.of(title), w)
	}
	return fit(" "+s.noise.of(num+"   "+title), w)
}

// brief is a title as far as its words fit; the whole stands over the prose.
func brief(title string, w int) string {
	for width(title) > w {
		at := strings.LastIndexByte(title, ' ')
		if at < 0 {
			break
		}
		title = title[:at]
	}
	return title
}

func (s *screen) stepSign(step *lab.Step) string {
	switch {
	case slices.Contains(s.state.Undone, step.ID):
		return s.warnBold.of("▲")
	case step.Phase == lab.Running:
		return s.bold.of("◐")
	case step.Phase == lab.Applied && step.Result == lesson.Failed, step.Err != nil:
		return s.badBold.of("✗")
	case step.Phase == lab.Applied && step.Result == lesson.Skipped:
		return s.warn.of("○")
	case step.Phase == lab.Applied:
		return s.ok.of("✓")
	}
	return s.bold.of("○")
}
