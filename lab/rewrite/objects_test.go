package rewrite

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
)

func TestAnExpiredContinueTokenGoesOnBehindTheLastKey(t *testing.T) {
	s := newScene(t)
	s.createMany(40)
	query := map[string][]string{"limit": {"15"}}
	first, err := list(t.Context(), s.client, s.path("v1alpha1", ""), query)
	s.must(err)
	token := aged(s, first.Metadata.Continue)
	compact(s)
	sent := s.log.Seq()
	seen := first.Items
	for token != "" {
		query["continue"] = []string{token}
		page, err := list(t.Context(), s.client, s.path("v1alpha1", ""), query)
		s.must(err)
		seen, token = append(seen, page.Items...), page.Metadata.Continue
	}
	expired := 0
	for _, x := range s.log.Since(sent) {
		if x.Status == http.StatusGone {
			expired++
		}
	}
	if expired == 0 {
		t.Fatal("the token did not expire: this test shows nothing")
	}
	names := map[string]bool{}
	for _, o := range seen {
		names[o.Metadata.Name] = true
	}
	for i := range 40 {
		if name := fmt.Sprintf("w-%03d", i); !names[name] {
			t.Errorf("%s was left out", name)
		}
	}
}

// aged is a continue token as it is when much has been written since it was given: the server serves young ones from its
// cache, whatever etcd has forgotten.
func aged(s *scene, token string) string {
	s.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(token)
	s.must(err)
	var t map[string]any
	s.must(json.Unmarshal(raw, &t))
	t["rv"] = 2
	raw, err = json.Marshal(t)
	s.must(err)
	return base64.RawURLEncoding.EncodeToString(raw)
}
