package conversion

import (
	"net/http"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

func TestDetachLetsTheObjectsBeReadWithoutTheWebhook(t *testing.T) {
	f := newFixture(t)
	f.Create("v1alpha1", "one", `{"label":"hello","replicas":3}`)
	f.fault("wrong-service") // it is the lab's all the same
	f.repoint()
	f.Must(f.webhook.Close())
	for _, want := range []bool{true, false} {
		done, err := Detach(t.Context(), f.Client, f.Resource)
		f.Must(err)
		if done != want {
			t.Errorf("detached: %t, want %t", done, want)
		}
	}
	if c := f.Definition().Spec.Conversion; c.Strategy != apiextensionsv1.NoneConverter || c.Webhook != nil {
		t.Errorf("the conversion is %+v", c)
	}
	f.Until("it is read without the webhook", func() bool { return f.Get("v1beta1", "one").Status == http.StatusOK })
	o := f.object("v1beta1", "one")
	if got := field(o, "spec", "displayName") + field(o, "spec", "label"); got != "--" {
		t.Errorf("None does not lose the field that has another name: %s", got)
	}
	for _, x := range f.Exchanges.Since(0) {
		if x.Actor != evidence.ByProbe && x.Method == http.MethodPatch && holds(x.Body, `"None"`) {
			t.Errorf("the patch is not marked as the lab's own: %+v", x)
		}
	}
}

func TestDetachLeavesAnothersWebhookAlone(t *testing.T) {
	f := newFixture(t)
	for what, bundle := range map[string]string{"another's CA": anothersCA(t), "no CA": ""} {
		config := f.webhook.ClientConfig()
		config.CABundle = []byte(bundle)
		c := &apiextensionsv1.CustomResourceDefinition{}
		c.Spec.Conversion = f.webhook.Conversion()
		c.Spec.Conversion.Webhook.ClientConfig = config
		if PointsToLab(c) {
			t.Errorf("%s is taken for the lab's", what)
		}
	}
	f.PatchCRD(`[{"op":"replace","path":"/spec/conversion/webhook/clientConfig","value":{"url":"https://127.0.0.1:1/"}}]`)
	before := f.Definition()
	detached, err := Detach(t.Context(), f.Client, f.Resource)
	f.Must(err)
	repointed, err := f.webhook.Repoint(t.Context(), f.Client, f.Resource)
	f.Must(err)
	if after := f.Definition(); detached || repointed || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("it was changed: %+v", after.Spec.Conversion.Webhook)
	}
}

func TestDetachOfWhatIsNotThereIsNothing(t *testing.T) {
	f := newFixture(t)
	done, err := Detach(t.Context(), f.Client, storage.Resource{Group: "nowhere.example.com", Plural: "widgets"})
	if done || err != nil {
		t.Error(done, err)
	}
}

// anothersCA is the certificate of a CA with the lab's organisation and another name.
func anothersCA(t *testing.T) string {
	t.Helper()
	a, err := newAuthority(nil)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := a.issue([]string{"somebody.svc"})
	if err != nil {
		t.Fatal(err)
	}
	return string(encodePEM(leaf.Certificate[0]))
}
