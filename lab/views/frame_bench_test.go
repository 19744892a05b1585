package views

import (
	"fmt"
	"testing"
	"time"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/evidence"
)

// manyWidgets is a state of a rewrite of 1,000 objects, of which as many are held whole as an observation holds.
func manyWidgets(moved int) *lab.State {
	var objects []*evidence.Object
	for i := range evidence.MaxObjects {
		stored, tier := older, ""
		if i < moved {
			stored, tier = newer, "standard"
		}
		objects = append(objects, widget(fmt.Sprintf("w-%03d", i), int64(100+i+moved), "red", i, stored, tier))
	}
	live := seen(newer, []string{older, newer}, 1000, objects...)
	live.Stored.ByVersion = map[string]int{older: 1000 - moved, newer: moved}
	live.ObjectsOmitted = 1000 - len(objects)
	st := rewriting()
	st.Live, st.Steps[4].Before = live, live
	for i := range 4000 {
		st.Log = append(st.Log, exchange(i, evidence.ByStep, "PATCH", evidence.ObjectPath(fixtureResource, newer, "crdlab", fmt.Sprintf("w-%03d", i)), evidence.MergePatch, "{}", 200, 4))
	}
	return st
}

// BenchmarkFrame draws a screen of 200×50 of 1,000 objects: with a new observation every time, as during a rewrite, and
// with one that was drawn before, as when a key is pressed.
func BenchmarkFrame(b *testing.B) {
	states := []*lab.State{manyWidgets(10), manyWidgets(20)}
	for name, n := range map[string]int{"new-observation": 2, "same-observation": 1} {
		b.Run(name, func(b *testing.B) {
			m := show(b, fixture{state: func() *lab.State { return states[0] }}, "dark", 200, 50)
			began := time.Now()
			for i := range b.N {
				m.show(states[i%n])
				m.View()
			}
			b.ReportMetric(float64(time.Since(began).Microseconds())/1000/float64(b.N), "ms/frame")
		})
	}
}
