// Package verdict answers two questions about a CRD: is its migration complete, and may a version be dropped? It
// answers from the stored bytes and from the server, never from what somebody declared. It changes nothing.
package verdict

import (
	"context"
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/rewrite"
	"github.com/crdlab/crdlab/lab/storage"
)

// Verdict is the answer, with its findings.
type Verdict struct {
	CRD           string    `json:"crd"`
	Drop          []string  `json:"drop"`   // the versions to be dropped
	Target        string    `json:"target"` // the version at which everything is to be stored
	Verdict       Answer    `json:"verdict"`
	Summary       string    `json:"summary"` // the answer in one sentence, without its full stop
	At            string    `json:"at"`      // RFC 3339
	CRDUID        string    `json:"crdUID"`
	CRDGeneration int64     `json:"crdGeneration"`
	Revision      int64     `json:"revision"` // of etcd, at which the bytes were read; 0 where they were not
	Findings      []Finding `json:"findings"`
	// Named are the versions that the CRD, its record, the bytes or managedFields name, old ones first, as far as was looked.
	Named []string `json:"-"`
}

// Answer is complete, incomplete or unknown.
type Answer string

// Answers.
const (
	Complete   Answer = "complete"
	Incomplete Answer = "incomplete"
	Unknown    Answer = "unknown"
)

// The ids of findings, in their order.
const (
	StorageVersion  = "storage-version"
	StoredObjects   = "stored-objects"
	StoredVersions  = "stored-versions"
	ManagedFields   = "managed-fields"
	Served          = "served"
	Conversion      = "conversion"
	Readable        = "readable"
	RoundTrip       = "round-trip"
	Restorable      = "restorable"
	OwnerReferences = "owner-references"
)

// Finding is one thing that was looked at.
type Finding struct {
	ID       string   `json:"id"`
	Result   Result   `json:"result"`
	Summary  string   `json:"summary"`
	Evidence []string `json:"evidence,omitempty"`
	// Remedy is what to do: prose, or commands for a shell, each on a line of its own. Lines between commands that begin
	// with # say what they are for.
	Remedy string `json:"remedy,omitempty"`
}

// IsCommand says whether a line of a remedy is for a shell, and must stay whole.
func IsCommand(line string) bool {
	return strings.HasPrefix(line, "kubectl ") || strings.HasPrefix(line, "etcdctl ")
}

// Result of a finding.
type Result string

// Results of a finding. A warning does not make a verdict incomplete.
const (
	Pass    Result = "pass"
	Fail    Result = "fail"
	Warn    Result = "warn"
	Unclear Result = "unknown"
)

// Finding returns the finding of an id; nil where nobody looked at that.
func (v *Verdict) Finding(id string) *Finding {
	if v == nil {
		return nil
	}
	for i := range v.Findings {
		if v.Findings[i].ID == id {
			return &v.Findings[i]
		}
	}
	return nil
}

// Query says what is asked.
type Query struct {
	Client   *evidence.Client // to read with; it acts as the observer, and nothing is recorded
	Storage  storage.Reader   // nil where the bytes cannot be read: then the answer is never Complete
	Resource storage.Resource
	// Drop are the versions to be dropped. Empty: all that anything names, but the newest that is served or stored at.
	Drop []string
}

// Of answers. The error is for what kept it from looking, such as a CRD that does not exist; what it has seen and could
// not tell is in the findings.
func Of(ctx context.Context, q Query) (*Verdict, error) {
	l := &look{client: q.Client.As(evidence.ByObserver).Unrecorded(), resource: q.Resource}
	var err error
	if l.crd, err = rewrite.Definition(ctx, l.client, q.Resource); err != nil {
		return nil, err
	}
	if l.survey, err = surveyBytes(ctx, q.Storage, q.Resource, l.crd.Spec.Names.Kind); err != nil {
		return nil, fmt.Errorf("look at the stored values of %s: %w", q.Resource, err)
	}
	l.storage = rewrite.StorageVersion(l.crd)
	if err := l.read(ctx); err != nil {
		return nil, fmt.Errorf("read %s at every served version: %w", q.Resource, err)
	}
	l.aim(q.Drop)
	if err := l.try(ctx); err != nil {
		return nil, fmt.Errorf("ask for dry runs on %s: %w", q.Resource, err)
	}
	return l.verdict(ctx)
}

// look is one look at a CRD and its objects: first everything is read, then findings are made of it.
type look struct {
	client   *evidence.Client
	resource storage.Resource
	crd      *apiextensionsv1.CustomResourceDefinition
	storage  string   // the storage version
	target   string   // the version at which everything is to be stored
	asked    bool     // somebody said what is to be dropped
	drop     []string // the versions to be dropped
	survey   *survey
	reads    []read
	losses   []rewrite.Loss
	unfit    []refusal // copies that could not be created
	tried    int       // how many objects were asked about by dry runs
	untried  string    // why none was
	skipped  bool      // some were not asked about, because the server cannot read them
}

// verdict makes the findings, and the answer that follows from them.
func (l *look) verdict(ctx context.Context) (*Verdict, error) {
	v := &Verdict{
		CRD: l.crd.Name, Drop: l.drop, Target: l.target, At: time.Now().UTC().Format(time.RFC3339), CRDUID: string(l.crd.UID),
		CRDGeneration: l.crd.Generation, Revision: l.survey.revision, Named: l.survey.versions(l.crd),
		Findings: []Finding{
			l.storageVersion(), l.storedObjects(), l.storedVersions(), l.managedFields(), l.served(),
			l.conversion(), l.readable(), l.roundTrip(), l.restorable(), l.ownerReferences(),
		},
	}
	v.Verdict = answer(v.Findings)
	v.Summary = l.summary(v.Verdict)
	now, err := rewrite.ReadGuard(ctx, l.client, l.resource)
	if err != nil {
		return nil, err
	}
	if now.UID != v.CRDUID || now.Generation != v.CRDGeneration {
		v.Verdict = Unknown
		v.Findings[0] = changed(v, now)
		v.Summary = l.summary(v.Verdict)
	}
	return v, nil
}

// answer is what findings add up to.
func answer(findings []Finding) Answer {
	out := Complete
	for _, f := range findings {
		switch {
		case f.Result == Fail:
			return Incomplete
		case f.Result == Unclear:
			out = Unknown
		}
	}
	return out
}

// changed says that nothing found holds any more.
func changed(v *Verdict, now rewrite.Guard) Finding {
	return Finding{
		ID: StorageVersion, Result: Unclear, Summary: "the CRD was changed while it was looked at",
		Evidence: []string{
			fmt.Sprintf("at first: uid %s, generation %d", v.CRDUID, v.CRDGeneration),
			fmt.Sprintf("at last: uid %s, generation %d", now.UID, now.Generation),
		},
		Remedy: "look again",
	}
}
