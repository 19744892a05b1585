package views

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func TestProse(t *testing.T) {
	p := newPen(dark.theme(true), []string{"v1alpha1", "v1beta1"})
	for name, c := range map[string]struct{ in, want string }{
		"paragraphs":   {"one\ntwo\n\n\nthree", "one two||three"},
		"marks":        {"a `code`, *soft* and **loud**: 2*3*4 snake_case", "a code, soft and loud:|2*3*4 snake_case"},
		"lists":        {"so:\n- first `x` which is long\n- second\n  and on\n1. third", "so:|· first x which is|  long|· second|  and on|1. third"},
		"fence":        {"do\n```\n$ a  b\n```\nthen", "do|  $ a  b|then"},
		"long words":   {strings.Repeat("x", 50), strings.Repeat("x", 22) + "|" + strings.Repeat("x", 22) + "|xxxxxx"},
		"wide runes":   {strings.Repeat("漢", 13), strings.Repeat("漢", 11) + "|漢漢"},
		"control code": {"a\x1b[2Jb\x07c", "abc"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ansi.Strip(strings.Join(p.prose(p.quietly(), c.in, 22), "|"))
			if got != c.want {
				t.Errorf("%q\nnot %q", got, c.want)
			}
		})
	}
}

func TestVersionsWearTheirHueInProse(t *testing.T) {
	p := newPen(dark.theme(true), []string{"v1alpha1", "v1beta1"})
	got := strings.Join(p.prose(p.quietly(), "stored at `v1beta1` now", 60), "")
	if !strings.Contains(got, p.hue("v1beta1").of("v1beta1")) {
		t.Errorf("%q", got)
	}
}

func TestMiddleKeepsTheEnds(t *testing.T) {
	for w := 3; w < 30; w++ {
		got := middle("customresourcedefinitions/widgets", w)
		if width(got) > w || !strings.HasSuffix(got, "s") {
			t.Errorf("at %d: %q", w, got)
		}
	}
}
