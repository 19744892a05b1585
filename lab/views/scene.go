package views

import (
	"strconv"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/evidence"
)

// scene is what the panes show: one object, or a new one below the one before it, each as its views and its bytes.
type scene struct {
	state    *lab.State
	step     *lab.Step
	obs, was *evidence.Observation // was is nil where nothing is to be marked
	versions []string              // a pane each; one more for etcd
	subjects []subject
}

// subject is one object in all panes.
type subject struct {
	name    string
	against string           // the object that it is marked against, where it is new
	object  *evidence.Object // nil where there is none
	was     *evidence.Object
	place   int // in the list of those that are held, from 1
	rows    []row
	faults  []fault // for each pane, why it shows no object
}

// fault is what stands in a pane that has no object.
type fault struct {
	status int // of the server's answer; 0 where nothing was asked
	text   string
}

func (f fault) none() bool { return f.text == "" && f.status == 0 }

// sceneKey is all that a scene depends on. Observations are never changed, so they are compared by identity.
type sceneKey struct {
	obs, was *evidence.Observation
	step     *lab.Step
	selected string
	managers bool
}

// newScene chooses the objects that a step is about and makes their rows.
func newScene(state *lab.State, step *lab.Step, obs, was *evidence.Observation, selected string, managers bool) *scene {
	s := &scene{state: state, step: step, obs: obs, was: was, versions: state.Track.Versions}
	name := s.chosen(selected)
	now := obs.Object(name)
	sub := subject{name: name, object: now, was: was.Object(name)}
	mode := withItself
	if earlier := s.earlier(name); now != nil && was != nil && sub.was == nil {
		mode = withNothing
		if earlier != nil {
			mode, sub.against, sub.was = withAnother, earlier.Name, earlier
			before := subject{name: earlier.Name, object: obs.Object(earlier.Name), was: was.Object(earlier.Name)}
			s.fill(&before, withItself, managers)
			s.subjects = append(s.subjects, before)
		}
	}
	s.fill(&sub, mode, managers)
	s.subjects = append(s.subjects, sub)
	return s
}

// chosen is the object to be shown: the learner's choice, else the one that the step is about, else any.
func (s *scene) chosen(selected string) string {
	for _, name := range []string{selected, s.about(s.step.Index), s.state.Track.Subject} {
		if s.obs.Object(name) != nil {
			return name
		}
	}
	if s.obs == nil || len(s.obs.Objects) == 0 {
		return s.state.Track.Subject
	}
	return s.obs.Objects[0].Name
}

// about is the object that a step is about.
func (s *scene) about(step int) string {
	if step >= 0 && step < len(s.state.Steps) {
		if l := s.state.Steps[step].Lesson; l != nil && l.Show != "" {
			return l.Show
		}
	}
	return s.state.Track.Subject
}

// earlier is the object that was shown before a new one, if it is still there.
func (s *scene) earlier(name string) *evidence.Object {
	for i := s.step.Index - 1; i >= -1; i-- {
		if about := s.about(i); about != name && s.was.Object(about) != nil && s.obs.Object(about) != nil {
			return s.obs.Object(about)
		}
	}
	return nil
}

// fill makes a subject's rows, and says for each pane without an object why.
func (s *scene) fill(sub *subject, mode comparison, managers bool) {
	if s.obs != nil {
		for i, o := range s.obs.Objects {
			if o.Name == sub.name {
				sub.place = i + 1
			}
		}
	}
	sources := make([]source, len(s.versions)+1)
	sub.faults = make([]fault, len(sources))
	for i, v := range s.versions {
		sources[i], sub.faults[i] = s.view(sub, v, managers)
	}
	last := len(sources) - 1
	sources[last], sub.faults[last] = s.bytes(sub, managers)
	if sub.object == nil {
		return
	}
	if s.was == nil {
		for i := range sources {
			sources[i].was, sources[i].wasMark = sources[i].now, sources[i].remark
		}
	}
	sub.rows = levelRows(sources, mode, s.disputed(), func(pane int, path []string) string {
		version := ""
		if pane < len(s.versions) {
			version = s.versions[pane]
		}
		return missing(s.obs, sub.object, version, path)
	})
}

// disputed are the fields of spec that some versions declare and others do not: they have a row even where no pane has a
// value, for that nobody has one is news.
func (s *scene) disputed() []string {
	var out []string
	declared := 0
	count := map[string]int{}
	for _, name := range s.versions {
		v := s.obs.Version(name)
		if v == nil || len(v.Fields) == 0 {
			continue
		}
		declared++
		for _, f := range v.Fields {
			count[f]++
		}
	}
	for f, n := range count {
		if n < declared {
			out = append(out, f)
		}
	}
	return out
}

func (s *scene) view(sub *subject, version string, managers bool) (source, fault) {
	var src source
	if w := sub.was.View(version); w != nil && w.Status == 200 {
		src.was = decode(w.Object, managers)
	}
	v := sub.object.View(version)
	switch {
	case s.obs == nil:
		return src, fault{text: "nothing was observed yet"}
	case s.obs.CRD == nil:
		return src, fault{text: "there is no CRD " + s.state.Resource.String()}
	case s.obs.Version(version) == nil:
		return src, fault{text: "not in spec.versions"}
	case sub.object == nil:
		return src, fault{text: "no object yet"}
	case v == nil:
		return src, fault{text: "not read yet"}
	case v.Status != 200:
		return src, fault{status: v.Status, text: clean(v.Message)}
	}
	src.now = decode(v.Object, managers)
	return src, fault{}
}

func (s *scene) bytes(sub *subject, managers bool) (source, fault) {
	src := source{remark: map[string]string{}, wasMark: map[string]string{}}
	const at = "metadata.resourceVersion"
	if sub.was != nil && sub.was.Stored != nil {
		src.was = decode(sub.was.Stored.Value, managers)
		src.wasMark[at] = "· mod revision " + strconv.FormatInt(sub.was.Stored.ModRevision, 10)
	}
	switch {
	case s.obs == nil:
		return src, fault{text: "nothing was observed yet"}
	case !s.obs.Stored.Access:
		return src, fault{text: s.obs.Stored.Missing()}
	case sub.object == nil || sub.object.Stored == nil:
		return src, fault{text: "nothing is stored"}
	}
	src.now = decode(sub.object.Stored.Value, managers)
	src.remark[at] = "· mod revision " + strconv.FormatInt(sub.object.Stored.ModRevision, 10)
	return src, fault{}
}

// least is how low the panes may become for the sake of the text over them: an object keeps all but the metadata that
// says nothing in this step, and with bare also kind and resourceVersion may go.
func (s *scene) least(bare bool) int {
	level := 2
	if bare {
		level = 0
	}
	lines := 2 + len(s.subjects) - 1
	for _, sub := range s.subjects {
		kept := sub.faultLines()
		for _, r := range sub.rows {
			if r.shrink <= level {
				kept++
			}
		}
		lines += kept
	}
	return lines
}

// total is how many objects there are, as far as it is known.
func (s *scene) total() int {
	switch {
	case s.obs == nil:
		return 0
	case s.obs.Stored.Access:
		return s.obs.Stored.Total
	}
	return len(s.obs.Objects) + s.obs.ObjectsOmitted
}
