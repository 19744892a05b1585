package embedded

import (
	"context"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
)

// setBack is how far in the past a CRD appears to have been established. The handler sleeps 2 s before a create for as
// long as that was less than 2 s ago, so that other API servers have time to hear of the CRD. There are no others here.
const setBack = 3 * time.Second

// establishedBefore sets the time of the Established condition back in the very write that makes it true, so that
// nobody can see it before, and the CRD has no revision more than on a full cluster.
type establishedBefore struct{}

var _ admission.MutationInterface = establishedBefore{}

// Handles says which writes are looked at.
func (establishedBefore) Handles(op admission.Operation) bool { return op == admission.Update }

// Admit sets the time back where it is too young. It refuses nothing.
func (establishedBefore) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	crd, ok := a.GetObject().(*apiextensions.CustomResourceDefinition)
	if !ok || a.GetSubresource() != "status" {
		return nil
	}
	condition := apiextensions.FindCRDCondition(crd, apiextensions.Established)
	before := time.Now().Add(-setBack)
	if condition != nil && condition.Status == apiextensions.ConditionTrue && condition.LastTransitionTime.After(before) {
		condition.LastTransitionTime = metav1.NewTime(before)
	}
	return nil
}
