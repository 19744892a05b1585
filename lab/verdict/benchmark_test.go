package verdict

import (
	"testing"
	"time"

	"github.com/crdlab/crdlab/lab/rewrite/scene"
)

// BenchmarkCheck prints how long a verdict takes after a rewrite, with both versions served and with one. CRDLAB_BENCH_OBJECTS sets the number of objects.
//
//	go test -run xxx -bench Check ./lab/verdict/
func BenchmarkCheck(b *testing.B) {
	objects := scene.Objects(10000)
	s := newScene(b)
	s.Fill(objects)
	s.switchStorage()
	s.rewriteAll()
	for _, step := range []struct {
		name string
		do   func()
	}{{"both served", func() {}}, {"one served", s.unserve}} {
		step.do()
		b.Run(step.name, func(b *testing.B) {
			took := time.Hour
			for b.Loop() {
				began := time.Now()
				s.ask()
				took = min(took, time.Since(began))
			}
			b.ReportMetric(took.Seconds(), "s-best")
			b.ReportMetric(float64(objects)/took.Seconds(), "objects/s")
		})
	}
}
