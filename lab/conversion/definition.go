package conversion

import (
	"context"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

// PointsToLab says that a CRD is converted by a webhook of a lab, of this process or another: its caBundle tells.
func PointsToLab(crd *apiextensionsv1.CustomResourceDefinition) bool {
	c := crd.Spec.Conversion
	return c != nil && c.Strategy == apiextensionsv1.WebhookConverter && c.Webhook != nil && c.Webhook.ClientConfig != nil &&
		issuedHere(c.Webhook.ClientConfig.CABundle)
}

// Detach gives a CRD the strategy None if a webhook of a lab converts it, and says whether it did. So nobody suffers from a
// webhook that is gone: with it, every read and write at a version other than the stored one would be an error. A CRD that
// is not there, or is converted otherwise, is left alone.
//
// What this loses: None changes the apiVersion alone. Where versions name a field differently, an object that is stored at
// one version shows without that field at the other, and the next write through the other loses it for good. It is for the
// end, when the webhook cannot stay.
func Detach(ctx context.Context, client *evidence.Client, resource storage.Resource) (bool, error) {
	done, err := replace(ctx, client, resource, map[string]any{"strategy": apiextensionsv1.NoneConverter, "webhook": nil})
	if err != nil {
		return false, fmt.Errorf("detach %s from the lab's webhook: %w", resource, err)
	}
	return done, nil
}

// Repoint gives a CRD the ClientConfig of now if a webhook of a lab converts it, and says whether it did.
func (s *Server) Repoint(ctx context.Context, client *evidence.Client, resource storage.Resource) (bool, error) {
	now := s.ClientConfig()
	done, err := replace(ctx, client, resource, map[string]any{"webhook": map[string]any{"clientConfig": map[string]any{
		"url": nil, "service": now.Service, "caBundle": now.CABundle,
	}}})
	if err != nil {
		return false, fmt.Errorf("point %s to the lab's webhook: %w", resource, err)
	}
	return done, nil
}

// Switch switches a fault on, and tells the CRD where that, or the healing of the one before, is in its reference.
func (s *Server) Switch(ctx context.Context, client *evidence.Client, resource storage.Resource, f Fault) error {
	was := s.Fault()
	if err := s.SetFault(f); err != nil {
		return err
	}
	if !was.ChangesCRD && !f.ChangesCRD {
		return nil
	}
	_, err := s.Repoint(ctx, client, resource)
	return err
}

// replace merges a patch into spec.conversion of a CRD that points to a lab. The resourceVersion guards that it still does
// so then; after a conflict it is looked at again.
func replace(ctx context.Context, client *evidence.Client, resource storage.Resource, conversion map[string]any) (bool, error) {
	client = client.As(evidence.ByProbe)
	for {
		crd, err := readDefinition(ctx, client, resource)
		if apierrors.IsNotFound(err) || err == nil && !PointsToLab(crd) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"resourceVersion": crd.ResourceVersion},
			"spec":     map[string]any{"conversion": conversion},
		})
		if err != nil {
			return false, err
		}
		resp, err := client.Patch(ctx, evidence.DefinitionPath(resource), evidence.MergePatch, "", patch)
		if err == nil {
			err = resp.Err()
		}
		if !apierrors.IsConflict(err) || ctx.Err() != nil {
			return err == nil, err
		}
	}
}

func readDefinition(ctx context.Context, client *evidence.Client, resource storage.Resource) (*apiextensionsv1.CustomResourceDefinition, error) {
	resp, err := client.Get(ctx, evidence.DefinitionPath(resource), nil)
	if err == nil {
		err = resp.Err()
	}
	if err != nil {
		return nil, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(resp.Body, &crd); err != nil {
		return nil, fmt.Errorf("read the CRD %s: %w", resource, err)
	}
	return &crd, nil
}
