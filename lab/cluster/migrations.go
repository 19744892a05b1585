package cluster

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/crdlab/crdlab/lab/storage"
)

// MigrationGroupPath is where an API server that has StorageVersionMigration serves it; 404 elsewhere.
const MigrationGroupPath = "/apis/storagemigration.k8s.io/v1"

var migrations = schema.GroupVersionResource{Group: "storagemigration.k8s.io", Version: "v1", Resource: "storageversionmigrations"}

// RemoveMigrations deletes the StorageVersionMigrations that the lab made of a resource. They are cluster-scoped, so their
// names are the resource's own: the name of its CRD, or that and more after a dot. A cluster without them, or
// where none may be listed, has none.
func RemoveMigrations(ctx context.Context, c Cluster, r storage.Resource) error {
	client, err := metadata.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("reset: make a client: %w", err)
	}
	list, err := client.Resource(migrations).List(ctx, metav1.ListOptions{LabelSelector: ManagedBy + "=" + Maker})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("list the StorageVersionMigrations: %w", err)
	}
	for _, m := range list.Items {
		if m.Name != r.String() && !strings.HasPrefix(m.Name, r.String()+".") {
			continue
		}
		err := client.Resource(migrations).Delete(ctx, m.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("remove the StorageVersionMigration %s: %w", m.Name, err)
		}
	}
	return nil
}
