package webhook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/report"
	"github.com/crdlab/crdlab/lab/steps/webhook"
)

const (
	alphaVersion = "lab.example.com/v1alpha1"
	betaVersion  = "lab.example.com/v1beta1"
)

// run is the whole track as a reader of its JSON sees it.
func run(t *testing.T) *report.Run {
	t.Helper()
	s := labtest.Start(t, webhook.Track())
	if err := lab.Run(t.Context(), s, "", func(*lab.Step) {}); err != nil {
		t.Fatal(err)
	}
	var document bytes.Buffer
	if err := report.WriteJSON(&document, report.NewRun(s.State(), "")); err != nil {
		t.Fatal(err)
	}
	var r report.Run
	if err := json.Unmarshal(document.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Result != "passed" {
		t.Fatalf("the run %s", r.Result)
	}
	return &r
}

func step(t *testing.T, r *report.Run, id string) report.Step {
	t.Helper()
	i := slices.IndexFunc(r.Steps, func(s report.Step) bool { return s.ID == id })
	if i < 0 {
		t.Fatalf("there is no step %s", id)
	}
	return r.Steps[i]
}

// settled is what was seen at the end of a step.
func settled(s report.Step) report.Observation { return s.Observations[len(s.Observations)-1] }

func TestTheRunAsJSON(t *testing.T) {
	t.Parallel()
	r := run(t)
	t.Run("one object, two views", func(t *testing.T) { oneObjectTwoViews(t, r) })
	t.Run("conversions stand in the steps that cause them", func(t *testing.T) { conversions(t, r) })
	t.Run("an undeclared field is in an answer alone", func(t *testing.T) { undeclared(t, r) })
	t.Run("complete at the end, without a webhook", func(t *testing.T) { complete(t, r) })
}

func oneObjectTwoViews(t *testing.T, r *report.Run) {
	objects := settled(step(t, r, "one-object-two-views")).Objects
	if len(objects) == 0 {
		t.Fatal("no object was observed")
	}
	for _, o := range objects {
		old, renamed := o.Views["v1alpha1"], o.Views["v1beta1"]
		for _, v := range []*evidence.View{old, renamed} {
			if rv, _ := v.Field("metadata", "resourceVersion"); rv != o.ResourceVersion || o.ResourceVersion == "" {
				t.Errorf("%s has resourceVersion %q, and a view of it %v", o.Name, o.ResourceVersion, rv)
			}
		}
		label, isLabel := old.Field("spec", "label")
		display, isDisplay := renamed.Field("spec", "displayName")
		if !isLabel || !isDisplay || label != display {
			t.Errorf("%s: label %v, displayName %v", o.Name, label, display)
		}
		if _, there := old.Field("spec", "displayName"); there {
			t.Errorf("%s shows displayName at v1alpha1", o.Name)
		}
		if _, there := renamed.Field("spec", "label"); there {
			t.Errorf("%s shows label at v1beta1", o.Name)
		}
	}
}

func conversions(t *testing.T, r *report.Run) {
	uids := map[string]bool{}
	for _, s := range r.Steps {
		for _, c := range s.Conversions {
			if c.UID == "" || uids[c.UID] {
				t.Errorf("%s: the uid %q is empty, or that of another review", s.ID, c.UID)
			}
			uids[c.UID] = true
			if c.DesiredAPIVersion != alphaVersion && c.DesiredAPIVersion != betaVersion || c.From == c.DesiredAPIVersion {
				t.Errorf("%s: a review from %q to %q", s.ID, c.From, c.DesiredAPIVersion)
			}
			if !strings.Contains(c.Request, c.UID) || !strings.Contains(c.Response, c.UID) {
				t.Errorf("%s: the review %s does not stand in its bodies", s.ID, c.UID)
			}
		}
	}
	for _, want := range []struct{ step, to string }{
		{"serve-both", betaVersion}, {"one-object-two-views", alphaVersion}, {"one-object-two-views", betaVersion},
		{"prune-after-convert", betaVersion}, {"update-one", alphaVersion}, {"stop-serving", betaVersion}, {"rewrite", alphaVersion},
	} {
		if !slices.ContainsFunc(step(t, r, want.step).Conversions, func(c evidence.Conversion) bool { return c.DesiredAPIVersion == want.to }) {
			t.Errorf("%s has no conversion to %s", want.step, want.to)
		}
	}
	for _, none := range []string{"create", "attempt-removal", "clean-up", "verify"} {
		if n := len(step(t, r, none).Conversions); n > 0 {
			t.Errorf("%s has %d conversions", none, n)
		}
	}
}

func undeclared(t *testing.T, r *report.Run) {
	const field = `"undeclared"`
	answered := 0
	for _, s := range r.Steps {
		for _, c := range s.Conversions {
			if strings.Contains(c.Request, field) {
				t.Errorf("%s: the API server sent the field: %s", s.ID, c.Request)
			}
			if strings.Contains(c.Response, field) {
				answered++
				if s.ID != "prune-after-convert" {
					t.Errorf("%s: the webhook answered with the field", s.ID)
				}
			}
		}
		for _, o := range s.Observations {
			for _, x := range o.Objects {
				for version, v := range x.Views {
					if strings.Contains(string(v.Object), field) {
						t.Errorf("%s, after %s: %s shows the field at %s", s.ID, o.After, x.Name, version)
					}
				}
				if x.Stored == nil || strings.Contains(string(x.Stored.Value), field) {
					t.Errorf("%s, after %s: the bytes of %s have the field, or were not read", s.ID, o.After, x.Name)
				}
			}
		}
	}
	if answered == 0 {
		t.Error("the webhook never answered with the field")
	}
}

func complete(t *testing.T, r *report.Run) {
	last := r.Steps[len(r.Steps)-1]
	if last.Verdict == nil || last.Verdict.Verdict.Verdict != "complete" {
		t.Errorf("the verdict is %+v", last.Verdict)
	}
	end := settled(last)
	if end.CRD.Strategy != "None" || !slices.Equal(end.CRD.StoredVersions, []string{"v1beta1"}) || len(end.CRD.Versions) != 1 {
		t.Errorf("the CRD at the end: %s, %v, %v", end.CRD.Strategy, end.CRD.StoredVersions, end.CRD.Versions)
	}
	if end.Stored.Total != 6 || end.Stored.ByVersion["v1beta1"] != 6 {
		t.Errorf("stored at the end: %+v", end.Stored)
	}
}

// reviews is how many reviews each counted action causes, whatever the run.
var reviews = map[string]int{
	"one-object-two-views/get-stored":    0,
	"one-object-two-views/get-other":     1,
	"one-object-two-views/list-other":    0,
	"one-object-two-views/list-cached":   0,
	"one-object-two-views/create-stored": 1, // for the cache of the other version
	"one-object-two-views/create-other":  3, // to store it, to answer, and for the cache
	"one-object-two-views/patch-other":   4,
	"one-object-two-views/delete":        1,
	"outage/down":                        0,
}

// told names reviews by their objects and versions.
func told(all []evidence.Conversion) string {
	var out []string
	for _, c := range all {
		var request struct {
			Request struct {
				Objects []struct{ Metadata struct{ Name string } }
			}
		}
		if json.Unmarshal([]byte(c.Request), &request) == nil && len(request.Request.Objects) > 0 {
			out = append(out, request.Request.Objects[0].Metadata.Name+" to "+strings.TrimPrefix(c.DesiredAPIVersion, "lab.example.com/"))
		}
	}
	return strings.Join(out, ", ")
}

// TestReviewsAreTheSameInEveryRun: what an operation costs is no matter of chance, but for the rewrite and the relabelling.
// Of them only bounds are held, which are what was seen: 7 to 9 reviews for each object rewritten, none or one for each
// relabelled. Why they differ from run to run is not known.
func TestReviewsAreTheSameInEveryRun(t *testing.T) {
	for i := range 5 {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			r := run(t)
			seen := 0
			for _, s := range r.Steps {
				for _, a := range s.Actions {
					id := s.ID + "/" + a.ID
					want, constant := reviews[id]
					switch {
					case a.Reviews == nil:
						if constant {
							t.Errorf("%s was not counted", id)
						}
					case constant:
						seen++
						if *a.Reviews != want {
							t.Errorf("%s caused %d reviews, and not %d; the step's are %s", id, *a.Reviews, want, told(s.Conversions))
						}
					case id == "update-one/patch": // one less where the server has no cache of the other version yet
						if *a.Reviews < 4 || *a.Reviews > 5 {
							t.Errorf("%s caused %d reviews; the step's are %s", id, *a.Reviews, told(s.Conversions))
						}
					case id == "rewrite/rewrite":
						objects := step(t, r, "rewrite").Observations[0].Stored.ByVersion["v1alpha1"]
						if *a.Reviews < 7*objects || *a.Reviews > 9*objects {
							t.Errorf("%s of %d objects caused %d reviews", id, objects, *a.Reviews)
						}
					case id == "rewrite/relabel":
						if relabelled := len(a.Exchanges); relabelled == 0 || *a.Reviews > relabelled {
							t.Errorf("%s of %d objects caused %d reviews; the step's are %s", id, relabelled, *a.Reviews, told(s.Conversions))
						}
					default:
						t.Errorf("%s is counted, and nothing is known of it", id)
					}
				}
			}
			if seen != len(reviews) {
				t.Errorf("%d of %d actions were counted", seen, len(reviews))
			}
		})
	}
}
