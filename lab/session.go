// Package lab runs the steps of a track on a cluster, follows what happens there, by whomever, and records what was
// seen. The terminal program, the command line, tests and reports are all readers of one Session.
package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/conversion/bench"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/rewrite"
	"github.com/crdlab/crdlab/lab/storage"
)

// MinWidgets is how many objects a lesson speaks of by name; a lab has no fewer.
const MinWidgets = lesson.MinWidgets

// Options say what a session runs, and where.
type Options struct {
	Track   *lesson.Track
	Cluster cluster.Cluster
	Widgets int    // how many objects the track begins with; MinWidgets where 0
	Learner string // whose it is on a cluster of many; CheckLearner says which names are good
	// Outlives: the cluster goes on when this process ends, however it does. Then a process of its own sees to it that the CRD
	// does not depend on a webhook that is gone; the program's main must know conversion.GuardCommand.
	Outlives bool
	// RewriteWith is how objects are to be rewritten where a step leaves the choice; WithPatch where empty.
	RewriteWith lesson.RewriteWith
}

// Session is one learner's run of a track. Its methods may be called from several goroutines; one Apply, GoTo, Reset, Park or
// Bench goes on at a time, and a second one waits for it.
type Session struct {
	opts       Options
	log        *evidence.Log
	scope      cluster.Scope
	kubeconfig *cluster.OwnKubeconfig // with the learner's namespace, where the cluster's has another

	working sync.Mutex // held by what changes the cluster, or leaves it: Apply, GoTo, Reset, Park, Bench

	mu        sync.Mutex
	client    *evidence.Client
	storage   storage.Reader
	observer  *evidence.Observer
	stop      context.CancelFunc // ends the followers
	webhook   *conversion.Server // nil where the track has none
	announced bool               // other processes are told of it
	guard     *conversion.Guard  // nil where nobody could suffer from a webhook that is gone
	followed  sync.WaitGroup
	state     State
	prose     []*lesson.Prose
	common    *lesson.Prose // of the track
	kept      []*kept       // the exchanges of the current step: before it was applied, then of each action
	concluded int           // the place in the log at which the last step was judged
	turned    chan struct{} // of one: it has become the learner's turn at another step
	changed   chan struct{}
	resume    chan struct{} // closed while nothing is paused
	closed    bool
	halted    error // why nobody follows the cluster: a reset did not come to its end, or it is parked; nil where it is followed
}

// Open prepares a cluster for a track: what a lab left there before is removed. The caller keeps the cluster. Where the
// cluster lacks what is needed, nothing is touched.
func Open(ctx context.Context, o Options) (*Session, error) {
	if o.Widgets == 0 {
		o.Widgets = MinWidgets
	}
	if o.Widgets < MinWidgets {
		return nil, fmt.Errorf("%d widgets are too few: the lesson speaks of %d by name", o.Widgets, MinWidgets)
	}
	o.Widgets = max(o.Widgets, o.Track.Widgets)
	s := &Session{opts: o, log: evidence.NewLog(), changed: make(chan struct{}), turned: make(chan struct{}, 1), resume: make(chan struct{})}
	close(s.resume)
	err := CheckLearner(o.Learner)
	if err != nil {
		return nil, err
	}
	if s.scope, err = Scope(o.Track, o.Learner, o.Cluster.Info()); err != nil {
		return nil, err
	}
	s.state = State{Track: o.Track, Cluster: o.Cluster.Info(), Resource: s.scope.Resource, Namespace: s.scope.Namespace,
		Learner: o.Learner, Widgets: o.Widgets, StartedAt: time.Now()}
	can, err := Look(ctx, o.Cluster)
	if err != nil {
		return nil, err
	}
	if err := can.Missing(o.Track, o.RewriteWith); err != nil {
		return nil, err
	}
	_, shown := o.Cluster.(cluster.RequestWatcher)
	s.state.HandsUnseen = !shown
	s.state.RewriteWith, s.state.Migrates = cmp.Or(o.RewriteWith, lesson.WithPatch), can.Can(lesson.NeedsMigration)
	if s.common, err = o.Track.ReadProse("track"); err != nil {
		return nil, err
	}
	for _, step := range o.Track.Steps {
		p, err := o.Track.ReadProse(step.ID)
		if err != nil {
			return nil, err
		}
		s.prose = append(s.prose, p)
	}
	if err := cluster.Claim(ctx, o.Cluster, s.scope); err != nil {
		return nil, err
	}
	if err := s.clear(ctx); err != nil {
		return nil, err
	}
	if err := s.kubectlIn(s.scope.Namespace); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, s.releaseWebhook(), s.kubeconfig.Remove())
	}
	return s, nil
}

// Scope is what belongs to this lab on its cluster.
func (s *Session) Scope() cluster.Scope { return s.scope }

// ownCRD is the scope without the namespace, which is needed again at once.
func (s *Session) ownCRD() cluster.Scope {
	own := s.scope
	own.Namespace = ""
	return own
}

// clear removes what a lab left on the cluster; where nothing is left, nothing is done.
func (s *Session) clear(ctx context.Context) error {
	client, err := evidence.NewClient(s.opts.Cluster.Config(), s.log)
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := bench.Remove(ctx, s.opts.Cluster, s.state.Resource.Group); err != nil {
		return err
	}
	r, err := client.As(evidence.ByObserver).Unrecorded().Get(ctx, evidence.DefinitionPath(s.state.Resource), nil)
	if err != nil {
		return fmt.Errorf("look for the CRD %s: %w", s.state.Resource, err)
	}
	if r.Status == http.StatusNotFound { // somebody may have deleted the CRD alone
		return cluster.RemoveMigrations(ctx, s.opts.Cluster, s.state.Resource)
	}
	if err := s.opts.Cluster.Reset(ctx, s.ownCRD()); err != nil {
		return fmt.Errorf("remove what an earlier lab left on the cluster: %w", err)
	}
	return nil
}

// begin starts to follow an empty cluster, at the track's first step.
func (s *Session) begin(ctx context.Context) error {
	if p, ok := s.opts.Cluster.(cluster.Preparer); ok {
		if err := p.Prepare(ctx, s.scope); err != nil {
			return fmt.Errorf("prepare the cluster: %w", err)
		}
	}
	if err := s.serveWebhook(ctx); err != nil {
		return err
	}
	from, err := s.opts.Cluster.Storage()
	if errors.Is(err, storage.ErrNoAccess) {
		from = storage.Without(err) // which has the reason
	} else if err != nil {
		return fmt.Errorf("read the cluster's etcd: %w", err)
	}
	client, err := evidence.NewClient(s.opts.Cluster.Config(), s.log)
	if err != nil {
		return errors.Join(err, closeReader(from))
	}
	follow, stop := context.WithCancel(context.WithoutCancel(ctx))
	given := context.AfterFunc(ctx, stop) // what cannot be read for now can be given up
	observer, err := evidence.Observe(follow, client, from, s.state.Resource, s.opts.Track.Named...)
	if err == nil && !given() {
		observer.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		stop()
		client.Close()
		return errors.Join(advise(err, nil), closeReader(from))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halted, s.state.Trouble = nil, nil
	s.state.Webhook, s.state.Fault = s.webhook != nil, s.fault()
	s.client, s.storage, s.observer, s.stop = client, from, observer, stop
	s.state.Steps, s.state.Current, s.state.Undone = nil, 0, nil
	s.state.Live, _ = observer.Latest()
	for i := range s.opts.Track.Steps {
		s.state.Steps = append(s.state.Steps, s.fresh(i))
	}
	s.concluded = s.log.Seq()
	s.ready(0, s.state.Live)
	s.followed.Go(func() { s.follow(follow, client, observer) })
	s.followHands(follow)
	s.publish()
	return nil
}

// fresh is a step of which nothing has happened yet.
func (s *Session) fresh(i int) *Step {
	l := &s.opts.Track.Steps[i]
	step := &Step{Lesson: l, Index: i, ID: l.ID, Title: s.opts.Track.StepTitle(i), Result: lesson.Skipped}
	step.Actions = s.actions(l)
	return step
}

// actions are a step's, before it is applied; the lock is held.
func (s *Session) actions(l *lesson.Step) []Action {
	var out []Action
	for _, a := range l.Actions {
		action := Action{ID: a.ID}
		if a.Kubectl != nil {
			action.Kubectl = a.Kubectl(s.env())
		}
		if a.Change != nil {
			action.Change = a.Change(s.env())
		}
		out = append(out, action)
	}
	return out
}

// env is what actions get; the lock is held.
func (s *Session) env() *lesson.Env {
	from := s.storage
	if s.observer.NoAccess() != nil {
		from = nil
	}
	return &lesson.Env{Track: s.opts.Track, Cluster: s.opts.Cluster, Client: s.client, Storage: from, Webhook: s.webhook, Resource: s.state.Resource,
		Namespace: s.state.Namespace, Learner: s.state.Learner, Widgets: s.state.Widgets, RewriteWith: s.state.RewriteWith, Progress: s.progress, Gate: s.gate, Earlier: s.earlier}
}

// earlier is what was seen at the end of a step.
func (s *Session) earlier(step string) *evidence.Observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.opts.Track.Step(step); i >= 0 {
		return s.state.Steps[i].After
	}
	return nil
}

// ready makes a step the learner's next; the lock is held. What somebody has asked by hand since the last step was judged is
// the new step's: who works ahead need not wait for the screen.
func (s *Session) ready(i int, before *evidence.Observation) {
	step := *s.state.Steps[i]
	step.Phase, step.Before = Ready, before
	s.state.Current = i
	s.kept = []*kept{{seq: s.concluded}}
	step.Reviewed = s.reviews()
	s.introduce(&step)
	s.state.Steps[i] = &step
}

// introduce says what a step will do and ask; the lock is held.
func (s *Session) introduce(step *Step) {
	e := s.evidence(step, step.Before)
	env := s.env()
	step.Actions, step.Change = s.actions(step.Lesson), nil
	for _, a := range step.Lesson.Actions {
		if a.Change != nil {
			step.Change = append(step.Change, a.Change(env)...)
		}
	}
	p := s.prose[step.Index]
	step.Briefing, step.Err = p.Render(s.opts.Track, "briefing", e)
	if step.Lesson.Predict != nil {
		var err error
		step.Question, err = p.Render(s.opts.Track, "question", e)
		step.Err = errors.Join(step.Err, err)
		step.Options = nil
		for _, id := range step.Lesson.Predict.Options {
			text, err := p.Render(s.opts.Track, "option:"+id, e)
			step.Err = errors.Join(step.Err, err)
			step.Options = append(step.Options, Option{ID: id, Text: text})
		}
	}
}

// evidence is what a step may speak of, as of an observation; the lock is held.
func (s *Session) evidence(step *Step, after *evidence.Observation) lesson.Evidence {
	return lesson.Evidence{Before: step.Before, After: after, During: step.Observations, Exchanges: step.Exchanges, Conversions: step.Conversions,
		Calls: step.Calls(), Rewrite: step.Rewrite, Verdict: step.Verdict,
		Resource: s.state.Resource, Namespace: s.state.Namespace, Widgets: s.state.Widgets, Named: s.opts.Track.Named,
		RewriteWith: s.state.RewriteWith, ServerVersion: s.state.Cluster.Version, Fault: s.fault(), Failure: step.Err}
}

// State returns how things are now.
func (s *Session) State() *State {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.state
	now.Steps = slices.Clone(s.state.Steps)
	return &now
}

// Changed is closed when the state has changed.
func (s *Session) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// publish tells the readers; the lock is held.
func (s *Session) publish() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// update changes the current step under the lock, by a copy: whoever holds the old one keeps it.
func (s *Session) update(i int, change func(*Step)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	step := *s.state.Steps[i]
	change(&step)
	s.state.Steps[i] = &step
	s.publish()
}

// Predict notes which option the learner takes to be right; it may be changed until the step is applied.
func (s *Session) Predict(option string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	step := *s.state.Steps[s.state.Current]
	if step.Phase != Ready {
		return fmt.Errorf("step %s was applied: it is too late to predict", step.ID)
	}
	if !slices.ContainsFunc(step.Options, func(o Option) bool { return o.ID == option }) {
		return fmt.Errorf("step %s has no option %q", step.ID, option)
	}
	step.Given = option
	s.state.Steps[s.state.Current] = &step
	s.publish()
	return nil
}

// RewriteWith chooses how objects are to be rewritten; while it is the learner's turn at a step that leaves the choice.
func (s *Session) RewriteWith(with lesson.RewriteWith) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	step := *s.state.Steps[s.state.Current]
	switch {
	case step.Phase != Ready || !step.Lesson.Rewrites:
		return fmt.Errorf("step %s leaves no choice of how to rewrite", step.ID)
	case with == lesson.WithMigration && !s.state.Migrates:
		return errors.New("this cluster does not offer StorageVersionMigration")
	}
	s.state.RewriteWith = with
	s.introduce(&step)
	s.state.Steps[s.state.Current] = &step
	s.publish()
	return nil
}

// Rest waits until nothing is left to be read of what happened on the cluster, and all of it is in the state.
func (s *Session) Rest(ctx context.Context) error {
	s.mu.Lock()
	observer := s.observer
	s.mu.Unlock()
	if _, err := observer.Rest(ctx); err != nil {
		return err
	}
	s.look(observer)
	return nil
}

// Next goes on to the next step, once the current one passed; false where it has not, or is the last one.
func (s *Session) Next() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.state.Steps[s.state.Current]
	if now.Phase != Applied || now.Result == lesson.Failed || s.state.Current == len(s.state.Steps)-1 {
		return false
	}
	s.ready(s.state.Current+1, now.After)
	s.publish()
	select {
	case s.turned <- struct{}{}:
	default: // it will be looked at anyway
	}
	return true
}

// GoTo resets the cluster and applies all steps before the one given, so that it is the learner's turn there. What the
// learner predicted in them is shown again.
func (s *Session) GoTo(ctx context.Context, id string) error {
	if s.opts.Track.Step(id) < 0 {
		return s.noStep(id)
	}
	given := map[string]string{}
	for _, step := range s.State().Steps {
		given[step.ID] = step.Given
	}
	if err := s.Reset(ctx); err != nil {
		return err
	}
	return s.Rebuild(ctx, id, given)
}

// Rebuild applies, in a session that is at its first step, all steps before the one given. Of each it shows what the learner
// once predicted: the ids of options, by those of the steps.
func (s *Session) Rebuild(ctx context.Context, id string, given map[string]string) error {
	target := s.opts.Track.Step(id)
	if target < 0 {
		return s.noStep(id)
	}
	s.rebuilding(id)
	defer s.rebuilding("")
	for _, step := range s.opts.Track.Steps[:target] {
		if predicted := given[step.ID]; predicted != "" {
			_ = s.Predict(predicted) // another release may have offered it; then there is nothing to show
		}
		if err := s.Apply(ctx); err != nil {
			return err
		}
		if !s.Next() {
			return fmt.Errorf("the step %s, on the way to %s, did not pass", step.ID, id)
		}
	}
	return nil
}

func (s *Session) noStep(id string) error {
	return fmt.Errorf("the track %s has no step %q", s.opts.Track.ID, id)
}

func (s *Session) rebuilding(upTo string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Rebuilding = upTo
	s.publish()
}

// errParked is for people: what a parked session answers, until it is taken up again.
var errParked = errors.New("another track has the cluster")

// Park leaves the cluster to another track's session, once what goes on has ended: nobody follows it any more, and no CRD
// depends on this track's webhook, which is closed. What was seen stays in the state; Reset or GoTo takes the track up again.
func (s *Session) Park(ctx context.Context) error {
	s.working.Lock()
	defer s.working.Unlock()
	s.doing("lending the cluster to another track")
	s.unfollow()
	err := s.endWebhook(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.webhook, s.guard = nil, nil
	s.halted, s.state.Waiting = errParked, nil
	s.publish()
	return err
}

// Reset removes what the lab made, and begins again at the first step.
func (s *Session) Reset(ctx context.Context) error {
	s.working.Lock()
	defer s.working.Unlock()
	s.doing("resetting the cluster")
	defer s.doing("")
	s.unfollow()
	err := s.opts.Cluster.Reset(ctx, s.ownCRD())
	if err == nil {
		err = s.begin(ctx)
	}
	if err != nil {
		err = fmt.Errorf("reset the cluster: %w", advise(err, nil))
		s.halt(err)
	}
	return err
}

// halt notes that nobody follows the cluster any more, until a reset comes to its end.
func (s *Session) halt(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halted, s.state.Waiting = why, nil
	s.state.Trouble = fmt.Errorf("%w; reset again: what was removed until then stays removed", why)
	s.publish()
}

func (s *Session) doing(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Doing = what
	s.publish()
}

func (s *Session) waiting(w *evidence.Waiting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Waiting != w {
		s.state.Waiting = w
		s.publish()
	}
}

func (s *Session) trouble(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Trouble = err
	s.publish()
}

// unfollow ends the followers. To do it twice does nothing.
func (s *Session) unfollow() {
	if s.stop == nil {
		return
	}
	s.stop()
	s.stop = nil
	s.observer.Close()
	s.followed.Wait()
	s.client.Close()
	_ = closeReader(s.storage) // the server may be gone, and with it the connection
}

func closeReader(r storage.Reader) error {
	if r == nil {
		return nil
	}
	return r.Close()
}

// Select holds an object whole, so that it can be shown.
func (s *Session) Select(namespace, name string) {
	s.mu.Lock()
	observer := s.observer
	s.mu.Unlock()
	observer.Select(namespace, name)
}

// Pause holds up a long action before its next write, or lets it go on.
func (s *Session) Pause(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if yes == s.state.Paused {
		return
	}
	if s.state.Paused = yes; yes {
		s.resume = make(chan struct{})
	} else {
		close(s.resume)
	}
	s.publish()
}

func (s *Session) gate(ctx context.Context) error {
	s.mu.Lock()
	resume := s.resume
	s.mu.Unlock()
	select {
	case <-resume:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Session) progress(p rewrite.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Progress = &p
	s.publish()
}

// Close ends the session, and the track's webhook: the CRD is left so that nobody needs that. Else the cluster stays as it
// is, and with the caller.
func (s *Session) Close(ctx context.Context) error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	err := s.endWebhook(ctx)
	s.unfollow()
	return errors.Join(err, s.kubeconfig.Remove())
}
