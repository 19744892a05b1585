package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/rewrite"
	"github.com/crdlab/crdlab/lab/storage"
)

// Abilities are what a cluster can do, as it has shown itself.
type Abilities struct {
	Info  cluster.Info
	lacks map[lesson.Needs]string // why not, and the way on
}

// Look finds out what a cluster can do. It asks, and touches nothing.
func Look(ctx context.Context, c cluster.Cluster) (*Abilities, error) {
	a := &Abilities{Info: c.Info(), lacks: map[lesson.Needs]string{}}
	from, err := c.Storage()
	switch {
	case errors.Is(err, storage.ErrNoAccess):
		a.lacks[lesson.NeedsBytes] = "the stored values cannot be read there; embedded and kind clusters show them"
		a.lacks[lesson.NeedsRestore] = a.lacks[lesson.NeedsBytes]
	case err != nil:
		return nil, fmt.Errorf("read the cluster's etcd: %w", err)
	default:
		if _, can := from.(storage.Writer); !can {
			a.lacks[lesson.NeedsRestore] = "the lab writes to the etcd of no cluster but its own; embedded and kind clusters are"
		}
		_ = from.Close() // it was only to see whether it is there
	}
	client, err := evidence.NewClient(c.Config(), evidence.NewLog())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	migrates, err := rewrite.HasMigrations(ctx, client.As(evidence.ByObserver).Unrecorded())
	if err != nil {
		return nil, err
	}
	if !migrates {
		a.lacks[lesson.NeedsMigration] = "its API server does not offer it; a full cluster of Kubernetes 1.37 or later does: --cluster kind"
	}
	if s, knows := c.(cluster.Secluded); knows {
		if err := s.Secluded(); err != nil {
			a.lacks[lesson.NeedsWebhook] = err.Error()
		}
	}
	return a, nil
}

// Can says whether the cluster has something that a track may need.
func (a *Abilities) Can(n lesson.Needs) bool { return a.lacks[n] == "" }

// Unavailable says in a few words what a track needs and the cluster has not; empty where it has all.
func (a *Abilities) Unavailable(t *lesson.Track) string {
	var lacking []string
	for _, n := range t.Needs {
		if !a.Can(n) {
			lacking = append(lacking, string(n))
		}
	}
	if len(lacking) == 0 {
		return ""
	}
	if slices.Equal(lacking, []string{string(lesson.NeedsWebhook)}) {
		return "the cluster must reach this machine: give --webhook-address"
	}
	return fmt.Sprintf("needs %s, which %s %s lacks", strings.Join(lacking, ", "), a.Info.Type, a.Info.Version)
}

// Missing is the error of a track that the cluster cannot carry; nil where it can.
func (a *Abilities) Missing(t *lesson.Track, with lesson.RewriteWith) error {
	if i := slices.IndexFunc(t.Needs, func(n lesson.Needs) bool { return !a.Can(n) }); i >= 0 {
		return fmt.Errorf("the track %s needs %s, which this cluster (%s %s) lacks: %s", t.ID, t.Needs[i], a.Info.Type, a.Info.Version, a.lacks[t.Needs[i]])
	}
	return a.CannotRewrite(with)
}

// CannotRewrite is the error of a way to rewrite that the cluster does not offer; nil where it does.
func (a *Abilities) CannotRewrite(with lesson.RewriteWith) error {
	if with == lesson.WithMigration && !a.Can(lesson.NeedsMigration) {
		return fmt.Errorf("this cluster (%s %s) cannot rewrite with StorageVersionMigration: %s; or leave out --rewrite-with", a.Info.Type, a.Info.Version, a.lacks[lesson.NeedsMigration])
	}
	return nil
}
