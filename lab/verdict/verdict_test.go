package verdict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/rewrite"
	"github.com/crdlab/crdlab/lab/storage"
)

// ask asks whether versions may be dropped; where none is named, whether all but the newest may.
func (s *fixture) ask(drop ...string) *Verdict {
	s.Helper()
	v, err := Of(s.Context(), Query{Client: s.Client, Storage: s.Storage, Resource: s.Resource, Drop: drop})
	s.Must(err)
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
func (s *fixture) expect(state string, v *Verdict, want Answer, notPassed map[string]Result) {
	s.Helper()
	got := results(v)
	if v.Verdict != want || fmt.Sprint(got) != fmt.Sprint(notPassed) {
		text, err := json.MarshalIndent(v, "", "  ")
		s.Must(err)
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
func (s *fixture) mentions(v *Verdict, id string, texts ...string) {
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
	s.CreateMany(4)
	s.Accepted(s.Apply("v1alpha1", "applied", "team", `{"size":1}`), nil)
	none := s.schemasDiffer(Warn)

	s.expect("before", s.ask("v1beta1"), Complete, map[string]Result{Served: Warn, Conversion: Warn})
	v := s.ask("v1alpha1")
	s.expect("before, dropping the storage version", v, Incomplete,
		map[string]Result{StorageVersion: Fail, StoredObjects: Fail, StoredVersions: Fail, ManagedFields: Fail, Served: Warn, Conversion: none})

	s.switchStorage()
	v = s.ask()
	s.expect("storage switched", v, Incomplete,
		map[string]Result{StoredObjects: Fail, StoredVersions: Fail, ManagedFields: Fail, Served: Warn, Conversion: none})
	s.mentions(v, StoredObjects, "v1alpha1: 5 objects stored", "crdlab/w-000", "crdlab/applied")
	s.mentions(v, ManagedFields, "rewrite the stored objects first", "manager team in 1 entry", "manager creator in 4 entries", "crdlab/applied")
	s.mentions(v, StoredVersions, "rewrite the stored objects first")
	if !slices.Equal(v.Drop, []string{"v1alpha1"}) || v.Revision == 0 || v.CRDUID == "" || v.CRD != s.Resource.String() || v.At == "" {
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
func (s *fixture) schemasDiffer(r Result) Result {
	s.mentions(s.ask(), Conversion, "spec.tier is not at v1alpha1")
	return r
}

func TestTheRecordIsNotBelieved(t *testing.T) {
	s := newScene(t)
	s.CreateMany(30)
	s.switchStorage()
	s.trim()
	v := s.ask()
	s.expect("trimmed too early", v, Incomplete,
		map[string]Result{StoredObjects: Fail, StoredVersions: Fail, ManagedFields: Fail, Served: Warn, Conversion: Warn})
	s.mentions(v, StoredVersions, "lacks v1alpha1", "30 objects are stored", "remove no version")
	s.mentions(v, StoredObjects, "and 10 more")

	s.remove()
	s.Until("the handler is the new one", func() bool { return s.Get("v1beta1", "w-000").Status == http.StatusInternalServerError })
	v = s.ask()
	if v.Verdict != Incomplete || !slices.Equal(v.Drop, []string{"v1alpha1"}) {
		t.Errorf("removed too early: %s, drop %v", v.Verdict, v.Drop)
	}
	for id, want := range map[string]Result{StoredObjects: Fail, StoredVersions: Fail, ManagedFields: Fail, Conversion: Fail,
		Readable: Fail, RoundTrip: Unclear, Restorable: Unclear} {
		if f := finding(v, id); f.Result != want {
			t.Errorf("removed too early: %+v", f)
		}
	}
	s.mentions(v, StoredObjects, "objects are stored at v1alpha1, which spec.versions lacks", "kubectl patch crd")
	if !strings.Contains(v.Summary, "objects are stored at v1alpha1, which spec.versions lacks") {
		t.Errorf("the cause is not in the summary %q", v.Summary)
	}
	s.mentions(v, Readable, "GET crdlab/w-000 at v1beta1 (stored at v1alpha1): 500")
	for _, f := range v.Findings {
		for _, e := range f.Evidence {
			if strings.Contains(e, "corrupt object") || len(e) > 120 {
				t.Errorf("%s says at length what is known: %s", f.ID, e)
			}
		}
	}
}

// A version that was removed too early is given back by the remedy, and the others bring the migration to its end.
func TestWhatWasRemovedTooEarlyIsGivenBack(t *testing.T) {
	s := newScene(t)
	s.CreateMany(3)
	s.switchStorage()
	s.trim()
	s.remove()
	s.Until("the objects cannot be read", func() bool { return s.Get("v1beta1", "w-000").Status == http.StatusInternalServerError })
	s.follow(StoredObjects)
	s.Until("the objects can be read", func() bool { return s.Get("v1beta1", "w-000").Status == http.StatusOK })
	s.expect("given back", s.ask(), Incomplete, map[string]Result{StoredObjects: Fail, StoredVersions: Fail, ManagedFields: Fail})
	s.follow(StoredObjects)
	s.follow(ManagedFields)
	s.expect("every remedy followed", s.ask(), Complete, map[string]Result{})
	if body := string(s.Get("v1beta1", "w-002").Body); !strings.Contains(body, `"color":"red","size":2`) {
		t.Errorf("it has lost its fields: %s", body)
	}
}

// Without a word of what is to be dropped, a newer version is where the migration leads, and never what is to be dropped.
func TestAMigrationLeadsToTheNewestVersion(t *testing.T) {
	s := newScene(t)
	s.CreateMany(2)
	v := s.ask()
	s.expect("v1beta1 was added", v, Incomplete, map[string]Result{StorageVersion: Fail, StoredObjects: Fail, StoredVersions: Fail,
		ManagedFields: Fail, Served: Warn, Conversion: Warn})
	if !slices.Equal(v.Drop, []string{"v1alpha1"}) || v.Target != "v1beta1" || v.Summary != "the migration from v1alpha1 to v1beta1 has not begun" {
		t.Errorf("to drop %v for %s: %s", v.Drop, v.Target, v.Summary)
	}
	s.mentions(v, StorageVersion, "v1alpha1 is still the storage version; v1beta1 is newer: the migration to it has not begun", "kubectl patch crd")
	s.mentions(v, StoredObjects, "2 of 2 objects are still stored at a version to be dropped", "switch the storage version first")
	s.mentions(v, ManagedFields, "switch the storage version first")

	s.switchStorage()
	s.PatchCRD(`[{"op":"replace","path":"/spec/versions/0/storage","value":true},{"op":"replace","path":"/spec/versions/1/storage","value":false}]`)
	v = s.ask()
	s.mentions(v, StorageVersion, "the migration to it was taken back")
	if !slices.Equal(v.Drop, []string{"v1alpha1"}) || v.Summary != "the migration away from v1alpha1 is not complete" {
		t.Errorf("to drop %v: %s", v.Drop, v.Summary)
	}
	if v = s.ask("v1beta1"); v.Target != "v1alpha1" || finding(v, StorageVersion).Result != Pass || finding(v, StoredVersions).Result != Fail {
		t.Errorf("the way back: %s, %+v", v.Target, v.Findings)
	}
}

func TestOneVersionIsNothingToMigrate(t *testing.T) {
	s := newScene(t)
	s.CreateMany(2)
	s.PatchCRD(`[{"op":"replace","path":"/spec/versions/1/served","value":false}]`)
	v := s.ask()
	s.expect("v1beta1 is prepared", v, Complete, map[string]Result{})
	if len(v.Drop) != 0 || !strings.HasPrefix(v.Summary, "there is nothing to migrate") || !strings.Contains(v.Summary, "v1beta1 is newer, and not served yet") {
		t.Errorf("to drop %v: %s", v.Drop, v.Summary)
	}
	s.PatchCRD(`[{"op":"remove","path":"/spec/versions/1"}]`)
	v = s.ask()
	s.expect("v1alpha1 alone", v, Complete, map[string]Result{})
	if len(v.Drop) != 0 || v.Summary != "there is nothing to migrate: no version but v1alpha1 is named anywhere" {
		t.Errorf("to drop %v: %s", v.Drop, v.Summary)
	}
}

// A version that nothing names is gone, or was never there: nobody but the one who asks can tell.
func TestAVersionThatNothingNamesIsSaid(t *testing.T) {
	s := newScene(t)
	s.CreateMany(1)
	v := s.ask("v7", "v7")
	s.expect("a name mistyped", v, Complete, map[string]Result{})
	const nowhere = "v7 is named nowhere: not in spec.versions, storedVersions, bytes or managedFields"
	s.mentions(v, StorageVersion, nowhere)
	if !slices.Equal(v.Drop, []string{"v7"}) || !strings.Contains(v.Summary, nowhere) || !strings.Contains(v.Summary, "v1alpha1 and v1beta1") {
		t.Errorf("to drop %v: %s", v.Drop, v.Summary)
	}
	if v := s.ask("v1alpha1"); strings.Contains(v.Summary, "nowhere") {
		t.Error(v.Summary)
	}
	blind, err := Of(t.Context(), Query{Client: s.Client, Resource: s.Resource, Drop: []string{"v7"}})
	s.Must(err)
	if blind.Verdict != Unknown || !strings.Contains(blind.Summary, "not in spec.versions, storedVersions or managedFields") {
		t.Errorf("%s: %s", blind.Verdict, blind.Summary)
	}
}

// What is said once is counted once.
func TestAVersionNamedTwiceIsDroppedOnce(t *testing.T) {
	s := newScene(t)
	s.CreateMany(2)
	s.mentions(s.ask("v1alpha1", "v1alpha1"), StoredObjects, "2 of 2 objects are")
}

// Who can reach etcd is told how to look: the command counts the stored versions from what etcdctl prints.
func TestTheLookInEtcdCountsStoredVersions(t *testing.T) {
	s := newScene(t)
	s.CreateMany(3)
	s.switchStorage()
	s.Create("v1alpha1", "new", `{"size":1}`)
	v, err := Of(t.Context(), Query{Client: s.Client, Resource: s.Resource})
	s.Must(err)
	f := finding(v, StoredObjects)
	s.mentions(v, StoredObjects, "give crdlab check --etcd-endpoints", "write every object again")
	at := strings.Index(f.Remedy, "\netcdctl ")
	if at < 0 {
		t.Fatal(f.Remedy)
	}
	folder := t.TempDir()
	var values bytes.Buffer
	_, err = s.Storage.Range(t.Context(), s.Resource, func(v *storage.Value) error {
		if want := "/registry/" + s.Resource.Group + "/widgets/"; !strings.HasPrefix(v.Key, want) {
			t.Errorf("%s does not begin with %s", v.Key, want)
		}
		values.Write(append(v.Data, '\n'))
		return nil
	})
	s.Must(err)
	s.Must(os.WriteFile(filepath.Join(folder, "values"), values.Bytes(), 0o600))
	s.Must(os.WriteFile(filepath.Join(folder, "etcdctl"), []byte(`#!/bin/sh
[ "$*" = "get --prefix /registry/`+s.Resource.Group+`/widgets/ --print-value-only" ] && cat "${0%/*}/values"
`), 0o700))
	command := exec.CommandContext(t.Context(), "sh", "-c", f.Remedy[at+1:])
	command.Env = append(command.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
	out, err := command.Output()
	s.Must(err)
	got := strings.Join(strings.Fields(string(out)), " ")
	if want := fmt.Sprintf(`3 {"apiVersion":"%[1]s/v1alpha1" 1 {"apiVersion":"%[1]s/v1beta1"`, s.Resource.Group); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestManagersThatAreLeftMakeItIncomplete(t *testing.T) {
	s := newScene(t)
	s.CreateMany(3)
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
	s.CreateMany(3)
	s.switchStorage()
	blind := Query{Client: s.Client, Resource: s.Resource}
	v, err := Of(t.Context(), blind)
	s.Must(err)
	s.expect("storage switched", v, Incomplete,
		map[string]Result{StoredObjects: Unclear, StoredVersions: Fail, ManagedFields: Fail, Served: Warn, Conversion: Warn})
	s.mentions(v, ManagedFields, "manager creator in 3 entries", "# only when every object was written again")
	s.mentions(v, StoredVersions, "# only when it is known that no object is stored at what is taken out")

	s.rewriteAll()
	s.relabelAll()
	s.trim()
	s.unserve()
	s.remove()
	v, err = Of(t.Context(), blind)
	s.Must(err)
	s.expect("finished", v, Unknown, map[string]Result{StoredObjects: Unclear})
	if v.Revision != 0 {
		t.Errorf("no bytes were read, and yet revision %d", v.Revision)
	}
}

func TestFieldsThatARewriteWouldLoseAreFound(t *testing.T) {
	s := newScene(t)
	s.PatchCRD(`[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/old","value":{"type":"string"}}]`)
	s.Until("v1alpha1 knows old", func() bool {
		s.Create("v1alpha1", "lossy", `{"size":1,"old":"x"}`)
		if strings.Contains(string(s.Get("v1alpha1", "lossy").Body), `"old":"x"`) {
			return true
		}
		s.Accepted(s.Client.Delete(t.Context(), s.Path("v1alpha1", "lossy")))
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
	s.CreateMany(2)
	s.PatchCRD(`[{"op":"add","path":"/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties/size/maximum","value":0}]`)
	if f := finding(s.ask(), Restorable); f.Result != Fail {
		t.Errorf("before the storage version is switched: %+v", f)
	}
	s.switchStorageLike(`{"spec":{"size":0}}`)
	v := s.ask()
	s.expect("over the new maximum", v, Incomplete, map[string]Result{StoredObjects: Fail, StoredVersions: Fail, ManagedFields: Fail,
		Served: Warn, Conversion: Warn, Restorable: Fail})
	s.mentions(v, Restorable, "crdlab/w-001: 422 Invalid", "spec.size")
}

// One object among many would be refused, and it is none of the first.
func TestOneObjectAmongManyThatCouldNotBeRestoredIsFound(t *testing.T) {
	s := newScene(t)
	s.CreateMany(30)
	s.Create("v1alpha1", "w-022-long", `{"size":1,"color":"aquamarine"}`)
	if f := finding(s.ask(), Restorable); f.Result != Pass || !strings.Contains(f.Summary, "copies of 31 objects") {
		t.Errorf("before there is a limit: %+v", f)
	}
	s.PatchCRD(`[{"op":"add","path":"/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties/color/maxLength","value":8}]`)
	s.Until("the object is found", func() bool { return finding(s.ask(), Restorable).Result == Fail })
	if f := finding(s.ask(), Restorable); len(f.Evidence) != 1 || !strings.HasPrefix(f.Evidence[0], "crdlab/w-022-long: 422") {
		t.Errorf("%+v", f)
	}
}

func TestWhereNotAllWereTriedTheFindingsSaySo(t *testing.T) {
	s := newScene(t)
	s.CreateMany(mostTried + 1)
	v := s.ask()
	for _, id := range []string{RoundTrip, Restorable} {
		if f := finding(v, id); f.Result != Pass || !strings.Contains(f.Summary, fmt.Sprintf("%d of %d objects", mostTried/2+1, mostTried+1)) {
			t.Errorf("%+v", f)
		}
	}
}

func TestOwnersAtAVersionToBeDroppedAreNamed(t *testing.T) {
	s := newScene(t)
	s.Create("v1beta1", "owner", `{"size":1}`)
	var owner struct{ Metadata struct{ UID string } }
	s.Must(json.Unmarshal(s.Get("v1beta1", "owner").Body, &owner))
	body := fmt.Sprintf(`{"apiVersion":"%[1]s/v1beta1","kind":"Widget","metadata":{"name":"owned","ownerReferences":[
		{"apiVersion":"%[1]s/v1alpha1","kind":"Widget","name":"owner","uid":"%[2]s"}]}}`, s.Resource.Group, owner.Metadata.UID)
	s.Accepted(s.Client.Create(t.Context(), s.Path("v1beta1", ""), "", []byte(body)))
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
	_, err := Of(t.Context(), Query{Client: s.Client, Storage: s.Storage, Resource: storage.Resource{Group: s.Resource.Group, Plural: "nothing"}})
	if err == nil || !strings.Contains(err.Error(), "nothing."+s.Resource.Group) {
		t.Errorf("error: %v", err)
	}
}

func TestALookWritesNothing(t *testing.T) {
	s := newScene(t)
	s.CreateMany(5)
	s.switchStorage()
	before, err := s.Storage.Revision(t.Context())
	s.Must(err)
	sent := s.Exchanges.Seq()
	s.ask()
	after, err := s.Storage.Revision(t.Context())
	s.Must(err)
	if before != after || s.Exchanges.Seq() != sent {
		t.Errorf("revision %d, then %d; %d requests recorded", before, after, s.Exchanges.Seq()-sent)
	}
}

// However many objects there are, what is kept of them is little.
func TestASurveyStaysSmall(t *testing.T) {
	s := newScene(t)
	s.CreateMany(mostTried)
	got, err := surveyBytes(t.Context(), s.Storage, s.Resource, "Widget")
	s.Must(err)
	names, managers := got.stored["v1alpha1"], got.managers
	if names.count != mostTried || len(names.first) != mostNames || managers["v1alpha1"]["creator"] != mostTried {
		t.Errorf("%d objects, %d names, managers %v", names.count, len(names.first), managers)
	}
	if tried := len(got.samples["v1alpha1"].objects); tried != mostTried {
		t.Errorf("%d of few objects are sampled", tried)
	}
}

// Of many objects as many are asked about as a look can afford, and not the first alone.
func TestASampleIsSpreadOverAll(t *testing.T) {
	const all = 12_345
	s := newSurvey()
	for i := range all {
		s.sample(rewrite.Subject{Name: strconv.Itoa(i)})
	}
	objects := s.samples[""].objects
	if n := len(objects); n < mostTried/2 || n > mostTried {
		t.Fatalf("%d of %d", n, all)
	}
	was := 0
	for _, o := range append(objects, rewrite.Subject{Name: strconv.Itoa(all - 1)}) {
		at, err := strconv.Atoi(o.Name)
		if err != nil || at < was || at-was > 2*all/mostTried {
			t.Errorf("%s after %d: %v", o.Name, was, err)
		}
		was = at
	}
}

// The remedies are commands: run one after the other as they are given, they bring the migration to its end.
func TestTheRemediesWork(t *testing.T) {
	for name, s := range map[string]*fixture{"namespaced": newScene(t),
		"cluster-scoped": newSceneOf(t, strings.Replace(widgets, "Namespaced", "Cluster", 1), "")} {
		t.Run(name, func(t *testing.T) {
			s.CreateMany(3)
			s.Accepted(s.Apply("v1alpha1", "w-001", "team", `{"size":1}`), nil)
			s.follow(StorageVersion)
			s.Must(s.inEffect())
			for _, id := range []string{StoredObjects, ManagedFields, StoredVersions, Served} {
				s.follow(id)
			}
			s.expect("every remedy followed", s.ask(), Complete, map[string]Result{})
			s.PatchCRD(serveNone)
			s.follow(Served)
			s.expect("served again", s.ask(), Complete, map[string]Result{})
		})
	}
}

// A remedy that was made for other versions than those that stand in the CRD now changes nothing.
func TestARemedyThatIsOldIsRefused(t *testing.T) {
	s := newScene(t)
	const turn = `[{"op":"move","from":"/spec/versions/1","path":"/spec/versions/0"}]`
	refused := func(id string) {
		t.Helper()
		before := finding(s.ask(), id)
		s.PatchCRD(turn)
		if out, err := s.kubectl(before.Remedy); err == nil || !strings.Contains(string(out), "is invalid") {
			t.Errorf("%s: %v: %s", before.Remedy, err, out)
		}
		if after := finding(s.ask(), id); after.Summary != before.Summary {
			t.Errorf("%+v, then %+v", before, after)
		}
		s.PatchCRD(turn)
	}
	refused(StorageVersion)
	s.switchStorage()
	refused(Served)
}

// follow runs the remedy of a finding.
func (s *fixture) follow(id string, drop ...string) {
	s.Helper()
	f := finding(s.ask(drop...), id)
	if f.Result == Pass {
		s.Fatalf("%s has no need of a remedy", id)
	}
	if out, err := s.kubectl(f.Remedy); err != nil {
		s.Fatalf("%s\n%v\n%s", f.Remedy, err, out)
	}
}

// kubectl runs commands in a shell, with the server's kubeconfig.
func (s *fixture) kubectl(commands string) ([]byte, error) {
	s.Helper()
	if _, err := exec.LookPath("kubectl"); err != nil {
		s.Skip("there is no kubectl on this machine")
	}
	kubeconfig, _ := s.Server.Kubeconfig()
	command := exec.CommandContext(s.Context(), "sh", "-c", commands)
	command.Env = append(command.Environ(), "KUBECONFIG="+kubeconfig)
	return command.CombinedOutput()
}

func TestAChangeInTheMidstIsSaid(t *testing.T) {
	s := newScene(t)
	s.CreateMany(1)
	changing := &changingReader{Reader: s.Storage, change: func() {
		s.PatchCRD(`[{"op":"replace","path":"/spec/versions/1/served","value":false}]`)
	}}
	v, err := Of(t.Context(), Query{Client: s.Client, Storage: changing, Resource: s.Resource, Drop: []string{"v1beta1"}})
	s.Must(err)
	if f := finding(v, StorageVersion); v.Verdict != Unknown || f.Result != Unclear || !strings.Contains(f.Summary, "changed while") {
		t.Errorf("%s: %+v", v.Verdict, f)
	}
}

func TestStoppedServingIsSeenAtOnce(t *testing.T) {
	s := newScene(t)
	s.unserve()
	resp, err := s.Client.Get(t.Context(), evidence.CollectionPath(s.Resource, "v1alpha1", ""), nil)
	s.Must(err)
	if resp.Status != http.StatusNotFound {
		t.Fatalf("%d", resp.Status)
	}
	v := s.ask("v1beta1")
	if f := finding(v, Served); f.Result != Fail || v.Verdict != Incomplete {
		t.Errorf("no version that stays is served: %s, %+v", v.Verdict, f)
	}
}

func TestARefusalWithoutAReasonReadsWell(t *testing.T) {
	for want, r := range map[string]refusal{
		"crdlab/a: 500: it is corrupt":                {"crdlab/a", 500, "", "it is corrupt"},
		"crdlab/a: 422 Invalid: spec.size is too big": {"crdlab/a", 422, "Invalid", "spec.size is too big"},
	} {
		if got := r.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
