package rewrite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

// MigrationsPath is where the API serves StorageVersionMigrations.
const MigrationsPath = cluster.MigrationGroupPath + "/storageversionmigrations"

// FirstWrite is how long a StorageVersionMigration may take until its first write: its controller waits until the garbage
// collector has seen the resource as new as it is.
const FirstWrite = 3 * time.Minute

const (
	// lookEvery is how often a migration is looked at, if to look takes no longer than a quarter of that.
	lookEvery = 100 * time.Millisecond
	// standstill is how long a migration may show nothing new before it is given up.
	standstill = FirstWrite
)

// Migration is a StorageVersionMigration as it is seen from outside: the controller tells no progress.
type Migration struct {
	Name string `json:"name"`
	// State is the condition that is True: Running, Succeeded or Failed; empty until the controller has taken it up. Message
	// is that condition's.
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	// CRD is the condition StorageMigrating of the CRD, its status and reason; empty where it has none.
	CRD            string   `json:"crd,omitempty"`
	StoredVersions []string `json:"storedVersions"` // the CRD's record, as of the last look
	// WaitedMS is how long it took until the first write was seen in the bytes; 0 where none was, or they cannot be read.
	WaitedMS float64 `json:"waitedMs"`
	// Ended says that the controller is done with it and with the CRD.
	Ended bool `json:"ended"`
}

// Waited is how long it took until the first write, in seconds, for people.
func (m *Migration) Waited() string { return fmt.Sprintf("%.1f s", m.WaitedMS/1000) }

// Failed says that the controller gave it up.
func (m *Migration) Failed() bool { return m.State == string(storagemigrationv1.MigrationFailed) }

// HasMigrations says whether the API server offers StorageVersionMigration.
func HasMigrations(ctx context.Context, client *evidence.Client) (bool, error) {
	resp, err := client.Get(ctx, cluster.MigrationGroupPath, nil)
	switch {
	case err != nil:
		return false, fmt.Errorf("look for StorageVersionMigration: %w", err)
	case resp.Status == http.StatusNotFound:
		return false, nil
	}
	if err := resp.Err(); err != nil {
		return false, fmt.Errorf("look for StorageVersionMigration: %w", err)
	}
	return true, nil
}

// Migrate has the cluster's StorageVersionMigration rewrite every object, and follows it to its end. Also the record is then
// trimmed, by its controller. The migration is JSON. It is an error where it failed; the Result, never nil, says how far it
// came.
func (r *Rewriter) Migrate(ctx context.Context, target string, migration []byte) (*Result, error) {
	w, err := r.start(ctx, target)
	var name string
	if err == nil {
		name, err = r.StartMigration(ctx, migration)
	}
	if err != nil {
		return w.result, fmt.Errorf("rewrite %s: %w", r.Resource, err)
	}
	result, err := r.FollowMigration(ctx, target, name, func(m *Migration) bool { return m.Ended })
	result.Guard = w.result.Guard
	if err == nil && result.Migration.Failed() {
		err = fmt.Errorf("the StorageVersionMigration %s has failed: %s; apply the step again for another one, or rewrite with patches", name, result.Migration.Message)
	}
	return result, err
}

// StartMigration creates a StorageVersionMigration, which is JSON, and returns its name. One of that name that goes on, or
// has succeeded, is left as it is; one that failed, or that was of an earlier CRD, gives place to the new one.
func (r *Rewriter) StartMigration(ctx context.Context, migration []byte) (string, error) {
	var wanted storagemigrationv1.StorageVersionMigration
	if err := json.Unmarshal(migration, &wanted); err != nil {
		return "", fmt.Errorf("read the StorageVersionMigration: %w", err)
	}
	stands, err := r.stands(ctx, wanted.Name)
	if err != nil || stands {
		return wanted.Name, err
	}
	resp, err := r.Client.Create(ctx, MigrationsPath, cluster.Maker, migration)
	if err == nil {
		err = resp.Err()
	}
	return wanted.Name, err
}

// stands says whether a migration of the name is to be left as it is; one that is not is removed.
func (r *Rewriter) stands(ctx context.Context, name string) (bool, error) {
	probe := r.Client.As(evidence.ByProbe)
	there, err := readMigration(ctx, probe, name)
	if err != nil || there == nil {
		return false, err
	}
	if there.Labels[cluster.ManagedBy] != cluster.Maker {
		return false, fmt.Errorf("the StorageVersionMigration %s: %w; remove it yourself", name, cluster.ErrForeign)
	}
	crd, err := Definition(ctx, probe, r.Resource)
	if err != nil {
		return false, err
	}
	if !is(there, storagemigrationv1.MigrationFailed) && !there.CreationTimestamp.Before(&crd.CreationTimestamp) {
		return true, nil
	}
	resp, err := probe.Delete(ctx, MigrationsPath+"/"+name)
	if err == nil && resp.Status != http.StatusNotFound {
		err = resp.Err()
	}
	if err != nil {
		return false, fmt.Errorf("remove the StorageVersionMigration before: %w", err)
	}
	return false, nil
}

// readMigration is nil where there is none of the name.
func readMigration(ctx context.Context, client *evidence.Client, name string) (*storagemigrationv1.StorageVersionMigration, error) {
	resp, err := client.Get(ctx, MigrationsPath+"/"+name, nil)
	if err != nil || resp.Status == http.StatusNotFound {
		return nil, err
	}
	if err := resp.Err(); err != nil {
		return nil, err
	}
	m := new(storagemigrationv1.StorageVersionMigration)
	if err := json.Unmarshal(resp.Body, m); err != nil {
		return nil, fmt.Errorf("read the StorageVersionMigration %s: %w", name, err)
	}
	return m, nil
}

func condition(m *storagemigrationv1.StorageVersionMigration, t storagemigrationv1.MigrationConditionType) *metav1.Condition {
	for i := range m.Status.Conditions {
		if m.Status.Conditions[i].Type == string(t) {
			return &m.Status.Conditions[i]
		}
	}
	return nil
}

func is(m *storagemigrationv1.StorageVersionMigration, t storagemigrationv1.MigrationConditionType) bool {
	c := condition(m, t)
	return c != nil && c.Status == metav1.ConditionTrue
}

// FollowMigration looks at a StorageVersionMigration until what it sees is enough: at its conditions, at the CRD, and at the
// bytes where they can be read. It gives up where nothing new has been seen for three minutes. The Result is never nil.
func (r *Rewriter) FollowMigration(ctx context.Context, target, name string, enough func(*Migration) bool) (*Result, error) {
	f := &following{r: r, began: time.Now(), result: &Result{Target: target, Migration: &Migration{Name: name}}}
	err := f.follow(ctx, enough)
	f.result.DurationMS = milliseconds(time.Since(f.began))
	f.report(true)
	if err != nil {
		return f.result, fmt.Errorf("follow the StorageVersionMigration %s: %w", name, err)
	}
	_, err = r.Client.Get(ctx, MigrationsPath+"/"+name, nil) // how it stands, for the record of the run
	return f.result, err
}

// following is the following of one migration.
type following struct {
	r      *Rewriter
	began  time.Time
	result *Result
	meter  meter
}

func (f *following) follow(ctx context.Context, enough func(*Migration) bool) error {
	news := time.Now()
	for {
		began := time.Now()
		was, counted := *f.result.Migration, f.result.After
		if err := f.look(ctx); err != nil {
			return err
		}
		f.report(false)
		now := f.result.Migration
		if enough(now) || now.Ended {
			return nil
		}
		if was.State != now.State || was.CRD != now.CRD || !same(counted, f.result.After) {
			news = time.Now()
		}
		if time.Since(news) > standstill {
			return fmt.Errorf("nothing has moved for %s; look at it with kubectl get storageversionmigration %s -o yaml, or rewrite with patches", standstill, now.Name)
		}
		if err := sleep(ctx, max(lookEvery, 4*time.Since(began))); err != nil {
			return err
		}
	}
}

// look reads the migration, the CRD and the bytes, in this order: what is true of the migration is true of the others.
func (f *following) look(ctx context.Context) error {
	m := f.result.Migration
	probe := f.r.Client.As(evidence.ByProbe).Unrecorded()
	seen, err := readMigration(ctx, probe, m.Name)
	if err != nil {
		return err
	}
	if seen == nil {
		return errors.New("somebody has deleted it; apply the step again for another one")
	}
	m.State, m.Message = "", ""
	for _, t := range []storagemigrationv1.MigrationConditionType{storagemigrationv1.MigrationRunning, storagemigrationv1.MigrationSucceeded, storagemigrationv1.MigrationFailed} {
		if is(seen, t) {
			m.State, m.Message = string(t), condition(seen, t).Message
		}
	}
	running := condition(seen, storagemigrationv1.MigrationRunning)
	m.Ended = m.State != "" && running != nil && running.Status == metav1.ConditionFalse // which it is after the CRD was seen to
	crd, err := Definition(ctx, probe, f.r.Resource)
	if err != nil {
		return err
	}
	m.StoredVersions = crd.Status.StoredVersions
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.StorageMigrating {
			m.CRD = string(c.Status) + " " + c.Reason
		}
	}
	return f.count(ctx)
}

// count counts the bytes by version.
func (f *following) count(ctx context.Context) error {
	if f.r.Storage == nil {
		return nil
	}
	var size int64
	now := &storage.Counts{ByVersion: map[string]int{}}
	_, err := f.r.Storage.Range(ctx, f.r.Resource, func(v *storage.Value) error {
		now.Total++
		now.ByVersion[v.Version()]++
		size += int64(len(v.Data))
		return nil
	})
	if err != nil {
		return err
	}
	if f.result.Before == nil {
		f.result.Before = now
		f.meter.start(now.Total, size)
	}
	target := f.result.Target
	f.result.After, f.meter.bytesAfter = now, size
	f.meter.total, f.meter.done = now.Total, now.ByVersion[target]
	f.result.Written = max(0, now.ByVersion[target]-f.result.Before.ByVersion[target])
	if f.result.Written > 0 && f.result.Migration.WaitedMS == 0 {
		f.result.Migration.WaitedMS = milliseconds(time.Since(f.began))
	}
	return nil
}

// report tells how far it is.
func (f *following) report(finished bool) {
	if f.r.Progress == nil {
		return
	}
	var p Progress
	if f.result.Before != nil {
		f.meter.finished = finished
		p = f.meter.progress()
	}
	m := *f.result.Migration
	p.Finished, p.Migration = finished, &m
	if m.WaitedMS == 0 && !m.Ended {
		p.Quiet = time.Since(f.began)
	}
	if !finished {
		p.BytesAfter = 0
	}
	f.r.Progress(p)
}

func same(a, b *storage.Counts) bool {
	return a != nil && b != nil && maps.Equal(a.ByVersion, b.ByVersion)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
