package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// order is that of the lesson.
var order = []string{"create-v1alpha1", "add-v1beta1", "deprecate-v1alpha1", "switch-storage", "rewrite", "attempt-removal",
	"trim-stored-versions", "stop-serving", "relabel-managed-fields", "remove-v1alpha1", "verify"}

// TestRunMigrate reads the document of a whole run as any program would.
func TestRunMigrate(t *testing.T) {
	run := document(t)
	for field, want := range map[string]string{"apiVersion": "crdlab.dev/v1", "kind": "Run", "track": "migrate",
		"crd": "widgets.lab.example.com", "result": "passed", "cluster.type": "embedded", "cluster.storageAccess": "true"} {
		if got := fmt.Sprint(at(run, strings.Split(field, ".")...)); got != want {
			t.Errorf("%s is %s, want %s", field, got, want)
		}
	}
	steps := items(run, "steps")
	var ids []string
	for _, s := range steps {
		ids = append(ids, fmt.Sprint(at(s, "id")))
		if r := at(s, "result"); r != "passed" {
			t.Errorf("step %s: %v", at(s, "id"), r)
		}
	}
	if !slices.Equal(ids, order) {
		t.Fatalf("the steps are %v, want %v", ids, order)
	}

	t.Run("storedVersions", func(t *testing.T) {
		want := []string{1: "[v1alpha1]", 2: "[v1alpha1]", 3: "[v1alpha1]", 4: "[v1alpha1 v1beta1]", 5: "[v1alpha1 v1beta1]",
			6: "[v1alpha1 v1beta1]", 7: "[v1beta1]", 8: "[v1beta1]", 9: "[v1beta1]", 10: "[v1beta1]", 11: "[v1beta1]"}
		for i, s := range steps {
			if got := fmt.Sprint(at(last(s), "crd", "storedVersions")); got != want[i+1] {
				t.Errorf("step %d: %s, want %s", i+1, got, want[i+1])
			}
		}
	})
	t.Run("stored versions by the bytes", func(t *testing.T) {
		for i, s := range steps {
			want := "map[v1beta1:6]"
			switch {
			case i+1 <= 3:
				want = "map[v1alpha1:5]"
			case i+1 == 4:
				want = "map[v1alpha1:5 v1beta1:1]"
			}
			if got := fmt.Sprint(at(last(s), "stored", "byVersion")); got != want {
				t.Errorf("step %d: %s, want %s", i+1, got, want)
			}
		}
	})
	t.Run("add-v1beta1: two views of one object", func(t *testing.T) {
		for _, o := range items(last(steps[1]), "objects") {
			old, new := at(o, "views", "v1alpha1", "object"), at(o, "views", "v1beta1", "object")
			was, is := at(old, "metadata", "resourceVersion"), at(new, "metadata", "resourceVersion")
			if was == nil || was != is {
				t.Errorf("%v: resourceVersion %v at v1alpha1, %v at v1beta1", at(o, "name"), was, is)
			}
			if tier := at(new, "spec", "tier"); tier != nil {
				t.Errorf("%v: v1beta1 shows spec.tier %v", at(o, "name"), tier)
			}
		}
	})
	t.Run("deprecate-v1alpha1: both warnings", func(t *testing.T) {
		var texts []string
		for _, x := range items(steps[2], "exchanges") {
			for _, w := range items(x, "warnings") {
				texts = append(texts, fmt.Sprint(w))
			}
		}
		custom := ""
		for _, v := range items(last(steps[2]), "crd", "versions") {
			if w, ok := at(v, "deprecationWarning").(string); ok {
				custom = w
			}
		}
		if !slices.Contains(texts, "lab.example.com/v1alpha1 Widget is deprecated; use lab.example.com/v1beta1 Widget") {
			t.Errorf("the server's own text is missing in %q", texts)
		}
		if custom == "" || !slices.Contains(texts, custom) {
			t.Errorf("the text that the CRD gives, %q, is missing in %q", custom, texts)
		}
	})
	t.Run("rewrite: the default is in the bytes", func(t *testing.T) {
		for _, o := range items(last(steps[4]), "objects") {
			if tier := at(o, "stored", "value", "spec", "tier"); tier != "standard" {
				t.Errorf("%v: spec.tier in the bytes is %v", at(o, "name"), tier)
			}
		}
	})
	t.Run("attempt-removal: refused for the record", func(t *testing.T) {
		found := false
		for _, x := range items(steps[5], "exchanges") {
			for _, c := range items(x, "causes") {
				found = found || at(x, "status") == 422.0 && at(c, "field") == "status.storedVersions[0]"
			}
		}
		if !found {
			t.Errorf("no exchange with status 422 and that cause in %v", at(steps[5], "exchanges"))
		}
	})
	t.Run("stop-serving: 404 at v1alpha1", func(t *testing.T) {
		if got := answers(steps[7], "GET", "/apis/lab.example.com/v1alpha1/"); !slices.Contains(got, 404) {
			t.Errorf("the answers at v1alpha1 are %v", got)
		}
		if got := answers(steps[7], "GET", "/apis/lab.example.com/v1beta1/"); !slices.Contains(got, 200) {
			t.Errorf("the answers at v1beta1 are %v", got)
		}
	})
	t.Run("relabel-managed-fields: the team applies, refused before and accepted after", func(t *testing.T) {
		got := applies(steps[8])
		if len(got) != 2 || got[0] < 400 || got[1] != 200 {
			t.Errorf("the answers to the team's server-side applies are %v", got)
		}
	})
	t.Run("remove-v1alpha1: the team applies again", func(t *testing.T) {
		if got := applies(steps[9]); len(got) != 1 || got[0] != 200 {
			t.Errorf("the answers to the team's server-side applies are %v", got)
		}
	})
	t.Run("verify: complete", func(t *testing.T) {
		if got := at(steps[10], "verdict", "verdict"); got != "complete" {
			t.Errorf("the verdict is %v", got)
		}
	})
}

// applies are the answers to the team's server-side applies at v1beta1.
func applies(step any) []int {
	var out []int
	for _, x := range items(step, "exchanges") {
		path := fmt.Sprint(at(x, "path"))
		if at(x, "actor") == "step" && at(x, "contentType") == "application/apply-patch+yaml" &&
			strings.Contains(path, "/v1beta1/") && strings.Contains(path, "fieldManager=team") {
			out = append(out, int(at(x, "status").(float64)))
		}
	}
	return out
}

// answers are those to the step's own requests of a method below a path.
func answers(step any, method, path string) []int {
	var out []int
	for _, x := range items(step, "exchanges") {
		if at(x, "actor") == "step" && at(x, "method") == method && strings.HasPrefix(fmt.Sprint(at(x, "path")), path) {
			out = append(out, int(at(x, "status").(float64)))
		}
	}
	return out
}

// last is the last observation of a step.
func last(step any) any {
	all := items(step, "observations")
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// at is a field of a JSON document; nil where there is none.
func at(v any, path ...string) any {
	for _, p := range path {
		m, _ := v.(map[string]any)
		v = m[p]
	}
	return v
}

// items are the elements of a list in a JSON document.
func items(v any, path ...string) []any {
	l, _ := at(v, path...).([]any)
	return l
}
