package storage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

// TestEtcdctlReadsWhatEtcdsClientReads runs the program itself, on the embedded server's etcd.
func TestEtcdctlReadsWhatEtcdsClientReads(t *testing.T) {
	program, err := exec.LookPath("etcdctl")
	if err != nil {
		t.Skip("there is no etcdctl in the path: ", err)
	}
	client, direct, endpoint := serveAt(t)
	run := func(ctx context.Context, arguments []string, in io.Reader, out io.Writer) error {
		cmd := exec.CommandContext(ctx, program, append([]string{"--endpoints=" + endpoint}, arguments...)...)
		cmd.Stdin, cmd.Stdout = in, out
		return cmd.Run()
	}
	from := storage.NewEtcdctl(run, "")
	defer from.Close()

	start, err := from.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	batches := from.Watch(t.Context(), gadgets, start)
	const n = 1003 // more than two pages
	for i := range n {
		body := fmt.Sprintf(`{"apiVersion":"storage.example.com/v1","kind":"Gadget","metadata":{"name":"g-%04d"}}`, i)
		must(t)(client.Create(t.Context(), evidence.CollectionPath(gadgets, "v1", "default"), "test", []byte(body)))
	}
	must(t)(client.Delete(t.Context(), evidence.ObjectPath(gadgets, "v1", "default", "g-0007")))
	must(t)(client.Patch(t.Context(), evidence.DefinitionPath(gadgets), evidence.MergePatch, "test", []byte(`{"metadata":{"labels":{"a":"b"}}}`)))

	var here, there []string
	list := func(to *[]string) func(*storage.Value) error {
		return func(v *storage.Value) error {
			*to = append(*to, fmt.Sprintf("%s %s %s %d %d %s", v.Key, v.Namespace, v.Name, v.CreateRevision, v.ModRevision, v.Data))
			return nil
		}
	}
	now, err := from.Range(t.Context(), gadgets, list(&here))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := direct.Range(t.Context(), gadgets, list(&there)); err != nil {
		t.Fatal(err)
	}
	if len(here) != n-1 || !slices.Equal(here, there) {
		t.Errorf("%d values, want %d, and those that etcd's client reads", len(here), len(there))
	}
	if v, err := from.Get(t.Context(), gadgets, "default", "g-0001"); err != nil || v.Name != "g-0001" || v.Version() != "v1" {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := from.Get(t.Context(), gadgets, "default", "none"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}

	created, deleted, definition := 0, "", false
	for {
		if err := from.Progress(t.Context()); err != nil {
			t.Fatal(err)
		}
		b := <-batches
		if b.Err != nil {
			t.Fatal(b.Err)
		}
		for _, c := range b.Changes {
			switch {
			case c.CRD:
				definition = true
			case c.Deleted:
				deleted = c.Was.Name
			case c.Was == nil:
				created++
			}
		}
		if b.Revision >= now {
			break
		}
	}
	if created != n || deleted != "g-0007" || !definition {
		t.Errorf("%d created, %q deleted, the CRD changed: %v; when all up to revision %d was delivered", created, deleted, definition, now)
	}
	if err := from.Close(); err != nil {
		t.Error(err)
	}
	for range batches {
	}
}

// serveAt is serve, and etcd's endpoint.
func serveAt(t *testing.T) (*evidence.Client, storage.Reader, string) {
	t.Helper()
	c, client, from := serveOn(t)
	path, _ := c.Kubeconfig()
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range config.Clusters {
		for _, e := range known.Extensions {
			var extension struct{ Endpoint string }
			if err := json.Unmarshal(e.(*runtime.Unknown).Raw, &extension); err != nil {
				t.Fatal(err)
			}
			return client, from, extension.Endpoint
		}
	}
	t.Fatal("its kubeconfig does not say where etcd is")
	return nil, nil, ""
}
