package views

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/conversion/bench"
	"github.com/crdlab/crdlab/lab/evidence"
)

// review makes a ConversionReview of one object that has its label renamed to displayName.
func review(seq int, name string, ms float64) evidence.Conversion {
	object := func(version, field string) string {
		return fmt.Sprintf(`{"apiVersion":"lab.example.com/%s","kind":"Widget","metadata":{"name":%q,"namespace":"crdlab","uid":"3f0c9a52-1c7e-4e0b-9d0f-000000000001"},"spec":{%q:"Front door","replicas":1}}`, version, name, field)
	}
	return evidence.Conversion{Seq: seq, Names: []string{"crdlab/" + name}, UID: "705ab4f5", From: "lab.example.com/" + older, DesiredAPIVersion: "lab.example.com/" + newer,
		Objects: 1, DurationMS: ms, Result: evidence.ConversionSuccess,
		Request:  `{"request":{"uid":"705ab4f5","objects":[` + object(older, "label") + `]}}`,
		Response: `{"response":{"uid":"705ab4f5","convertedObjects":[` + object(newer, "displayName") + `]}}`}
}

// reviewed is a step of a track with a webhook that has seen everything: what is well, slow, failed, spoiled, and too long.
func reviewed() *lab.State {
	st := applied()
	st.Webhook = true
	failed, spoiled, page, long := review(3, "charlie", 0.2), review(4, "delta", 0.1), review(5, "echo", 0.1), review(6, "foxtrot", 0.4)
	failed.Result, failed.Message = evidence.ConversionFailed, "the webhook cannot convert today"
	failed.Response = `{"response":{"result":{"status":"Failure","message":"the webhook cannot convert today"}}}`
	spoiled.Message = "fault changed-labels: The objects have a label and an annotation more."
	page.Result, page.Message, page.Response = "HTTP 500, no ConversionReview", "fault http-500: Every request is answered with 500.", "the webhook has a fault of its own\n"
	long.Request = strings.Repeat("x", cluster.MaxRecordedBody)
	st.Conversions = []evidence.Conversion{review(1, "alpha", 0.3), review(2, "bravo", 3001), failed, spoiled, page, long}
	st.Steps[3].Conversions = st.Conversions[:2]
	return st
}

// broken is the same while something is wrong with the webhook.
func broken() *lab.State {
	st := reviewed()
	st.Fault = conversion.Faults()[0]
	return st
}

// halfByHand is a step of which a part is only the lab's to do.
func halfByHand() *lab.State {
	st := before()
	st.Webhook = true
	st.Steps[3].Actions = append([]lab.Action{{ID: "down", Change: []string{"  the webhook goes down"}}}, st.Steps[3].Actions...)
	return st
}

// severalRefused is a step that shows several refusals by a webhook that is down.
func severalRefused() *lab.State {
	st := refused()
	s := st.Steps[5]
	down := ` conversion webhook for lab.example.com/v1alpha1, Kind=Widget failed: Post "https://crdlab-webhook.crdlab.svc:443/convert?timeout=30s": dial tcp 127.0.0.1:45671: connect: connection reset by peer`
	x := exchange(8, evidence.ByStep, "GET", evidence.ObjectPath(fixtureResource, newer, "crdlab", "delta"), "", "", 500, 5.1)
	x.Reason, x.Message = "InternalError", "Internal error occurred: StorageError: corrupt object, Code: 7, Key: /lab.example.com/widgets/crdlab/delta, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=10:"+down
	y := exchange(9, evidence.ByStep, "PATCH", evidence.ObjectPath(fixtureResource, newer, "crdlab", "charlie")+"?fieldManager=team", evidence.ApplyPatch, "{}", 500, 7.4)
	y.Message = "object not decodable revision=11:" + down
	other := s.Exchanges[0]
	s.Exchanges = []evidence.Exchange{x, y, other}
	s.Actions = []lab.Action{{ID: "remove", Exchanges: []int{0}, Done: true}, {ID: "remove", Exchanges: []int{1}, Done: true}, {ID: "remove", Exchanges: []int{2}, Done: true}}
	st.Webhook, st.Log = true, append(slices.Clone(fixtureLog), x, y)
	return st
}

// hostileReviews holds what an object and a webhook could bring to break the screen.
func hostileReviews() *lab.State {
	st := reviewed()
	c := review(7, "漢字\\u001b[2J", 12)
	c.Names = []string{"crdlab/" + strings.Repeat("漢字", 30) + "\x1b[2J"}
	c.From, c.DesiredAPIVersion = "lab.example.com/\x1b[2Jv9, lab.example.com/v1alpha1", "lab.example.com/"+strings.Repeat("v", 60)
	c.Result, c.Message, c.Response = "\x1b]0;gone\a", "no\nanswer\x1b[2J", "<h1>\x1b[31m\r\n漢字"
	st.Conversions = append(st.Conversions, c)
	return st
}

func rewritingWithWebhook() *lab.State { st := rewriting(); st.Webhook = true; return st }

// focusReviews gives the reviews the focus.
func focusReviews(m *program) {
	m.sight.focus, m.sight.shown = focus{kind: onReviews}, focus{kind: onReviews}
}

// cells are what a bench would tell of a fault: what is stored is answered, what must be converted is not.
func cells(fault string) []bench.Cell {
	var out []bench.Cell
	for i, op := range bench.Operations {
		other := bench.Cell{Fault: fault, Operation: op, At: bench.Other, Status: 500, Answer: "dial tcp 127.0.0.1:45671: connect: connection reset by peer", DurationMS: 4}
		switch {
		case op == bench.Watch:
			other.Status, other.Answer = 0, "no answer in 3 s"
		case i == 1:
			other.Status, other.Answer, other.Reviews = 200, "", 3
		}
		out = append(out, bench.Cell{Fault: fault, Operation: op, At: bench.Stored, Status: 200, DurationMS: 2}, other)
	}
	return out
}

func openTable(m *program, fault string) {
	m.openFaults()
	d := m.dialogs[0].(*faults)
	d.table, _ = newTable(m, fault)
}

var webhookFixtures = []fixture{
	{"reviews", reviewed, nil},
	{"reviews-focus", reviewed, focusReviews},
	{"reviews-zoom", reviewed, func(m *program) { focusReviews(m); m.zoom(m.screen()); m.sight.review = 1 }},
	{"reviews-zoom-failed", broken, func(m *program) { focusReviews(m); m.zoom(m.screen()); m.sight.review = 5 }},
	{"reviews-zoom-long", reviewed, func(m *program) { focusReviews(m); m.zoom(m.screen()) }},
	{"reviews-none", halfByHand, focusReviews},
	{"reviews-hostile", hostileReviews, func(m *program) { focusReviews(m); m.zoom(m.screen()) }},
	{"refusals", severalRefused, nil},
	{"faults", broken, func(m *program) { m.openFaults() }},
	{"faults-switching", reviewed, func(m *program) {
		m.openFaults()
		m.dialogs[0].(*faults).at = 20
		m.switchFault("hang")
	}},
	{"faults-failed", reviewed, func(m *program) {
		m.openFaults()
		m.dialogs[0].(*faults).failed = "PATCH /apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.lab.example.com: no answer: connection refused"
	}},
	{"fault-table", reviewed, func(m *program) { m.tried["down"] = cells("down"); openTable(m, "down") }},
	{"fault-table-none", reviewed, func(m *program) { openTable(m, bench.None) }},
	{"fault-table-busy", rewritingWithWebhook, func(m *program) { openTable(m, "hang") }},
	{"by-hand-half", halfByHand, func(m *program) { m.dialogs = []dialog{&byHand{step: m.current()}} }},
}

func init() { fixtures = append(fixtures, webhookFixtures...) }
