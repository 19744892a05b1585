package rewrite

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/rewrite/scene"
)

// BenchmarkRewrite prints how fast a rewrite is, beside a loop that sends one merge patch after the other, and beside the
// best fixed number of workers. CRDLAB_BENCH_OBJECTS sets the number of objects; each round rewrites all of them.
//
//	go test -run xxx -bench Rewrite -benchtime 1x ./lab/rewrite/
func BenchmarkRewrite(b *testing.B) {
	objects := scene.Objects(2000)
	defer debug.SetGCPercent(debug.SetGCPercent(embedded.GCPercent)) // as the program's server has it
	s := newScene(b)
	s.Fill(objects)
	const loop, following = "one at a time", "following the server"
	ways := map[string]func(string){loop: s.oneAtATime, following: s.workers(0)}
	var fixed []string
	for _, n := range []int{4, 16, 32, 64, 128} {
		way := fmt.Sprint(n, " workers")
		fixed = append(fixed, way)
		ways[way] = s.workers(n)
	}
	for range b.N {
		best := map[string]speed{}
		for range 2 { // the machine is not quiet: each way has two tries, apart from each other
			for way, rewrite := range ways {
				if got := s.timed(objects, rewrite); got.rate > best[way].rate {
					best[way] = got
				}
			}
		}
		var bestFixed float64
		for _, way := range fixed {
			bestFixed = max(bestFixed, best[way].rate)
		}
		for _, way := range append(fixed, loop, following) {
			b.Logf("%-22s %6.0f objects/s, %.1f cores busy", way, best[way].rate, best[way].cores)
		}
		b.ReportMetric(best[following].rate, "objects/s")
		b.ReportMetric(best[following].rate/best[loop].rate, "x-one-at-a-time")
		b.ReportMetric(best[following].rate/bestFixed, "x-best-fixed")
	}
}

// speed is how fast a way was, and how much of the machine this process, server and all, had for it.
type speed struct{ rate, cores float64 }

// timed makes every object stale, by switching the storage version there and back, and times a way to rewrite them all.
// The way back is not timed: it costs the server another price.
func (s *fixture) timed(objects int, rewrite func(target string)) speed {
	s.Helper()
	if StorageVersion(s.Definition()) == "v1beta1" {
		s.PatchCRD(storeAlpha)
		s.inEffect("v1alpha1")
		_, err := s.rewriter().Rewrite(s.Context(), "v1alpha1")
		s.Must(err)
	}
	s.PatchCRD(scene.StoreBeta)
	s.inEffect("v1beta1")
	runtime.GC()
	began, used := time.Now(), cpu(s)
	rewrite("v1beta1")
	took := time.Since(began)
	used = cpu(s) - used
	if n := s.counts()["v1beta1"]; n != objects {
		s.Fatalf("%d of %d rewritten", n, objects)
	}
	return speed{float64(objects) / took.Seconds(), used.Seconds() / took.Seconds()}
}

// cpu is the processor time that this process has had.
func cpu(s *fixture) time.Duration {
	var u syscall.Rusage
	s.Must(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (s *fixture) inEffect(target string) {
	s.Helper()
	_, err := s.rewriter().WaitInEffect(s.Context(), target, nil)
	s.Must(err)
}

func (s *fixture) workers(n int) func(string) {
	return func(target string) {
		r := s.rewriter()
		r.Workers = n
		_, err := r.Rewrite(s.Context(), target)
		s.Must(err)
	}
}

// oneAtATime is the loop that a person would write.
func (s *fixture) oneAtATime(target string) {
	err := EachMetadata(s.Context(), s.Client, s.Resource, target, s.Namespace, func(m *Metadata) error {
		_, err := s.Client.Patch(s.Context(), s.Path(target, m.Name), evidence.MergePatch, "", []byte("{}"))
		return err
	})
	s.Must(err)
}
