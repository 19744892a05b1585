package bench_test

import (
	"os"
	"testing"

	"github.com/crdlab/crdlab/lab/rewrite/scene"
)

func TestMain(m *testing.M) { os.Exit(scene.WithServer(m.Run)) }
