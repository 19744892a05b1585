package verdict

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

// ask asks whether everything but the storage version may go.
func (s *scene) ask(drop ...string) *Verdict {
	s.Helper()
	v, err := Of(s.Context(), Query{Client: s.client, Storage: s.storage, Resource: s.resource, Drop: drop})
	s.must(err)
	return v
}

// results are the findings that are not passed, and how they went.
func results(v *Verdict) map[string]Result {
	out := map[string]Result{}
	for _, f := range v.Findings {
		if f.Result != Pass {
			out[f.ID] = f.Result
		}
	}
	return out
}

func finding(v *Verdict, id string) Finding {
	for _, f := range v.Findings {
		if f.ID == id {
			return f
		}
	}
	return Finding{}
}

// expect compares the answer and all findings that are not passed.
func (s *scene) expect(state string, v *Verdict, want Answer, notPassed map[string]Result) {
	s.Helper()
	got := results(v)
	if v.Verdict != want || fmt.Sprint(got) != fmt.Sprint(notPassed) {
		text, err := json.MarshalIndent(v, "", "  ")
		s.must(err)
		s.Errorf("%s: %s with %v, wanted %s with %v\n%s", state, v.Verdict, got, want, notPassed, text)
	}
	ids := []string{"storage-version", "stored-objects", "stored-versions", "managed-fields", "served", "conversion", "readable", "round-trip", "restorable", "owner-references"}
	var have []string
	for _, f := range v.Findings {
		have = append(have, f.ID)
		if f.Summary == "" || (f.Result == Fail && (f.Remedy == "" || len(f.Evidence) == 0) && f.ID != StorageVersion) {
			s.Errorf("%s: it says too little: %+v", state, f)
		}
	}
	if !slices.Equal(have, ids) {
		s.Errorf("%s: findings %v", state, have)
	}
}

// mentions fails where a finding's evidence lacks a text.
func (s *scene) mentions(v *Verdict, id string, texts ...string) {
	s.Helper()
	f := finding(v, id)
	for _, t := range texts {
		if !strings.Contains(strings.Join(f.Evidence, "\n")+"\n"+f.Summary+"\n"+f.Remedy, t) {
			s.Errorf("%s does not mention %q: %+v", id, t, f)
		}
	}
}

func TestTheVerdictThroughALifeCycle(t *testing.T) {
	s := newScene(t)
	s.createMany(4)
	s.accepted(s.apply("v1alpha1", "applied", "team", `{"size":1}`), nil)
	none := s.schemasDiffer(Warn)

	s.expect("before", s.ask("v1beta1"), Complete, map[string]Result{Served: Warn, Conversion: Warn})
	v := s.ask("v1alpha1")
	s.expect("before, dropping the storage version", v, Incomplete,
		map[string]Result{StorageVersion: Fail, StoredObjects: Fail, StoredVersions: Fail, ManagedFields: Fail, Served: Warn})

	s.switchStorage()
	v = s.ask()
	s.expect("storage switched", v, Incomplete,
		map[string]Result{StoredObjects: Fail, StoredVersions: Fail, ManagedFields: Fail, Served: Warn, Conversion: none})
	s.mentions(v, StoredObjects, "v1alpha1: 5 objects stored", "crdlab/w-000", "crdlab/applied")
	s.mentions(v, ManagedFields, "rewrite the stored objects first", "manager team in 1 entry", "manager creator in 4 entries", "crdlab/applied")
	s.mentions(v, StoredVersions, "rewrite the stored objects first")
	if !slices.Equal(v.Drop, []string{"v1alpha1"}) || v.Revision == 0 || v.CRDUID == "" || v.CRD != s.resource.String() || v.At == "" {
		t.Errorf("%+v", v)
	}

	s.rewriteAll()
	v = s.ask()
	s.expect("rewritten", v, Incomplete, map[string]Result{StoredVersions: Fail, ManagedFields: Fail, Served: Warn, Conversion: none})
	s.mentions(v, StoredVersions, "kubectl patch crd")

	s.relabelAll()
	s.expect("relabelled", s.ask(), Incomplete, map[string]Result{StoredVersions: Fail, Served: Warn, Conversion: none})
	s.trim()
	s.expect("trimmed", s.ask(), Complete, map[string]Result{Served: Warn, Conversion: none})
	s.unserve()
	s.expect("not served", s.ask(), Complete, map[string]Result{})
	s.remove()
	v = s.ask()
	s.expect("removed", v, Complete, map[string]Result{})
	if len(v.Drop) != 0 {
		t.Errorf("nothing names another version any more, but %v", v.Drop)
	}
}

// schemasDiffer is a warning as long as v1alpha1 is served: it lacks tier, and a client that writes there removes it.
func (s *scene) schemasDiffer(r Result) Result {
	s.mentions(s.ask(), Conversion, "spec.tier is not at v1alpha1")
	return r
}

func TestTheRecordIsNotBelieved(t *testing.T) {
	s := newScene(t)
	s.createMany(30)
	s.switchStorage()
	s.trim()
	v := s.ask()
	s.expect("trimmed too early", v, Incomplete,
		map[string]Result{StoredObjects: Fail, StoredVersions: Fail, ManagedFields: Fail, Served: Warn, Conversion: Warn})
	s.mentions(v, StoredVersions, "lacks v1alpha1", "30 objects stored", "remove no version")
	s.mentions(v, StoredObjects, "and 10 more")

	s.remove()
	v = s.ask()
	if v.Verdict != Incomplete || !slices.Equal(v.Drop, []string{"v1alpha1"}) {
		t.Errorf("removed too early: %s, drop %v", v.Verdict, v.Drop)
	}
	for _, id := range []string{StoredObjects, StoredVersions, ManagedFields, Conversion, Readable, RoundTrip} {
		if f := finding(v, id); f.Result != Fail {
			t.Errorf("removed too early: %+v", f)
		}
	}
	s.mentions(v, Readable, "served: false")
}

func TestManagersThatAreLeftMakeItIncomplete(t *testing.T) {
	s := newScene(t)
	s.createMany(3)
	s.switchStorage()
	s.rewriteAll()
	s.trim()
	s.unserve()
	s.remove()
	v := s.ask()
	s.expect("managers left", v, Incomplete, map[string]Result{ManagedFields: Fail})
	s.mentions(v, ManagedFields, "entries at v1alpha1: crdlab/w-000")
}

func TestWithoutBytesItIsNeverComplete(t *testing.T) {
	s := newScene(t)
	s.createMany(3)
	s.switchStorage()
	blind := Query{Client: s.client, Resource: s.resource}
	v, err := Of(t.Context(), blind)
	s.must(err)
	s.expect("storage switched", v, Incomplete,
		map[string]Result{StoredObjects: Unclear, StoredVersions: Fail, ManagedFields: Fail, Served: Warn, Conversion: Warn})
	s.mentions(v, ManagedFields, "manager creator in 3 entries")

	s.rewriteAll()
	s.relabelAll()
	s.trim()
	s.unserve()
	s.remove()
	v, err = Of(t.Context(), blind)
	s.must(err)
	s.expect("finished", v, Unknown, map[string]Result{StoredObjects: Unclear})
	if v.Revision != 0 {
		t.Errorf("no bytes were read, and yet revision %d", v.Revision)
	}
}

func TestFieldsThatARewriteWouldLoseAreFound(t *testing.T) {
	s := newScene(t)
	s.patchCRD(`[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/old","value":{"type":"string"}}]`)
	s.until("v1alpha1 knows old", func() bool {
		s.create("v1alpha1", "lossy", `{"size":1,"old":"x"}`)
		if strings.Contains(string(s.get("v1alpha1", "lossy").Body), `"old":"x"`) {
			return true
		}
		s.accepted(s.client.Delete(t.Context(), s.path("v1alpha1", "lossy")))
		return false
	})
	s.switchStorage()
	v := s.ask()
	s.expect("lossy", v, Incomplete, map[string]Result{StoredObjects: Fail, StoredVersions: Fail, ManagedFields: Fail,
		Served: Warn, Conversion: Fail, RoundTrip: Fail})
	s.mentions(v, RoundTrip, "crdlab/lossy", "spec.old")
	s.mentions(v, Conversion, "spec.old is not at v1beta1")
}

func TestObjectsThatABackupCouldNotRestoreAreFound(t *testing.T) {
	s := newScene(t)
	s.createMany(2)
	s.patchCRD(`[{"op":"add","path":"/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties/size/maximum","value":0}]`)
	s.switchStorageLike(`{"spec":{"size":0}}`)
	v := s.ask()
	s.expect("over the new maximum", v, Incomplete, map[string]Result{StoredObjects: Fail, StoredVersions: Fail, ManagedFields: Fail,
		Served: Warn, Conversion: Warn, Restorable: Fail})
	s.mentions(v, Restorable, "crdlab/w-001: 422 Invalid", "spec.size")
}

func TestOwnersAtAVersionThatGoesAreNamed(t *testing.T) {
	s := newScene(t)
	s.create("v1beta1", "owner", `{"size":1}`)
	var owner struct{ Metadata struct{ UID string } }
	s.must(json.Unmarshal(s.get("v1beta1", "owner").Body, &owner))
	body := fmt.Sprintf(`{"apiVersion":"%[1]s/v1beta1","kind":"Widget","metadata":{"name":"owned","ownerReferences":[
		{"apiVersion":"%[1]s/v1alpha1","kind":"Widget","name":"owner","uid":"%[2]s"}]}}`, s.resource.Group, owner.Metadata.UID)
	s.accepted(s.client.Create(t.Context(), s.path("v1beta1", ""), "", []byte(body)))
	f := finding(s.ask("v1alpha1"), OwnerReferences)
	if f.Result != Warn || !slices.Equal(f.Evidence, []string{"owned at v1alpha1: crdlab/owned"}) {
		t.Errorf("%+v", f)
	}
}

func TestAnEmptyKindIsJudgedByItsDefinition(t *testing.T) {
	s := newScene(t)
	s.switchStorage()
	s.expect("switched", s.ask(), Incomplete, map[string]Result{StoredVersions: Fail, Served: Warn, Conversion: Warn})
	s.trim()
	s.unserve()
	s.remove()
	s.expect("finished", s.ask(), Complete, map[string]Result{})
}

func TestThereIsNoVerdictOnWhatDoesNotExist(t *testing.T) {
	s := newScene(t)
	_, err := Of(t.Context(), Query{Client: s.client, Storage: s.storage, Resource: storage.Resource{Group: s.resource.Group, Plural: "nothing"}})
	if err == nil || !strings.Contains(err.Error(), "nothing."+s.resource.Group) {
		t.Errorf("error: %v", err)
	}
}

func TestALookWritesNothing(t *testing.T) {
	s := newScene(t)
	s.createMany(5)
	s.switchStorage()
	before, err := s.storage.Revision(t.Context())
	s.must(err)
	sent := s.log.Seq()
	s.ask()
	after, err := s.storage.Revision(t.Context())
	s.must(err)
	if before != after || s.log.Seq() != sent {
		t.Errorf("revision %d, then %d; %d requests recorded", before, after, s.log.Seq()-sent)
	}
}

// However many objects there are, what is kept of them is little.
func TestASurveyStaysSmall(t *testing.T) {
	s := newScene(t)
	s.createMany(200)
	got, err := surveyBytes(t.Context(), s.storage, s.resource, "Widget")
	s.must(err)
	names, samples := got.stored["v1alpha1"], len(got.samples)
	if names.count != 200 || len(names.first) != mostNames || samples != 8 || got.managers["v1alpha1"]["creator"] != 200 {
		t.Errorf("%d objects, %d names, %d samples, managers %v", names.count, len(names.first), samples, got.managers)
	}
}

// The remedies are commands: run one after the other as they are given, they bring the migration to its end.
func TestTheRemediesWork(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("there is no kubectl on this machine")
	}
	s := newScene(t)
	s.createMany(3)
	s.follow(StorageVersion, "v1alpha1")
	s.must(s.inEffect())
	for _, id := range []string{StoredObjects, ManagedFields, ManagedFields, ManagedFields, StoredVersions, Served} {
		s.follow(id)
	}
	s.expect("every remedy followed", s.ask(), Complete, map[string]Result{})
}

// follow runs the remedy of a finding.
func (s *scene) follow(id string, drop ...string) {
	s.Helper()
	f := finding(s.ask(drop...), id)
	if f.Result == Pass {
		s.Fatalf("%s has no need of a remedy", id)
	}
	kubeconfig, _ := server.Kubeconfig()
	command := exec.CommandContext(s.Context(), "sh", "-c", f.Remedy)
	command.Env = append(command.Environ(), "KUBECONFIG="+kubeconfig)
	if out, err := command.CombinedOutput(); err != nil {
		s.Fatalf("%s\n%v\n%s", f.Remedy, err, out)
	}
}

func TestAChangeInTheMidstIsSaid(t *testing.T) {
	s := newScene(t)
	s.createMany(1)
	changing := &changingReader{Reader: s.storage, change: func() {
		s.patchCRD(`[{"op":"replace","path":"/spec/versions/1/served","value":false}]`)
	}}
	v, err := Of(t.Context(), Query{Client: s.client, Storage: changing, Resource: s.resource, Drop: []string{"v1beta1"}})
	s.must(err)
	if f := finding(v, StorageVersion); v.Verdict != Unknown || f.Result != Unclear || !strings.Contains(f.Summary, "changed while") {
		t.Errorf("%s: %+v", v.Verdict, f)
	}
}

func TestStoppedServingIsSeenAtOnce(t *testing.T) {
	s := newScene(t)
	s.unserve()
	resp, err := s.client.Get(t.Context(), evidence.CollectionPath(s.resource, "v1alpha1", ""), nil)
	s.must(err)
	if resp.Status != http.StatusNotFound {
		t.Fatalf("%d", resp.Status)
	}
	v := s.ask("v1beta1")
	if f := finding(v, Served); f.Result != Fail || v.Verdict != Incomplete {
		t.Errorf("no version that stays is served: %s, %+v", v.Verdict, f)
	}
}
