package report

import (
	"fmt"
	"strings"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/evidence"
)

// reviews says how many ConversionReviews an action caused; empty where they were not counted.
func reviews(a lab.Action) string {
	if !a.Counted {
		return ""
	}
	return plural(a.Reviews, "review")
}

// conversions sums up the reviews of a step: how many to each version, how many failed, and how many were slow. It is empty
// where there were none.
func conversions(step *lab.Step, order []string) string {
	all := step.Conversions
	if len(all) == 0 {
		return ""
	}
	to := map[string]int{}
	failed, slow := 0, 0
	for _, c := range all {
		to[c.DesiredAPIVersion[strings.LastIndexByte(c.DesiredAPIVersion, '/')+1:]]++
		if c.Result != evidence.ConversionSuccess {
			failed++
		}
		if c.Slow() {
			slow++
		}
	}
	var parts []string
	for _, v := range order {
		parts = append(parts, Number(to[v])+" to "+v)
	}
	told := plural(len(all), "review")
	if counted := counted(step); counted > len(all) {
		told = fmt.Sprintf("the last %s of %s reviews", Number(len(all)), Number(counted))
	}
	told += ": " + strings.Join(parts, ", ")
	for _, n := range []struct {
		n    int
		what string
	}{{failed, "failed"}, {slow, "slow"}} {
		if n.n > 0 {
			told += ", " + Number(n.n) + " " + n.what
		}
	}
	return told
}

// counted is how many reviews the actions caused that count them: a step keeps only the last ones.
func counted(step *lab.Step) int {
	n := 0
	for _, a := range step.Actions {
		n += a.Reviews
	}
	return n
}
