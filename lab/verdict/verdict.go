// Package verdict answers two questions about a CRD: is its migration complete, and may a version be dropped? It
// answers from the stored bytes and from the server, never from what somebody declared.
package verdict

// Verdict is the answer, with its findings.
type Verdict struct {
	CRD           string    `json:"crd"`
	Drop          []string  `json:"drop"` // the versions that are to go
	Verdict       Answer    `json:"verdict"`
	At            string    `json:"at"` // RFC 3339
	CRDUID        string    `json:"crdUID"`
	CRDGeneration int64     `json:"crdGeneration"`
	Revision      int64     `json:"revision"` // of etcd, at which the bytes were read; 0 where they were not
	Findings      []Finding `json:"findings"`
}

// Answer is complete, incomplete or unknown.
type Answer string

// Answers.
const (
	Complete   Answer = "complete"
	Incomplete Answer = "incomplete"
	Unknown    Answer = "unknown"
)

// Finding is one thing that was looked at.
type Finding struct {
	ID       string   `json:"id"`
	Result   Result   `json:"result"`
	Summary  string   `json:"summary"`
	Evidence []string `json:"evidence,omitempty"`
	Remedy   string   `json:"remedy,omitempty"`
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
