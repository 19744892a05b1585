package views

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"
)

// TestScreens compares settled screens with files. They were looked at when they were made: go test -update makes them
// anew.
func TestScreens(t *testing.T) {
	for _, z := range [][2]int{{160, 45}, {120, 30}, {80, 24}} {
		for _, f := range fixtures {
			t.Run(fmt.Sprintf("%s-%dx%d-dark", f.name, z[0], z[1]), func(t *testing.T) {
				golden.RequireEqual(t, strings.Join(show(t, f, "dark", z[0], z[1]).lines(), "\n"))
			})
		}
	}
	for _, theme := range []string{"light", "16", "none"} {
		for _, f := range fixtures {
			switch f.name {
			case "before", "applied", "unwanted", "rewriting", "start":
				t.Run(f.name+"-120x30-"+theme, func(t *testing.T) {
					golden.RequireEqual(t, strings.Join(show(t, f, theme, 120, 30).lines(), "\n"))
				})
			}
		}
	}
}

// escapes are what a line may hold besides text: colours and weights, nothing that moves.
var escapes = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// TestEveryScreenFillsItsWindowExactly holds for every state, size and theme: as many lines as the window is high, each
// as wide as the window, and nothing in them but text and colours.
func TestEveryScreenFillsItsWindowExactly(t *testing.T) {
	sizes := [][2]int{{160, 45}, {120, 30}, {80, 24}, {100, 28}, {140, 40}, {200, 60}, {200, 25}, {100, 50}, {20, 5}, {79, 24}, {80, 23},
		{1, 1}, {110, 28}, {109, 28}, {149, 39}, {150, 27}, {150, 28}, {99, 31}, {300, 100}, {81, 25}, {5, 40}}
	for _, f := range fixtures {
		for _, theme := range []string{"dark", "light", "16", "none"} {
			for _, z := range sizes {
				m := show(t, f, theme, z[0], z[1])
				lines := m.lines()
				if len(lines) != z[1] {
					t.Errorf("%s %s %v: %d lines", f.name, theme, z, len(lines))
				}
				for i, l := range lines {
					if n := width(l); n != z[0] {
						t.Errorf("%s %s %v: line %d is %d wide: %q", f.name, theme, z, i, n, l)
					}
					if rest := escapes.ReplaceAllString(l, ""); strings.IndexFunc(rest, unsafe) >= 0 {
						t.Errorf("%s %s %v: line %d holds more than text: %q", f.name, theme, z, i, l)
					}
				}
			}
		}
	}
}

// TestNoColourWithoutColour holds that the theme none writes weights alone.
func TestNoColourWithoutColour(t *testing.T) {
	colour := regexp.MustCompile("\x1b\\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]")
	for _, f := range fixtures {
		for _, l := range show(t, f, "none", 120, 30).lines() {
			if colour.MatchString(l) {
				t.Errorf("%s: a colour in %q", f.name, l)
			}
		}
	}
}

// TestHuesComeFromThePlace holds that the names of versions decide nothing.
func TestHuesComeFromThePlace(t *testing.T) {
	a, b := newPen(dark.theme(true), []string{"v1alpha1", "v1beta1"}), newPen(dark.theme(true), []string{"v1", "v2"})
	if a.hue("v1alpha1") != b.hue("v1") || a.hue("v1beta1") != b.hue("v2") || a.hue("v1alpha1") == a.hue("v1beta1") {
		t.Error("the hue of a version does not come from its place in the track")
	}
	if got := b.say("", "v1alpha1 and v10 but v1"); strings.Count(got, reset) != 1 {
		t.Errorf("a part of a longer name was taken for a version: %q", got)
	}
}
