package storage

import (
	"errors"
	"testing"
)

func TestValuesThatAreNotPlainJSONAreNoAccess(t *testing.T) {
	for name, data := range map[string]string{
		"encrypted":       "k8s:enc:aescbc:v1:key1:\x01\x02",
		"protobuf":        "k8s\x00\x0a\x0b",
		"cut":             `{"apiVersion":"example.com/v1`,
		"no apiVersion":   `{"kind":"Widget"}`,
		"nothing":         "",
		"apiVersion null": `{"apiVersion":null}`,
	} {
		if v, err := parse("/registry/g/p/ns/n", "/registry/g/p/", []byte(data)); !errors.Is(err, ErrNoAccess) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}

func TestKeysNameTheObject(t *testing.T) {
	for key, want := range map[string][2]string{
		"/registry/g/p/ns/n": {"ns", "n"},
		"/registry/g/p/n":    {"", "n"}, // a resource without namespaces
	} {
		v, err := parse(key, "/registry/g/p/", []byte(`{"apiVersion":"g/v1"}`))
		if err != nil || v.Namespace != want[0] || v.Name != want[1] {
			t.Errorf("%s: %+v, %v", key, v, err)
		}
	}
}
