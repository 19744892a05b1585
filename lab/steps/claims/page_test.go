package claims

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

const pagePath = "../../../docs/claims.md"

// section is a part of the page.
type section struct {
	title string
	books []*book
}

// book keeps what the server did about one claim.
type book struct {
	*testing.T
	says  string
	cases []instance
	lines []string // of the case to come
}

// instance is one case of a claim: whether it holds, and the evidence.
type instance struct {
	when  string
	holds bool
	lines []string
}

// finds ends a case: in it, the claim holds or does not. When says which case it is; it may be empty where there is but one.
func (b *book) finds(holds bool, when string) {
	b.Helper()
	if len(b.lines) == 0 {
		b.Fatalf("%s: there is no evidence", when)
	}
	b.cases = append(b.cases, instance{when, holds, b.lines})
	b.lines = nil
}

// note adds a line of evidence.
func (b *book) note(format string, args ...any) {
	b.lines = append(b.lines, fmt.Sprintf(format, args...))
}

// verdict is true where the claim holds in every case, false where it holds in none.
func (b *book) verdict() string {
	held := 0
	for _, c := range b.cases {
		if c.holds {
			held++
		}
	}
	switch held {
	case len(b.cases):
		return "true"
	case 0:
		return "false"
	}
	return "depends"
}

const intro = `# What is said of CRD versions, and what the server did

Whether a claim here is *true*, *false* or *depends* was written by nobody. A test asks an API server
(%s, with its etcd), and computes the answer from what that did. Under each claim stands what was sent and what came back: the status, and the spec of
the object or the reason of the refusal. A claim that holds in some cases and not in others *depends*.

| what stands there | means |
| --- | --- |
| ` + "`v1beta1 …/widgets/one`" + ` | the path ` + "`/apis/GROUP/v1beta1/namespaces/NAMESPACE/widgets/one`" + ` |
| ` + "`crds/widgets`" + ` | the path ` + "`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.GROUP`" + ` |
| ` + "`etcd one  v1alpha1 {…}`" + ` | the bytes of the object one: their version and spec |
| ` + "`storedVersions  […]`" + ` | status.storedVersions of the CRD |

The same test fails where this page says something else than the server:

` + "```" + `
go test ./lab/steps/claims           compare
go test ./lab/steps/claims -update   write the page anew
` + "```" + `

`

// render makes the page.
func render(version string, sections []section) string {
	var out strings.Builder
	fmt.Fprintf(&out, intro, "Kubernetes "+version)
	for _, s := range sections {
		fmt.Fprintf(&out, "**%s**\n\n", s.title)
		for _, b := range s.books {
			fmt.Fprintf(&out, "- [%s](#%s): %s\n", b.says, anchor(b.says), b.verdict())
		}
		out.WriteString("\n")
	}
	for _, s := range sections {
		fmt.Fprintf(&out, "## %s\n", s.title)
		for _, b := range s.books {
			fmt.Fprintf(&out, "\n### %s\n\n**%s**\n", b.says, strings.ToUpper(b.verdict()[:1])+b.verdict()[1:])
			for _, c := range b.cases {
				if c.when != "" {
					fmt.Fprintf(&out, "\n%s → **%s**\n", c.when, map[bool]string{true: "yes", false: "no"}[c.holds])
				}
				fmt.Fprintf(&out, "\n```\n%s\n```\n", strings.Join(c.lines, "\n"))
			}
		}
		out.WriteString("\n")
	}
	return strings.TrimSpace(out.String()) + "\n"
}

// library is the line of go.mod that names the API server's library; v0.37.2 of it is Kubernetes 1.37.2.
var library = regexp.MustCompile(`k8s\.io/apiextensions-apiserver v0\.(\S+)`)

// serverVersion is the release of the API server that the tests run. A test's binary does not say what it was built from, so
// that the server knows but the minor release; it must be the same.
func serverVersion(t *testing.T, says string) string {
	t.Helper()
	raw, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	m := library.FindSubmatch(raw)
	if m == nil {
		t.Fatal("go.mod does not name the API server's library")
	}
	v := "1." + string(m[1])
	if minor := v[:strings.LastIndex(v, ".")+1]; !strings.HasPrefix(says, minor) {
		t.Fatalf("go.mod has the library of Kubernetes %s, and the server says that it is %s", v, says)
	}
	return v
}

var notInAnchors = regexp.MustCompile(`[^a-z0-9 _-]`)

// anchor is how GitHub and others call a heading in links.
func anchor(heading string) string {
	return strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

func firstDifference(was, is string) string {
	a, b := strings.Split(was, "\n"), strings.Split(is, "\n")
	for i := range b {
		if i >= len(a) || a[i] != b[i] {
			old := "(nothing)"
			if i < len(a) {
				old = a[i]
			}
			return fmt.Sprintf("line %d is %q, and is to be %q", i+1, old, b[i])
		}
	}
	return fmt.Sprintf("%d lines too many", len(a)-len(b))
}

func TestAnchorsAreThoseOfTheHeadings(t *testing.T) {
	for _, g := range groups {
		seen := map[string]bool{}
		for _, c := range g.claims {
			if a := anchor(c.says); seen[a] || a == "" {
				t.Errorf("two claims are called %q", a)
			}
			seen[anchor(c.says)] = true
		}
	}
}
