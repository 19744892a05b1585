// Package storage reads the raw values of a custom resource where the API server keeps them: in etcd.
//
// It is for what the API cannot tell: at which version an object is stored. A GET echoes the version that was asked
// for; only the bytes name the stored version. The package reads and watches. What it can write is one thing alone: a value
// that was read before, back under its key, as a restore of etcd does.
package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrNoAccess says that the values cannot be read from here: etcd is out of reach, or the values are encrypted.
	ErrNoAccess = errors.New("no access to the stored values")
	// ErrNotFound says that nothing is stored under a key.
	ErrNotFound = errors.New("no value is stored")
	// ErrUnanswered says that etcd has not answered, or not with what was asked for: a moment later it may.
	ErrUnanswered = errors.New("etcd has not answered")
)

// Resource names a custom resource: all its objects share one key prefix, whatever their version.
type Resource struct {
	Group, Plural string
}

// String is the name of the resource's CRD.
func (r Resource) String() string { return r.Plural + "." + r.Group }

// Value is what is stored for one object at one moment.
type Value struct {
	Key             string
	Namespace, Name string
	APIVersion      string // inside the bytes: group/version. The version is the stored version.
	CreateRevision  int64
	ModRevision     int64 // what the API shows as resourceVersion
	Data            []byte
}

// Version is the stored version: the version part of the apiVersion inside the bytes.
func (v *Value) Version() string {
	return v.APIVersion[strings.LastIndexByte(v.APIVersion, '/')+1:]
}

// Change is one write seen in the store.
type Change struct {
	Value   *Value // nil where the object was deleted
	Was     *Value // nil where the object is new, or its earlier value is no longer known
	CRD     bool   // the change is of the CRD itself: Value and Was are nil
	Deleted bool
	Key     string
}

// Batch is what a watch delivers: changes in the order of their revisions.
type Batch struct {
	Revision int64 // everything up to this revision has been delivered
	Changes  []Change
	Err      error // the watch has ended; it is the last batch
}

// Counts are the objects of a resource by stored version.
type Counts struct {
	Total     int            `json:"total"`
	ByVersion map[string]int `json:"byVersion"`
	Revision  int64          `json:"-"`
}

// Reader reads the stored values of custom resources. Implementations are safe for concurrent use.
type Reader interface {
	// Get reads one object's value; ErrNotFound where there is none.
	Get(ctx context.Context, r Resource, namespace, name string) (*Value, error)
	// Range calls each for every value of the resource in the order of the keys, all as of one revision, which it
	// returns. Pages bound the memory. An error of each ends it and is returned.
	Range(ctx context.Context, r Resource, each func(*Value) error) (revision int64, err error)
	// Watch delivers the changes after a revision of the resource's objects and of its CRD, until the context ends.
	Watch(ctx context.Context, r Resource, after int64) <-chan Batch
	// Revision is the store's newest revision.
	Revision(ctx context.Context) (int64, error)
	// Progress asks that every open Watch soon delivers a batch, empty if need be, that carries the newest revision.
	Progress(ctx context.Context) error
	Close() error
}

// Writer puts values back behind the API server's back. Some Readers are Writers as well.
type Writer interface {
	// Put stores a value of the resource under its key, byte by byte as it was when it was read.
	Put(ctx context.Context, r Resource, v *Value) error
}

// Count counts the objects of a resource by stored version, from the bytes.
func Count(ctx context.Context, from Reader, r Resource) (Counts, error) {
	c := Counts{ByVersion: map[string]int{}}
	rev, err := from.Range(ctx, r, func(v *Value) error {
		c.Total++
		c.ByVersion[v.Version()]++
		return nil
	})
	c.Revision = rev
	return c, err
}

// parse reads what is needed from stored bytes. A value that is no JSON is encrypted or in a format that this program
// does not read; either way there is no access to it.
func parse(key string, prefix string, data []byte) (*Value, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
	}
	if err := json.Unmarshal(data, &head); err != nil || head.APIVersion == "" {
		return nil, fmt.Errorf("the value of %s is not plain JSON (encrypted, or another encoding): %w", key, ErrNoAccess)
	}
	v := &Value{Key: key, APIVersion: head.APIVersion, Data: data}
	rest := strings.TrimPrefix(key, prefix)
	if ns, name, namespaced := strings.Cut(rest, "/"); namespaced {
		v.Namespace, v.Name = ns, name
	} else {
		v.Name = rest
	}
	return v, nil
}
