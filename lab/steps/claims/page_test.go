package claims

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

const pagePath = "../../../docs/claims.md"

// version is that of the API server; the first stage reads it.
var version string

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

Whether a claim here is *true*, *false* or *depends* was written by nobody. A test asks an API server (%s, with its etcd), and
computes the answer from what that did; under each claim stands what was sent and what came back. Lines that begin with
` + "`etcd`" + ` are the bytes of an object; ` + "`storedVersions`" + ` is the CRD's status; groups of APIs are all called ` + "`lab.example.com`" + `.

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
					fmt.Fprintf(&out, "\n%s: %s\n", c.when, map[bool]string{true: "yes", false: "no"}[c.holds])
				}
				fmt.Fprintf(&out, "\n```\n%s\n```\n", strings.Join(c.lines, "\n"))
			}
		}
		out.WriteString("\n")
	}
	return strings.TrimSpace(out.String()) + "\n"
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
