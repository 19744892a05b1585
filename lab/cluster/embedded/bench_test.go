package embedded

import (
	"context"
	"testing"
	"time"

	"github.com/crdlab/crdlab/lab/cluster"
)

// These print milliseconds from the call until CRDs are accepted: of a server in this process, of one in a child, and of
// a reset of each.

func BenchmarkStart(b *testing.B) {
	state := b.TempDir()
	measure(b, func() cluster.Cluster {
		s, err := Start(context.Background(), Options{StateDir: state})
		if err != nil {
			b.Fatal(err)
		}
		return s
	})
}

func BenchmarkSpawn(b *testing.B) {
	state := b.TempDir()
	measure(b, func() cluster.Cluster {
		p, err := Spawn(context.Background(), SpawnOptions{StateDir: state})
		if err != nil {
			b.Fatal(err)
		}
		return p
	})
}

func BenchmarkReset(b *testing.B) {
	measureReset(b, startServer(b))
}

func BenchmarkResetOfAChild(b *testing.B) {
	measureReset(b, spawn(b))
}

func measure(b *testing.B, start func() cluster.Cluster) {
	var starting, closing time.Duration
	for b.Loop() {
		began := time.Now()
		c := start()
		ready := time.Now()
		if err := c.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		starting += ready.Sub(began)
		closing += time.Since(ready)
	}
	b.ReportMetric(float64(starting.Milliseconds())/float64(b.N), "ms/start")
	b.ReportMetric(float64(closing.Milliseconds())/float64(b.N), "ms/close")
}

func measureReset(b *testing.B, c cluster.Cluster) {
	for b.Loop() {
		if err := c.Reset(context.Background(), wholeScope); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/reset")
}
