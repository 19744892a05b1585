package lesson

import (
	"net/http"
	"slices"

	"github.com/crdlab/crdlab/lab/evidence"
)

// ── what diagnoses and their prose ask of the evidence ──

// Gone names the objects that were there before the step, and are not now. An observation holds only some of many objects:
// one that is not held now is left out, unless all are held, or the lesson speaks of it.
func (e Evidence) Gone() []string {
	var out []string
	if e.Before == nil || e.After == nil {
		return nil
	}
	for _, was := range e.Before.Objects {
		if e.After.Object(was.Name) == nil && (e.After.ObjectsOmitted == 0 || slices.Contains(e.Named, was.Name)) {
			out = append(out, was.Name)
		}
	}
	return out
}

// Written names the objects of before the step that somebody has written since, or has deleted and made anew.
func (e Evidence) Written() []string {
	return e.changed(func(was, is *evidence.Object) bool { return was.ResourceVersion != is.ResourceVersion })
}

// Anew names the objects of before the step that somebody has deleted and made anew: others, under the same name.
func (e Evidence) Anew() []string {
	return e.changed(func(was, is *evidence.Object) bool { return was.UID != is.UID && is.UID != "" })
}

// Unmanaged names the objects of before the step whose managedFields somebody has emptied.
func (e Evidence) Unmanaged() []string {
	return e.changed(func(was, is *evidence.Object) bool { return len(was.Managers) > 0 && len(is.Managers) == 0 })
}

// NewManagers are the managers that managedFields did not name before the step.
func (e Evidence) NewManagers() []string {
	if e.Before == nil || e.After == nil {
		return nil
	}
	managers := func(o *evidence.Object) []string {
		var out []string
		for _, m := range o.Managers {
			out = append(out, m.Manager)
		}
		return out
	}
	var out []string
	for _, is := range e.After.Objects {
		was := e.Before.Object(is.Name)
		if was == nil {
			continue
		}
		for _, m := range managers(is) {
			if !slices.Contains(managers(was), m) && !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	return out
}

func (e Evidence) changed(how func(was, is *evidence.Object) bool) []string {
	var out []string
	if e.Before == nil {
		return nil
	}
	for _, was := range e.Before.Objects {
		if is := e.After.Object(was.Name); is != nil && how(was, is) {
			out = append(out, was.Name)
		}
	}
	return out
}

// Elsewhere are the objects of the kind that are in another namespace than the lab's, as NAMESPACE/NAME.
func (e Evidence) Elsewhere() []string {
	var out []string
	if e.After == nil {
		return nil
	}
	for _, o := range e.After.Objects {
		if o.Namespace != e.Namespace {
			out = append(out, o.Namespace+"/"+o.Name)
		}
	}
	return out
}

// LastByHand is what somebody else than the lab asked last; nil where nobody asked, or a step's action has asked since.
func (e Evidence) LastByHand() *evidence.Exchange {
	return e.last(func(evidence.Exchange) bool { return true })
}

// LastChangeByHand is the last such request that was to change something, if only by a dry run.
func (e Evidence) LastChangeByHand() *evidence.Exchange {
	return e.last(func(x evidence.Exchange) bool { return x.Method != http.MethodGet })
}

func (e Evidence) last(accept func(evidence.Exchange) bool) *evidence.Exchange {
	for _, x := range slices.Backward(e.Exchanges) {
		switch {
		case x.Actor == evidence.ByStep:
			return nil
		case x.Actor == evidence.ByHand && accept(x):
			return &x
		}
	}
	return nil
}
