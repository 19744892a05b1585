package conversion

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/crdlab/crdlab/lab/storage"
)

// guard runs a guard's process, as it were, to its end: it is told what to guard, and then its parent says a last word, or
// dies without one.
func (f *fixture) guard(resource storage.Resource, caBundle []byte, word string) int {
	f.Helper()
	path, _ := f.Server.Kubeconfig()
	kubeconfig, err := os.ReadFile(path)
	f.Must(err)
	order, err := json.Marshal(guarded{Kubeconfig: kubeconfig, Resource: resource, CABundle: caBundle})
	f.Must(err)
	return GuardMain(strings.NewReader(string(order) + "\n" + word))
}

func (f *fixture) strategy() apiextensionsv1.ConversionStrategyType {
	return f.Definition().Spec.Conversion.Strategy
}

func TestAGuardActsOnlyWhereItsLabHasDiedAndTheCRDIsStillItsOwn(t *testing.T) {
	f := newFixture(t)
	for name, c := range map[string]struct {
		resource storage.Resource
		caBundle []byte
		word     string
	}{
		"released":           {f.Resource, f.webhook.CABundle(), released + "\n"},
		"another's webhook":  {f.Resource, []byte("another's"), ""},
		"a CRD that is gone": {storage.Resource{Group: f.Resource.Group, Plural: "gone"}, f.webhook.CABundle(), ""},
	} {
		if code := f.guard(c.resource, c.caBundle, c.word); code != 0 || f.strategy() != apiextensionsv1.WebhookConverter {
			t.Errorf("%s: exit code %d, and the strategy is %s", name, code, f.strategy())
		}
	}
	if code := f.guard(f.Resource, f.webhook.CABundle(), ""); code != 0 || f.strategy() != apiextensionsv1.NoneConverter {
		t.Errorf("its lab has died: exit code %d, and the strategy is %s", code, f.strategy())
	}
}
