package verdict

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// BenchmarkCheck prints how long a verdict takes after a rewrite, with both versions served and with one. CRDLAB_BENCH_OBJECTS sets the number of objects.
//
//	go test -run xxx -bench Check ./lab/verdict/
func BenchmarkCheck(b *testing.B) {
	objects := 10000
	if n, err := strconv.Atoi(os.Getenv("CRDLAB_BENCH_OBJECTS")); err == nil {
		objects = n
	}
	s := newScene(b)
	s.fill(objects)
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

// fill creates many widgets at v1alpha1, several at once.
func (s *scene) fill(n int) {
	var creating sync.WaitGroup
	turn := make(chan int)
	for range 8 {
		creating.Go(func() {
			for i := range turn {
				s.create("v1alpha1", fmt.Sprintf("w-%05d", i), fmt.Sprintf(`{"size":%d,"color":"red"}`, i%1000))
			}
		})
	}
	for i := range n {
		turn <- i
	}
	close(turn)
	creating.Wait()
}
