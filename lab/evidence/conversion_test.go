package evidence_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/crdlab/crdlab/lab/evidence"
)

func TestAConversionLogHoldsTheNewestAndCountsAll(t *testing.T) {
	l := evidence.NewConversionLog()
	grown := l.Grown()
	const n = 5000
	for range n {
		l.Add(evidence.Conversion{UID: "x"})
	}
	select {
	case <-grown:
	default:
		t.Error("nobody is told that the log has grown")
	}
	all := l.Since(0)
	if l.Seq() != n || len(all) == 0 || len(all) > 1024 || all[len(all)-1].Seq != n || all[0].Seq != n-len(all)+1 {
		t.Errorf("newest %d, held %d", l.Seq(), len(all))
	}
	if last := l.Since(n - 3); len(last) != 3 || last[0].Seq != n-2 || l.Since(n) != nil {
		t.Errorf("the last three: %+v", last)
	}
}

func TestTheFieldsOfAConversion(t *testing.T) {
	raw, err := json.Marshal(evidence.Conversion{Seq: 1, Names: []string{"one"}})
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	var got []string
	for f := range fields {
		got = append(got, f)
	}
	slices.Sort(got)
	want := []string{"desiredAPIVersion", "durationMs", "from", "message", "objects", "request", "response", "result", "uid"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
