package main

import (
	"context"
	"errors"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/conversion/bench"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/report"
)

var toTryFaults = intent{"try the faults of a webhook on this cluster",
	"What an earlier lab left there under these names is removed first. The CRD " + bench.Plural + " of that group is made, and\nremoved at the end. Nothing else is touched."}

// benchable refuses --faults where it means nothing.
func (f *runFlags) benchable(track *lesson.Track) error {
	switch {
	case !lab.Benchable(track):
		return usage("the track %s has no webhook whose faults could be tried; crdlab run webhook --faults does that", track.ID)
	case f.until != "":
		return usage("--faults runs no step, and so --until says nothing; leave one of them out")
	}
	return nil
}

// tellFaults tries every fault of the track's webhook and tells the table. One that breaks off is told as far as it came.
func (a *app) tellFaults(ctx context.Context, s *lab.Session, f runFlags, progress *progress) error {
	var cells []bench.Cell
	failure := s.Bench(ctx, nil, func(c bench.Cell) { cells = append(cells, c) })
	progress.end()
	table, err := report.NewFaultTable(s.State(), cells)
	if err != nil {
		return errors.Join(failure, err)
	}
	switch f.format {
	case formatJSON:
		err = report.WriteJSON(a.out, table)
	case formatMarkdown:
		err = report.MarkdownFaults(a.out, table)
	default:
		err = a.text().Faults(table)
	}
	return errors.Join(err, failure)
}
