package claims

import (
	"flag"
	"os"
	"testing"

	"github.com/crdlab/crdlab/lab/rewrite/scene"
)

// serverSays is what the API server calls its version; the first stage reads it.
var serverSays string

var update = flag.Bool("update", false, "write docs/claims.md anew")

func TestMain(m *testing.M) { os.Exit(scene.WithServer(m.Run)) }

// claim is something that is commonly said. What shows it asks the server, and says in each case whether it holds there.
type claim struct {
	says string
	show func(*book)
}

// group is what one part of the page is about.
type group struct {
	title  string
	claims []claim
}

var groups = []group{
	{"Reading an object", reading},
	{"The storage version, and what moves an object", moving},
	{"storedVersions, and the removal of a version", removing},
	{"Clients and managers", clients},
	{"Conversion webhooks", webhooks},
}

// TestClaims asks the server about every claim, and compares what it did with the page.
func TestClaims(t *testing.T) {
	var shown []section
	for _, g := range groups {
		s := section{title: g.title}
		for _, c := range g.claims {
			t.Run(c.says, func(t *testing.T) {
				b := &book{T: t, says: c.says}
				c.show(b)
				if len(b.cases) == 0 {
					t.Fatal("nothing was shown")
				}
				s.books = append(s.books, b)
			})
		}
		shown = append(shown, s)
	}
	if t.Failed() {
		return
	}
	page := render(serverVersion(t, serverSays), shown)
	if *update {
		if err := os.WriteFile(pagePath, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	was, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatal(err)
	}
	if string(was) != page {
		t.Errorf("%s says something else than the server: %s\nwrite it anew with -update, and look at what has changed", pagePath, firstDifference(string(was), page))
	}
}
