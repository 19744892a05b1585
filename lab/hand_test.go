package lab_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdlab/crdlab/lab/cluster"
)

// hand sends requests as somebody else than the lab would: by the kubeconfig, and without the lab's mark.
type hand struct {
	t      *testing.T
	client *http.Client
	host   string
}

func newHand(t *testing.T, c cluster.Cluster) *hand {
	t.Helper()
	path, _ := c.Kubeconfig()
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return &hand{t: t, client: client, host: config.Host}
}

// send sends a request, which the server is to accept.
func (h *hand) send(method, path, contentType, body string) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.host+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := h.client.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, _ := io.ReadAll(resp.Body); resp.StatusCode >= 400 {
		h.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, answer)
	}
}
