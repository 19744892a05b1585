package rewrite

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/rewrite/scene"
)

// BenchmarkReviews prints how many reviews a rewrite costs the conversion webhook, an object: one that relabels through
// the old version, which is still served, and one by empty patches at the new version, which does not relabel.
//
//	go test -run xxx -bench Reviews -benchtime 1x ./lab/rewrite/
func BenchmarkReviews(b *testing.B) {
	objects := scene.Objects(300)
	for _, way := range []struct {
		name, metric string
		rewrite      func(*fixture) (*Result, error)
	}{
		{"relabelling", "reviews/object", func(s *fixture) (*Result, error) {
			return s.rewriter().RewriteAndRelabel(s.Context(), []string{"v1alpha1"}, "v1beta1")
		}},
		{"empty patch", "reviews/object", func(s *fixture) (*Result, error) {
			return s.rewriter().Rewrite(s.Context(), "v1beta1")
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			for range b.N {
				s, webhook := newConverted(b)
				s.Fill(objects)
				s.switchStorage()
				quiet(webhook) // what the switch has set in motion
				before := webhook.Log().Seq()
				result, err := way.rewrite(s)
				s.Must(err)
				quiet(webhook) // the events of the last writes
				n := s.counts()["v1beta1"]
				if result.Written < objects || len(result.Failures) > 0 || n < objects {
					b.Fatalf("%d of %d written, %d stored at v1beta1: %+v", result.Written, objects, n, result.Failures)
				}
				b.ReportMetric(float64(webhook.Log().Seq()-before)/float64(objects), way.metric)
			}
		})
	}
}

// newConverted is a scene whose CRD is converted by a webhook that changes the apiVersion alone.
func newConverted(t testing.TB) (*fixture, *conversion.Server) {
	t.Helper()
	s := newScene(t)
	listener, err := s.Server.ListenWebhook(t.Context())
	s.Must(err)
	webhook, err := conversion.Serve(t.Context(), listener, conversion.Options{Groups: []string{s.Resource.Group},
		Mappings: []conversion.Mapping{{From: "v1alpha1", To: "v1beta1"}, {From: "v1beta1", To: "v1alpha1"}}})
	s.Must(err)
	t.Cleanup(func() { s.Must(webhook.Close()) })
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"conversion": webhook.Conversion()}})
	s.Must(err)
	s.Accepted(s.Client.Patch(t.Context(), evidence.DefinitionPath(s.Resource), evidence.MergePatch, "", patch))
	return s, webhook
}

// quiet waits until the webhook has not been asked for a while: longer than the server takes to give up the caches that a
// change of the CRD has made old.
func quiet(webhook *conversion.Server) {
	for {
		select {
		case <-webhook.Log().Grown():
		case <-time.After(2 * time.Second):
			return
		}
	}
}
