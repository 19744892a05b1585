package kind

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"sigs.k8s.io/kind/pkg/log"

	"github.com/crdlab/crdlab/lab/cluster"
)

// phases is kind's log, of which it makes phases: kind tells how it goes on by lines like " • Preparing nodes 📦  ..." and
// " ✓ Preparing nodes 📦". What else it says is in its errors as well, or of no use here.
type phases struct {
	report func(cluster.Phase)
	begun  time.Time
}

var _ log.Logger = &phases{}

func newPhases(report func(cluster.Phase)) *phases { return &phases{report: report} }

// V is for what kind tells people at level 0; the rest is about kind itself.
func (p *phases) V(level log.Level) log.InfoLogger {
	if level > 0 {
		return log.NoopInfoLogger{}
	}
	return p
}

// Warn, Warnf, Error and Errorf drop what is not about a phase.
func (p *phases) Warn(string)           {}
func (p *phases) Warnf(string, ...any)  {}
func (p *phases) Error(string)          {}
func (p *phases) Errorf(string, ...any) {}

// Enabled is always true.
func (p *phases) Enabled() bool { return true }

// Infof is Info with arguments.
func (p *phases) Infof(format string, args ...any) { p.Info(fmt.Sprintf(format, args...)) }

// Info reports the phase that a line is about, if any.
func (p *phases) Info(line string) {
	line = strings.TrimSpace(line)
	if name, ok := strings.CutPrefix(line, "•"); ok && strings.HasSuffix(name, "...") { // else it is news of the phase before
		p.begun = time.Now()
		p.report(cluster.Phase{Name: phaseName(name)})
	}
	if name, ok := strings.CutPrefix(line, "✓"); ok {
		p.report(cluster.Phase{Name: phaseName(name), Done: true, Took: time.Since(p.begun)})
	}
}

// phaseName is a line without the dots and the pictures at its end.
func phaseName(line string) string {
	return strings.TrimSpace(strings.TrimRightFunc(line, func(r rune) bool {
		return r > unicode.MaxASCII || r == '.' || unicode.IsSpace(r)
	}))
}
