package lab_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// order is the order of the packages: each may import only what stands before it.
var order = []string{"manifests", "lab/storage", "lab/cluster", "lab/evidence", "lab/conversion", "lab/rewrite", "lab/verdict",
	"lab/lesson", "lab/steps/", "lab/steps", "lab", "lab/labtest", "lab/progress", "lab/report", "lab/views", "cmd"}

const module = "github.com/crdlab/crdlab/"

func place(pkg string) int {
	best := -1
	for i, p := range order {
		exact := pkg == p
		below := p != "lab" && strings.HasPrefix(pkg, strings.TrimSuffix(p, "/")+"/")
		if exact || below && (best < 0 || len(p) >= len(order[best])) {
			best = i
			if exact {
				return i
			}
		}
	}
	return best
}

// TestPackagesImportOnlyWhatStandsBeforeThem holds the order of the packages, and keeps the terminal's libraries in one.
func TestPackagesImportOnlyWhatStandsBeforeThem(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		from := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), "../"))
		if place(from) < 0 {
			t.Errorf("%s: the folder %s has no place in the order", path, from)
		}
		for _, i := range f.Imports {
			seen++
			to, _ := strconv.Unquote(i.Path.Value)
			if strings.HasPrefix(to, "charm.land/bubbletea") && from != "lab/views" {
				t.Errorf("%s imports %s: only lab/views may", path, to)
			}
			pkg, ours := strings.CutPrefix(to, module)
			if ours && pkg != from && place(pkg) > place(from) {
				t.Errorf("%s imports %s, which stands after it", path, pkg)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen == 0 || !slices.Contains(order, "lab/storage") {
		t.Fatal("no import was looked at")
	}
}
