package conversion

import (
	"net/http"
	"testing"
)

func TestTheServerConvertsBothWaysAndKeepsTheResourceVersion(t *testing.T) {
	f := newFixture(t)
	f.Create("v1alpha1", "old", `{"label":"hello","replicas":3,"color":"red"}`)
	f.Create("v1beta1", "new", `{"displayName":"hi","replicas":4}`)
	for _, want := range []struct{ version, name, path, value, lacks string }{
		{"v1alpha1", "old", "label", "hello", "displayName"},
		{"v1beta1", "old", "displayName", "hello", "label"},
		{"v1alpha1", "new", "label", "hi", "displayName"},
		{"v1beta1", "new", "displayName", "hi", "label"},
	} {
		o := f.object(want.version, want.name)
		if got := field(o, "spec", want.path); got != want.value {
			t.Errorf("%s at %s: spec.%s is %s, want %s", want.name, want.version, want.path, got, want.value)
		}
		if got := field(o, "spec", want.lacks); got != "-" {
			t.Errorf("%s at %s: spec.%s is %s", want.name, want.version, want.lacks, got)
		}
	}
	for _, name := range []string{"old", "new"} {
		a, b := f.object("v1alpha1", name), f.object("v1beta1", name)
		if x, y := field(a, "metadata", "resourceVersion"), field(b, "metadata", "resourceVersion"); x != y || x == "-" {
			t.Errorf("%s: resourceVersion %s at v1alpha1, %s at v1beta1", name, x, y)
		}
	}
	if f.Get("v1alpha1", "old").Status != http.StatusOK {
		t.Error("the stored version cannot be read")
	}
}
