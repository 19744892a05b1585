package migrate_test

import (
	"testing"

	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/steps/migrate"
)

func TestMain(m *testing.M) { labtest.Main(m) }

func TestTheTrackByHand(t *testing.T) {
	t.Parallel()
	labtest.ByHand(t, migrate.Track(), "verify")
}
