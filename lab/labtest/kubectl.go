package labtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	kubectl "k8s.io/kubectl/pkg/cmd"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/lesson"
)

// Main is for TestMain: it makes the test's binary a real kubectl where it is called by that name. So the learner's commands
// are tested by running them, on a machine that has nothing but Go.
func Main(m *testing.M) {
	if filepath.Base(os.Args[0]) == "kubectl" {
		os.Stderr = os.NewFile(2, "stderr") // the embedded server's package keeps it quiet
		if err := kubectl.NewDefaultKubectlCommand().Execute(); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// shell returns a function that runs a command as a learner's shell would, with a kubectl and the session's kubeconfig.
func shell(t *testing.T, s *lab.Session) func(command string) (output string, err error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "KUBECONFIG="+s.State().Kubeconfig, "HOME="+t.TempDir(), "PATH="+bin+":"+os.Getenv("PATH"))
	return func(command string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
}

// applied waits until the current step is applied, by whomever.
func applied(ctx context.Context, t *testing.T, s *lab.Session) *lab.Step {
	t.Helper()
	for {
		changed := s.Changed()
		state := s.State()
		step := state.Steps[state.Current]
		if step.Phase == lab.Applied {
			return step
		}
		select {
		case <-changed:
		case <-ctx.Done():
			for _, c := range step.Lesson.Checks {
				t.Logf("%s: %+v", c.ID, c.Evaluate(Seen(state, step, state.Live)))
			}
			t.Fatalf("the step %s did not complete: %v", step.ID, step.Hints)
		}
	}
}

// ByHand pastes every command that the lab shows into a shell, and lets no action of its own run: the track
// must pass, each step completing by itself. The steps that only read are applied: there is nothing to be done by hand. It
// returns the answers to the questions, by step.
func ByHand(t *testing.T, track *lesson.Track, reads ...string) map[string]string {
	t.Helper()
	s := Start(t, track)
	run, answers := shell(t, s), map[string]string{}
	for {
		state := s.State()
		step := state.Steps[state.Current]
		if slices.Contains(reads, step.ID) {
			if err := s.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
		} else {
			paste(t, run, step)
		}
		ctx, cancel := context.WithTimeout(t.Context(), lesson.Timeout)
		step = applied(ctx, t, s)
		cancel()
		if step.Result != lesson.Passed && !missed(step) {
			t.Fatalf("%s by hand: %s, %v, %+v", step.ID, step.Result, step.Err, step.Checks)
		}
		if step.ByHand == slices.Contains(reads, step.ID) {
			t.Errorf("%s: by hand: %v", step.ID, step.ByHand)
		}
		t.Logf("%s: %s\n%s", step.ID, step.Answer, step.Explanation)
		answers[step.ID] = step.Answer
		if !s.Next() {
			return answers
		}
	}
}

// missed says whether a step only lacks what chance did not show in the tries that it tells: a shell is slow.
func missed(step *lab.Step) bool {
	return step.Result == lesson.Skipped && !slices.ContainsFunc(step.Checks, func(c lab.Check) bool {
		return c.Result == lesson.Failed || c.Result == lesson.Skipped && !strings.Contains(c.Reason, "tried: ")
	})
}

// paste runs the commands of a step; a command fails just where the lesson wants a refusal.
func paste(t *testing.T, run func(string) (string, error), step *lab.Step) {
	t.Helper()
	for i, action := range step.Actions {
		if len(action.Kubectl) == 0 {
			t.Errorf("%s/%s: there is no kubectl command for it", step.ID, action.ID)
		}
		refused, expect := false, step.Lesson.Actions[i].Expect
		for _, command := range action.Kubectl {
			out, err := run(command)
			t.Logf("$ %s\n%s", command, out)
			refused = refused || err != nil
			if err != nil && !expect.Refused && !expect.Any {
				t.Errorf("%s/%s: %v", step.ID, action.ID, err)
			}
		}
		if refused != expect.Refused && !expect.Any {
			t.Errorf("%s/%s: refused: %v, wanted: %v", step.ID, action.ID, refused, expect.Refused)
		}
	}
}
