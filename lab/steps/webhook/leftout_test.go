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

// TestTheTrackByHand does everything by kubectl but what only the webhook itself can do. That reviews are not counted then
// does not make the answer another.
func TestTheTrackByHand(t *testing.T) {
	t.Parallel()
	answers := labtest.ByHand(t, webhook.Track(), "prune-after-convert", "outage", "verify")
	if got := answers["one-object-two-views"]; got != "no-call" {
		t.Errorf("a list by hand is answered with %q", got)
	}
}
