package migrate_test

import (
	"testing"

	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/steps/migrate"
)

func TestEveryActionIsNeeded(t *testing.T) {
	t.Parallel()
	labtest.EveryActionIsNeeded(t, migrate.Track)
}

func TestEveryActionMayBeDoneTwice(t *testing.T) {
	t.Parallel()
	labtest.EveryActionMayBeDoneTwice(t, migrate.Track())
}
