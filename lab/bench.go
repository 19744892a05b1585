package lab

import (
	"context"
	"errors"
	"fmt"

	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/conversion/bench"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
)

// Bench tries every operation under some faults of the track's webhook, all where none is named, and tells each cell. It
// has a CRD and objects of its own, so that it may be done at any step, and is not seen in what the step shows. Meanwhile
// the webhook has those faults for everybody; afterwards it has the one that it had before.
//
// It takes about four seconds a fault. No Apply, GoTo, Reset or SetFault goes on beside it; the end of the context ends it,
// and leaves nothing.
func (s *Session) Bench(ctx context.Context, faults []string, each func(bench.Cell)) (err error) {
	rows, err := benchRows(faults)
	if err != nil {
		return err
	}
	s.working.Lock()
	defer s.working.Unlock()
	server := s.webhook
	if server == nil {
		return fmt.Errorf("the track %s has no webhook", s.opts.Track.ID)
	}
	if !Benchable(s.opts.Track) {
		return errors.New("the webhook of this track converts other fields than those of the bench; the track webhook has one that can be tried")
	}
	client, err := evidence.NewClient(s.opts.Cluster.Config(), s.log)
	if err != nil {
		return err
	}
	defer client.Close()
	s.benching(true)
	defer s.benching(false)
	was := server.Fault()
	defer s.observer.Reread() // what was read meanwhile was read under its faults
	defer func() { err = errors.Join(err, server.SetFault(was)) }()
	asked := ctx
	ctx, cancel := s.alive(ctx)
	defer cancel()
	versions := s.opts.Track.Versions
	_, err = bench.Run(ctx, bench.Scene{
		Cluster: s.opts.Cluster, Client: client.As(evidence.ByProbe).Unrecorded(), Webhook: server,
		Lab: s.scope, Stored: versions[0], Other: versions[len(versions)-1],
	}, rows, each)
	if ctx.Err() != nil && asked.Err() == nil { // the cluster has ended, and nothing can be removed from it
		return context.Cause(ctx)
	}
	return err
}

// Benchable says whether the webhook of a track converts what the bench's objects have.
func Benchable(t *lesson.Track) bool { return t.Mappings != nil && t.Group == lesson.Webhook }

func benchRows(ids []string) ([]conversion.Fault, error) {
	if len(ids) == 0 {
		return bench.Faults(), nil
	}
	var rows []conversion.Fault
	for _, id := range ids {
		f, err := bench.FaultByID(id)
		if err != nil {
			return nil, err
		}
		rows = append(rows, f)
	}
	return rows, nil
}

// benching notes that a bench begins or has ended: until then the webhook's faults are its own.
func (s *Session) benching(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Benching, s.state.Doing = yes, ""
	if yes {
		s.state.Doing = "trying the faults of the webhook"
	}
	s.publish()
}
