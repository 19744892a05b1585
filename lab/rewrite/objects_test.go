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
	s.CreateMany(40)
	query := map[string][]string{"limit": {"15"}}
	first, err := list(t.Context(), s.Client, s.Path("v1alpha1", ""), query)
	s.Must(err)
	token := aged(s, first.Metadata.Continue)
	compact(s)
	sent := s.Exchanges.Seq()
	seen := first.Items
	for token != "" {
		query["continue"] = []string{token}
		page, err := list(t.Context(), s.Client, s.Path("v1alpha1", ""), query)
		s.Must(err)
		seen, token = append(seen, page.Items...), page.Metadata.Continue
	}
	expired := 0
	for _, x := range s.Exchanges.Since(sent) {
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
func aged(s *fixture, token string) string {
	s.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(token)
	s.Must(err)
	var t map[string]any
	s.Must(json.Unmarshal(raw, &t))
	t["rv"] = 2
	raw, err = json.Marshal(t)
	s.Must(err)
	return base64.RawURLEncoding.EncodeToString(raw)
}
