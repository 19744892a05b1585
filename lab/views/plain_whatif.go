package views

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// errBack says that the learner wants to leave an accident.
var errBack = errors.New("back to the track")

// ask waits for a line as answer does, and sees to those that speak of accidents: w lists what branches off the step, w and a
// number begins one, and w leads back from it, by errBack.
func (p *plain) ask(ctx context.Context, session Session, question string) (line string, ok bool, err error) {
	accidents := p.lab.accidents(session.State())
	for {
		switch {
		case p.branch != nil:
			p.say("w leads %s of %s.", p.branch.place.wayBack(), p.branch.place.track)
		case len(accidents) > 0:
			p.say("What if? w lists accidents that happen to people at this step.")
		}
		line, ok = p.answer(ctx, question)
		which, said := strings.CutPrefix(line, "w")
		switch {
		case !ok || !said || p.branch == nil && len(accidents) == 0:
			return line, ok, nil
		case p.branch != nil:
			return "", false, errBack
		}
		if err := p.whatIf(ctx, session, accidents, strings.TrimSpace(which)); err != nil {
			return "", false, err
		}
	}
}

// whatIf begins one of the accidents, by its number, and lists them where that names none.
func (p *plain) whatIf(ctx context.Context, session Session, accidents []TrackInfo, which string) error {
	n, err := strconv.Atoi(which)
	if err != nil || n < 1 || n > len(accidents) {
		p.accidents(accidents)
		return nil
	}
	if why := accidents[n-1].Unavailable; why != "" {
		p.say("%s: %s.", accidents[n-1].Title, why)
		return nil
	}
	return p.through(ctx, session, accidents[n-1])
}

func (p *plain) accidents(accidents []TrackInfo) {
	p.gap()
	for i, t := range accidents {
		p.item(fmt.Sprintf("  w %d  ", i+1), fmt.Sprintf("%s, about %d %s: %s", t.Title, t.Minutes, plural(t.Minutes, "minute", "minutes"), unmarked(t.Summary)))
		if t.Unavailable != "" {
			p.item("       ", "Not here: "+t.Unavailable)
		}
	}
	p.say("w and its number begins one on this cluster. What the lab made is removed; afterwards this step is made again as it is now.")
	p.gap()
}

// through goes through an accident, and comes back to where the learner was.
func (p *plain) through(ctx context.Context, session Session, t TrackInfo) error {
	b := &branch{from: session, place: placeIn(session.State()), title: t.Title}
	accident, err := p.opened.branchOff(ctx, p.lab, session, t.ID)
	if err != nil {
		p.say("What if: %s did not begin: %v", t.Title, err)
		return b.place.restore(ctx, session)
	}
	p.gap()
	p.say("What if: %s", t.Title)
	p.branch = b
	err = p.track(ctx, accident)
	p.branch = nil
	switch {
	case ctx.Err() != nil:
		return ErrInterrupted
	case err != nil && !errors.Is(err, errBack):
		p.say("%s ended: %v", t.Title, err)
	}
	if err := p.opened.comeBack(ctx, accident, b); err != nil {
		return err
	}
	p.gap()
	p.say("Back at step %d of %s: %s", b.place.number, b.place.track, b.place.title)
	if st := session.State(); !b.place.done {
		p.asked(st.Steps[st.Current])
	}
	return nil
}
