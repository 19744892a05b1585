package rewrite

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

// What to accept so that the server sends metadata alone, of one object and of a list.
const (
	acceptMetadata     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	acceptMetadataList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// pageSize is how many objects one LIST asks for.
const pageSize = 500

// Metadata is what work on an object needs to know of its metadata.
type Metadata struct {
	Namespace       string                  `json:"namespace"`
	Name            string                  `json:"name"`
	UID             string                  `json:"uid"`
	ResourceVersion string                  `json:"resourceVersion"` // not in stored bytes
	ManagedFields   []Entry                 `json:"managedFields"`
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
}

// Entry is an entry of managedFields.
type Entry struct {
	Manager     string          `json:"manager"`
	Operation   string          `json:"operation"`
	Subresource string          `json:"subresource"`
	APIVersion  string          `json:"apiVersion"`
	Fields      json.RawMessage `json:"fieldsV1"`
}

// Version is the version that the entry names.
func (e *Entry) Version() string { return (&storage.Value{APIVersion: e.APIVersion}).Version() }

// seen is one object as it was found: in its bytes, or in a list.
type seen struct {
	namespace, name string
	resourceVersion string
	stored          string // the stored version; empty where it is not known
	size            int    // of the stored value, in bytes
	metadata        func() (*Metadata, error)
}

// EachMetadata lists the metadata of a resource's objects at a version, page by page, and calls each for every object in
// the order of their names. Objects that come and go meanwhile may be missed.
func EachMetadata(ctx context.Context, client *evidence.Client, resource storage.Resource, version, namespace string, each func(*Metadata) error) error {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	for {
		page, err := list(ctx, client, evidence.CollectionPath(resource, version, namespace), query)
		if err != nil {
			return fmt.Errorf("list %s at %s: %w", resource, version, err)
		}
		for i := range page.Items {
			if err := each(&page.Items[i].Metadata); err != nil {
				return err
			}
		}
		if page.Metadata.Continue == "" {
			return nil
		}
		query.Set("continue", page.Metadata.Continue)
	}
}

type metadataPage struct {
	Metadata metav1.ListMeta `json:"metadata"`
	Items    []struct {
		Metadata Metadata `json:"metadata"`
	} `json:"items"`
}

// list reads one page. Of a continue token that has expired, the server offers another that goes on behind the same
// key: what has changed meanwhile may then be missing or come twice, which does no harm here.
func list(ctx context.Context, client *evidence.Client, path string, query url.Values) (*metadataPage, error) {
	var wait patience
	for {
		resp, err := client.Do(ctx, evidence.Request{Method: http.MethodGet, Path: path, Query: query, Accept: acceptMetadataList})
		if err != nil {
			return nil, err
		}
		if delay, asked := askedToWait(resp); asked && wait.allows(delay) {
			if err := sleep(ctx, delay); err != nil {
				return nil, err
			}
			continue
		}
		if token := offered(resp); token != "" && token != query.Get("continue") {
			query.Set("continue", token)
			continue
		}
		if err := resp.Err(); err != nil {
			return nil, err
		}
		page := new(metadataPage)
		if err := json.Unmarshal(resp.Body, page); err != nil {
			return nil, fmt.Errorf("read the list: %w", err)
		}
		return page, nil
	}
}

// offered is the continue token in the answer to one that has expired.
func offered(resp *evidence.Response) string {
	if resp.Status != http.StatusGone {
		return ""
	}
	var status metav1.Status
	if json.Unmarshal(resp.Body, &status) != nil {
		return ""
	}
	return status.Continue
}

// each calls f for every object: from the bytes where they can be read, else from lists at a version. The counts are nil
// where bytes cannot be read.
func (r *Rewriter) each(ctx context.Context, version string, f func(*seen) error) (*storage.Counts, int64, error) {
	if r.Storage == nil {
		err := EachMetadata(ctx, r.Client, r.Resource, version, r.Namespace, func(m *Metadata) error {
			known := func() (*Metadata, error) { return m, nil }
			return f(&seen{namespace: m.Namespace, name: m.Name, resourceVersion: m.ResourceVersion, metadata: known})
		})
		return nil, 0, err
	}
	counts, size := &storage.Counts{ByVersion: map[string]int{}}, int64(0)
	var err error
	counts.Revision, err = r.Storage.Range(ctx, r.Resource, func(v *storage.Value) error {
		if r.Namespace != "" && v.Namespace != r.Namespace {
			return nil
		}
		counts.Total++
		counts.ByVersion[v.Version()]++
		size += int64(len(v.Data))
		return f(&seen{namespace: v.Namespace, name: v.Name, resourceVersion: strconv.FormatInt(v.ModRevision, 10),
			stored: v.Version(), size: len(v.Data), metadata: func() (*Metadata, error) { return metadataOf(v) }})
	})
	if err != nil {
		return nil, 0, err
	}
	return counts, size, nil
}

// metadataOf reads the metadata out of stored bytes.
func metadataOf(v *storage.Value) (*Metadata, error) {
	var object struct {
		Metadata Metadata `json:"metadata"`
	}
	if err := json.Unmarshal(v.Data, &object); err != nil {
		return nil, fmt.Errorf("read the metadata in the value of %s: %w", v.Key, err)
	}
	return &object.Metadata, nil
}

// metadataIn reads the metadata out of an answer of the server.
func metadataIn(resp *evidence.Response) (*Metadata, error) {
	var object struct {
		Metadata Metadata `json:"metadata"`
	}
	if err := json.Unmarshal(resp.Body, &object); err != nil {
		return nil, fmt.Errorf("%s %s: read the metadata in the answer: %w", resp.Method, resp.Path, err)
	}
	return &object.Metadata, nil
}
