package rewrite

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/rewrite/scene"
)

// BenchmarkReviews prints how many reviews a rewrite costs the conversion webhook, an object, in each way to do it, for
// objects to which the new version gives a default.
//
//	go test -run xxx -bench Reviews -benchtime 1x ./lab/rewrite/
func BenchmarkReviews(b *testing.B) {
	objects := scene.Objects(300)
	from := []string{"v1alpha1"}
	for _, way := range []struct {
		name    string
		rewrite func(*fixture) (*Result, error)
	}{
		{"relabelling", func(s *fixture) (*Result, error) {
			return s.rewriter().RewriteAndRelabel(s.Context(), from, "v1beta1")
		}},
		{"relabelling through the old version", func(s *fixture) (*Result, error) {
			return relabelThrough(s.Context(), s.rewriter(), from, "v1beta1")
		}},
		{"empty patch", func(s *fixture) (*Result, error) {
			return s.rewriter().Rewrite(s.Context(), "v1beta1")
		}},
		{"empty patch, then relabelling", func(s *fixture) (*Result, error) {
			if got, err := s.rewriter().Rewrite(s.Context(), "v1beta1"); err != nil {
				return got, err
			}
			return s.rewriter().Relabel(s.Context(), from, "v1beta1")
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			for range b.N {
				s, webhook := newConverted(b)
				s.Fill(objects)
				s.switchStorage()
				var result *Result
				reviews := counted(webhook, func() {
					var err error
					result, err = way.rewrite(s)
					s.Must(err)
				})
				n := s.counts()["v1beta1"]
				if result.Written < objects || len(result.Failures) > 0 || n < objects {
					b.Fatalf("%d of %d written, %d stored at v1beta1: %+v", result.Written, objects, n, result.Failures)
				}
				b.ReportMetric(float64(reviews)/float64(objects), "reviews/object")
			}
		})
	}
}

// relabelThrough rewrites and relabels as where no webhook converts: through the newest version of from that is served.
func relabelThrough(ctx context.Context, r *Rewriter, from []string, target string) (*Result, error) {
	w, err := r.start(ctx, target)
	if err == nil {
		w.rewrites = true
		w.result.Through, err = servedOf(w.crd, from)
	}
	if err == nil {
		err = w.relabel(ctx, from)
	}
	return w.result, err
}

// counted is how many reviews some work costs: from when the webhook is quiet until it is quiet again, so that what was
// set in motion before does not count, and the events of the last writes do.
func counted(webhook *conversion.Server, work func()) int {
	quiet(webhook)
	before := webhook.Log().Seq()
	work()
	quiet(webhook)
	return webhook.Log().Seq() - before
}

// newConverted is a scene whose CRD is converted by a webhook that changes the apiVersion, and on the way back to
// v1alpha1 does what it is told besides.
func newConverted(t testing.TB, back ...conversion.Operation) (*fixture, *conversion.Server) {
	t.Helper()
	s := newScene(t)
	listener, err := s.Server.ListenWebhook(t.Context())
	s.Must(err)
	webhook, err := conversion.Serve(t.Context(), listener, conversion.Options{Groups: []string{s.Resource.Group},
		Mappings: []conversion.Mapping{{From: "v1alpha1", To: "v1beta1"}, {From: "v1beta1", To: "v1alpha1", Do: back}}})
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
