package rewrite

import (
	"context"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

// Definition reads the CRD of a resource.
func Definition(ctx context.Context, client *evidence.Client, resource storage.Resource) (*apiextensionsv1.CustomResourceDefinition, error) {
	resp, err := client.Get(ctx, evidence.DefinitionPath(resource), nil)
	if err == nil {
		err = resp.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("read the CRD %s: %w", resource, err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(resp.Body, &crd); err != nil {
		return nil, fmt.Errorf("read the CRD %s: %w", resource, err)
	}
	return &crd, nil
}

// StorageVersion is what a CRD says that the next write will use.
func StorageVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// ready says what stands against storing objects at target by writes through it; nil where nothing does.
func ready(crd *apiextensionsv1.CustomResourceDefinition, target string) error {
	if crd.DeletionTimestamp != nil {
		return fmt.Errorf("the CRD %s is being deleted", crd.Name)
	}
	if !isTrue(crd, apiextensionsv1.Established) {
		return fmt.Errorf("the CRD %s is not Established: see its conditions with kubectl describe crd %s", crd.Name, crd.Name)
	}
	if now := StorageVersion(crd); now != target {
		return fmt.Errorf("%s is not the storage version of %s, %s is: every write would be stored at %s; switch the storage version first", target, crd.Name, now, now)
	}
	if !serves(crd, target) {
		return fmt.Errorf("%s of %s is not served: nothing can be written through it; set its served to true", target, crd.Name)
	}
	return nil
}

func isTrue(crd *apiextensionsv1.CustomResourceDefinition, condition apiextensionsv1.CustomResourceDefinitionConditionType) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == condition {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

func serves(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	for _, v := range crd.Spec.Versions {
		if v.Name == version {
			return v.Served
		}
	}
	return false
}

// hasWebhook says that a webhook converts between the versions.
func hasWebhook(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

func resourceOf(crd *apiextensionsv1.CustomResourceDefinition) storage.Resource {
	return storage.Resource{Group: crd.Spec.Group, Plural: crd.Spec.Names.Plural}
}
