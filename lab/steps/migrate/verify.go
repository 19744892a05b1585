package migrate

import (
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/lesson/kit"
)

func verify() lesson.Step {
	return lesson.Step{
		ID:     "verify",
		WhatIf: []string{"pitfalls/restored-bytes"},
		Actions: []lesson.Action{{
			ID:      "verdict",
			Do:      kit.Judge,
			Kubectl: kit.Kubectl("kubectl get crd CRD -o jsonpath='{.status.storedVersions}{\"\\n\"}'", "kubectl get NEW --show-managed-fields -o yaml | grep -c "+oldVersion+" || true"),
			Change:  kit.Lines("  nothing: bytes, record, managers and answers are read"),
		}},
		Predict: kit.WhichVerdict(),
		Checks: []lesson.Check{
			{ID: "complete", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.Complete},
			{ID: "findings", Kind: lesson.Done, Needs: lesson.NeedsBytes, Eval: kit.EveryFinding},
			{ID: "unchanged", Kind: lesson.Invariant, Needs: lesson.NeedsBytes, Eval: kit.BytesUnchanged},
		},
		Wrong: []lesson.Diagnosis{kit.Written(), kit.NotComplete()},
	}
}
