package lab_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/crdlab/crdlab/lab"
	conversions "github.com/crdlab/crdlab/lab/conversion/bench"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/report"
	"github.com/crdlab/crdlab/lab/steps/webhook"
)

func TestABenchOfFaultsLeavesTheLearnerInTheirStep(t *testing.T) {
	t.Parallel()
	b := open(t, lab.Options{Track: webhook.Track()})
	b.to("serve-both")
	if err := b.SetFault(t.Context(), "changed-labels"); err != nil {
		t.Fatal(err)
	}
	before := b.State()
	var cells []conversions.Cell
	var refused error
	err := b.Bench(t.Context(), []string{conversions.None, "http-500"}, func(c conversions.Cell) {
		cells = append(cells, c)
		refused = b.SetFault(t.Context(), "down")
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := 4 * len(conversions.Operations); len(cells) != want {
		t.Errorf("%d cells, want %d", len(cells), want)
	}
	if refused == nil {
		t.Error("a fault could be switched while the bench switched them")
	}
	after := b.State()
	if after.Fault.ID != "changed-labels" || after.Benching || after.Doing != "" {
		t.Errorf("afterwards: fault %q, benching %t, doing %q", after.Fault.ID, after.Benching, after.Doing)
	}
	if was, is := before.Steps[before.Current], after.Steps[after.Current]; was.ID != is.ID || is.Phase != lab.Ready || len(is.Conversions) != len(was.Conversions) {
		t.Errorf("the learner was at %s, and is at %s, phase %d", was.ID, is.ID, is.Phase)
	}
	if slices.ContainsFunc(after.Conversions, conversions.Owns) {
		t.Error("the learner is shown the reviews of the bench")
	}
	if before.Live.CRD.ResourceVersion != after.Live.CRD.ResourceVersion {
		t.Error("the learner's CRD was changed")
	}
	for _, o := range before.Live.Objects {
		if now := after.Live.Object(o.Name); now == nil || now.ResourceVersion != o.ResourceVersion {
			t.Errorf("%s was changed", o.Name)
		}
	}
	path := evidence.DefinitionPath(conversions.Resource(after.Resource.Group))
	client, err := evidence.NewClient(b.server.Config(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if gone, err := client.Get(t.Context(), path, nil); err != nil || gone.Status != http.StatusNotFound {
		t.Errorf("the CRD of the bench: %+v, %v", gone, err)
	}
	table, err := report.NewFaultTable(after, cells)
	if err != nil || len(table.Faults) != 2 || len(table.Faults[1].Cells) != 2*len(conversions.Operations) || table.Faults[1].Does == "" {
		t.Fatalf("the table: %v, %+v", err, table)
	}
	for _, write := range []func(*strings.Builder) error{
		func(w *strings.Builder) error { return report.MarkdownFaults(w, table) },
		func(w *strings.Builder) error { return report.NewText(w, 80, false).Faults(table) },
	} {
		var out strings.Builder
		if err := write(&out); err != nil || !strings.Contains(out.String(), "http-500") || !strings.Contains(out.String(), "has a fault of its own") {
			t.Errorf("told: %v, %s", err, out.String())
		}
	}
}

func TestABenchNeedsAWebhookAndFaultsThatAreThere(t *testing.T) {
	t.Parallel()
	if err := open(t, lab.Options{}).Bench(context.Background(), nil, nil); err == nil {
		t.Error("a track without a webhook has a bench")
	}
	if err := open(t, lab.Options{Track: webhook.Track()}).Bench(context.Background(), []string{"bad-weather"}, nil); err == nil {
		t.Error("a fault that is not there was tried")
	}
}
