package lab

import (
	"time"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/conversion"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/rewrite"
	"github.com/crdlab/crdlab/lab/storage"
	"github.com/crdlab/crdlab/lab/verdict"
)

// State is a picture of a session at one moment. It is never changed after it was handed out.
type State struct {
	Track     *lesson.Track
	Cluster   cluster.Info
	Resource  storage.Resource
	Namespace string
	Learner   string
	Widgets   int
	// RewriteWith is how objects will be rewritten where a step leaves the choice; Migrates says that there is one: the
	// cluster offers StorageVersionMigration.
	RewriteWith lesson.RewriteWith
	Migrates    bool
	StartedAt   time.Time

	Steps   []*Step
	Current int // index of the step at which the learner is

	Live *evidence.Observation // the newest observation
	Log  []evidence.Exchange   // the newest exchanges of steps, probes and hands, oldest first; not the observer's reads
	// Conversions are the newest reviews that the track's webhook was sent, by whomever they were caused, oldest first.
	Conversions []evidence.Conversion
	HandsUnseen bool              // the cluster does not show what others ask of it, such as the learner's kubectl
	Webhook     bool              // the lab serves a webhook for this track
	Fault       conversion.Fault  // what is wrong with it; the zero Fault where all is well
	Benching    bool              // a bench of faults is running, and switches them
	Doing       string            // what the session is busy with, for people; empty where it waits for the learner
	Rebuilding  string            // the id of the step up to which the lab applies the steps by itself; empty where it does not
	Progress    *rewrite.Progress // of the rewrite that is going on
	Paused      bool              // it is held up
	Undone      []string          // ids of earlier steps whose effect somebody has undone
	Trouble     error             // the cluster cannot be followed at the moment, why, and what to do; the session tries again
	Waiting     *evidence.Waiting // the request that has been waiting longest for its answer; nil where answers come soon
	// Kubeconfig and KubectlFlags are for the learner's own kubectl.
	Kubeconfig, KubectlFlags string
}

// Phase says how far a step is.
type Phase int

// Phases of a step, in their order.
const (
	Coming Phase = iota
	Ready        // it is the learner's turn: to predict, to apply
	Running
	Applied // its checks were made; Result tells how they went
)

// Step is a step and what became of it.
type Step struct {
	Lesson *lesson.Step
	Index  int
	ID     string
	Title  string
	Phase  Phase
	Result lesson.Result // passed, failed or skipped, once it is applied
	ByHand bool          // somebody else than the lab did it
	Err    error         // an action failed in a way that the lesson does not want
	// Rebuilt: the lab applied it by itself, on the way to a later step.
	Rebuilt bool

	Briefing    string // Markdown, like all prose
	Question    string
	Options     []Option
	Given       string // the id of the option that the learner chose
	Answer      string // the id of the option that the server showed to be right
	Explanation string
	Hints       []string // for the wrong states that are seen now, or in general where none is
	Change      []string // what applying it changes: lines that begin with + - or ~

	Attempt      int // the place in the log at which the lab began to apply it last; 0: it has not
	Actions      []Action
	Checks       []Check
	Exchanges    []evidence.Exchange
	Reviewed     int // the place in the log of conversions at which it became the learner's turn
	Conversions  []evidence.Conversion
	Before       *evidence.Observation
	After        *evidence.Observation
	Observations []*evidence.Observation // "before", one after each action, "settled"
	Rewrite      *rewrite.Result
	Verdict      *verdict.Verdict
	Took         time.Duration
}

// Option is one answer to choose from.
type Option struct{ ID, Text string }

// Action is an action and what it asked of the server.
type Action struct {
	ID        string
	Exchanges []int    // indexes into the step's Exchanges
	from, to  int      // the part of the log in which they are
	Counted   bool     // how many reviews it caused is known
	Reviews   int      // that number
	Kubectl   []string // empty where only the lab can do it, such as to switch a fault of the webhook
	Change    []string // what it changes: lines that begin with + - ~ or a space
	Done      bool
}

// Check is a check and how it went.
type Check struct {
	ID    string
	Title string // what it says, rendered over the evidence
	lesson.Outcome
}

// Right says that the learner's prediction came true.
func (s *Step) Right() bool { return s.Given != "" && s.Given == s.Answer }

// Open says whether a step still waits to be done: nobody has done it, or it failed.
func (s *Step) Open() bool {
	return s.Phase == Ready || s.Phase == Applied && s.Result == lesson.Failed
}

// Calls are the reviews of the actions that count them.
func (s *Step) Calls() map[string]int {
	out := map[string]int{}
	for _, a := range s.Actions {
		if a.Counted {
			out[a.ID] = a.Reviews
		}
	}
	return out
}

// find looks up which exchanges of the step are the action's.
func (a *Action) find(xs []evidence.Exchange) {
	a.Exchanges = nil
	for n, x := range xs {
		if x.Seq > a.from && x.Seq <= a.to && x.Actor == evidence.ByStep {
			a.Exchanges = append(a.Exchanges, n)
		}
	}
}
