package webhook_test

import (
	"testing"

	"github.com/crdlab/crdlab/lab/labtest"
	"github.com/crdlab/crdlab/lab/steps/webhook"
)

func TestMain(m *testing.M) { labtest.Main(m) }

func TestEveryActionIsNeeded(t *testing.T) {
	t.Parallel()
	labtest.EveryActionIsNeeded(t, webhook.Track)
}

func TestEveryActionMayBeDoneTwice(t *testing.T) {
	t.Parallel()
	labtest.EveryActionMayBeDoneTwice(t, webhook.Track())
}

// TestTheTrackByHand does everything by kubectl but what only the webhook itself can do.
func TestTheTrackByHand(t *testing.T) {
	t.Parallel()
	labtest.ByHand(t, webhook.Track(), "prune-after-convert", "outage", "verify")
}
