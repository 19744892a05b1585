package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/cluster/existing"
	"github.com/crdlab/crdlab/lab/lesson"
)

// intent is what somebody is to agree to, before anything is written to a cluster that is not the lab's.
type intent struct {
	does string // what crdlab will do there, after "crdlab will"
	also string // what that includes
}

var (
	toWork   = intent{"work on this cluster", "What an earlier lab left there under these names is removed first. Nothing else is touched."}
	toRemove = intent{"remove from this cluster", "The CRD goes with its objects, then the namespace. Nothing else is touched."}
)

// agree connects to the cluster of --context, shows what is to be done there, and asks. Nothing was written where it returns
// an error. Where a lab goes elsewhere, there is nothing to be asked, and no cluster is returned.
func (a *app) agree(ctx context.Context, p *place, what intent, tracks ...*lesson.Track) (cluster.Cluster, error) {
	if p.context == "" {
		return nil, nil
	}
	c, err := p.connect(ctx, lab.Namespace(p.learner), p.webhook)
	if err != nil {
		return nil, err
	}
	e, ours := c.(*existing.Cluster)
	if !ours {
		return c, nil // it is a crdlab serve
	}
	if err := a.consent(ctx, e, p, what, tracks); err != nil {
		return nil, errors.Join(err, closing(ctx, e.Close))
	}
	return e, nil
}

func (a *app) consent(ctx context.Context, c *existing.Cluster, p *place, what intent, tracks []*lesson.Track) error {
	if len(tracks) == 1 && tracks[0].Mappings != nil && p.webhook == "" {
		return usage("the track %s has a conversion webhook, and the cluster must be told where this machine is; give --webhook-address HOST[:PORT]", tracks[0].ID)
	}
	scopes, err := scopesOf(tracks, p.learner, c.Info())
	if err != nil {
		return err
	}
	for _, s := range scopes {
		if err := c.CheckRights(ctx, s); err != nil {
			return err
		}
		if err := cluster.CheckClaim(ctx, c, s); err != nil {
			return err
		}
	}
	learner := p.learner
	if learner == "" {
		learner = "none"
	}
	a.note("crdlab will %s:\n", what.does)
	for _, l := range [][2]string{{"server", c.Server()}, {"context", c.Context()}, {"version", c.Info().Version},
		{"namespace", lab.Namespace(p.learner)}, {"API group", lab.Group(p.learner)}, {"CRD", names(scopes)}, {"learner", learner}} {
		a.note("  %-10s %s", l[0], l[1])
	}
	a.note("\n%s", what.also)
	if !p.yes {
		if err := a.ask(ctx); err != nil {
			return err
		}
	}
	_, _ = embedded.RemoveLeftovers() // kubeconfigs of labs that were killed; what cannot be removed is in nobody's way
	return c.Begin()
}

// scopesOf are what labs of tracks make, each once.
func scopesOf(tracks []*lesson.Track, learner string, on cluster.Info) ([]cluster.Scope, error) {
	var scopes []cluster.Scope
	for _, t := range tracks {
		s, err := lab.Scope(t, learner, on)
		if err != nil {
			return nil, err
		}
		same := slices.IndexFunc(scopes, func(o cluster.Scope) bool { return o.Resource == s.Resource })
		if same < 0 {
			scopes = append(scopes, s)
			continue
		}
		scopes[same].Versions = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(scopes[same].Versions), s.Versions...))))
	}
	return scopes, nil
}

func names(scopes []cluster.Scope) string {
	var out []string
	for _, s := range scopes {
		out = append(out, s.Resource.String())
	}
	return strings.Join(out, ", ")
}

// errRefused says that somebody did not agree.
var errRefused = errors.New("nothing was touched; answer y to go on, or give another --context")

// ask waits for an answer on the terminal; whatever is not yes is no.
func (a *app) ask(ctx context.Context) error {
	if !isTerminal(a.in) || !isTerminal(a.err) {
		return usage("there is no terminal on which you could agree, and nothing was touched; give --yes")
	}
	fmt.Fprint(a.err, "Go on? [y/N] ")
	answer := make(chan string, 1)
	go func() { // ends with the line, or with the process
		line, _ := bufio.NewReaderSize(oneByte{a.in}, 16).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case line := <-answer:
		if line == "y" || line == "yes" {
			return nil
		}
		return errRefused
	case <-ctx.Done():
		a.note("")
		return context.Cause(ctx)
	}
}

// oneByte reads no more than is asked for at once, so that what is typed after the answer is left for the lab.
type oneByte struct {
	from interface{ Read([]byte) (int, error) }
}

func (o oneByte) Read(p []byte) (int, error) { return o.from.Read(p[:min(len(p), 1)]) }
