package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	kinds "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	kindexec "sigs.k8s.io/kind/pkg/exec"

	"github.com/crdlab/crdlab/lab/cluster"
)

// ErrNoRuntime says that no program that runs containers answers.
var ErrNoRuntime = errors.New("no container runtime")

const (
	// runtimeVariable is kind's own way to say which one is meant, where there are several.
	runtimeVariable = "KIND_EXPERIMENTAL_PROVIDER"
	// runtimeTimeout is how long a runtime may take to say that it is there.
	runtimeTimeout = 10 * time.Second
)

// runtime is a program that runs containers.
type runtime struct {
	program  string
	version  string   // how its --version begins; another one may stand in its place, as Podman does in Docker's
	ask      []string // arguments that end well only if its engine answers
	start    string   // how it is started
	provider kinds.ProviderOption
}

// runtimes are those that kind works with, in kind's order.
var runtimes = []runtime{
	{"docker", "Docker version", []string{"version", "--format", "{{.Server.Version}}"},
		"start Docker (systemctl start docker, or Docker Desktop), and see that you may use it", kinds.ProviderWithDocker()},
	{"nerdctl", "nerdctl version", []string{"info"}, "start containerd, and see that you may use it", kinds.ProviderWithNerdctl("nerdctl")},
	{"podman", "podman version", []string{"info"}, "start Podman (podman machine start)", kinds.ProviderWithPodman()},
}

// findRuntime returns the first runtime that answers. ErrNoRuntime says, in one line, why none does and what to do.
func findRuntime(ctx context.Context) (*runtime, error) {
	wanted := os.Getenv(runtimeVariable)
	var silent error
	for _, r := range runtimes {
		if wanted != "" && r.program != wanted || !r.installed(ctx) {
			continue
		}
		err := r.answers(ctx)
		if err == nil {
			return &r, nil
		}
		if silent == nil { // the others are there to be used instead of the first
			silent = fmt.Errorf("%w answers: %s; %s", ErrNoRuntime, err, r.start)
		}
	}
	switch {
	case silent != nil:
		return nil, silent
	case wanted != "":
		return nil, fmt.Errorf("%w: %s=%s is not installed, or is not docker, nerdctl or podman", ErrNoRuntime, runtimeVariable, wanted)
	}
	return nil, fmt.Errorf("%w: kind needs Docker, Podman or nerdctl, and none of them is installed; install one, or use --cluster embedded, which needs none", ErrNoRuntime)
}

func (r *runtime) installed(ctx context.Context) bool {
	version, err := r.output(ctx, "--version")
	return err == nil && strings.HasPrefix(version, r.version)
}

func (r *runtime) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, runtimeTimeout, errors.New("no answer after "+runtimeTimeout.String()))
	defer cancel()
	_, err := r.output(ctx, r.ask...)
	return err
}

// output is what the runtime's program prints. The error is what it says itself, in one line.
func (r *runtime) output(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, r.program, args...).Output()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s %s: %w", r.program, args[0], context.Cause(ctx))
	case errors.As(err, &exit) && len(bytes.TrimSpace(exit.Stderr)) > 0:
		return "", fmt.Errorf("%s %s: %s", r.program, args[0], bytes.Join(bytes.Fields(exit.Stderr), []byte(" ")))
	case err != nil:
		return "", fmt.Errorf("%s %s: %w", r.program, args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// open describes a cluster, nil where there is none. Nodes that are stopped are started.
func (r *runtime) open(ctx context.Context, provider *kinds.Provider, name string, onPhase func(cluster.Phase)) (*description, error) {
	all, err := provider.ListNodes(name)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	var stopped []string
	for _, n := range all {
		running, err := r.output(ctx, "inspect", "--format", "{{.State.Running}}", n.String())
		if err != nil {
			return nil, err
		}
		if running != "true" {
			stopped = append(stopped, n.String())
		}
	}
	if len(stopped) > 0 {
		begun := time.Now()
		phase := cluster.Phase{Name: "Starting the stopped nodes"}
		onPhase(phase)
		if _, err := r.output(ctx, append([]string{"start"}, stopped...)...); err != nil {
			return nil, err
		}
		phase.Done, phase.Took = true, time.Since(begun)
		onPhase(phase)
	}
	found, err := describe(provider, name)
	if err != nil {
		return nil, fmt.Errorf("%w; was its creation broken off? Remove it: crdlab cluster delete%s", withOutput(err), nameFlag(name))
	}
	return found, nil
}

// describe reads from the nodes what must be known to use the cluster.
func describe(provider *kinds.Provider, name string) (*description, error) {
	control, err := controlPlane(provider, name)
	if err != nil {
		return nil, err
	}
	d := &description{}
	for _, n := range control {
		d.Nodes = append(d.Nodes, n.String())
	}
	if d.Kubeconfig, err = provider.KubeConfig(name, false); err != nil {
		return nil, fmt.Errorf("read its kubeconfig from a node: %w", err)
	}
	d.Etcd, err = readEtcdAccess(control[0])
	if err != nil { // the cluster can be used without
		d.Etcd = etcdAccess{Missing: withOutput(err).Error()}
	}
	return d, nil
}

func controlPlane(provider *kinds.Provider, name string) ([]nodes.Node, error) {
	all, err := provider.ListNodes(name)
	if err != nil {
		return nil, err
	}
	control, err := nodeutils.ControlPlaneNodes(all)
	if err == nil && len(control) == 0 {
		err = errors.New("it has no control plane")
	}
	return control, err
}

// read is a file in a node.
func read(n nodes.Node, path string) (string, error) {
	var out bytes.Buffer
	err := n.Command("cat", path).SetStdout(&out).Run()
	return out.String(), err
}

// withOutput adds to an error of kind's what the program that failed has printed, as far as it is about the error: kind
// says but how it was called.
func withOutput(err error) error {
	var failed *kindexec.RunError
	if !errors.As(err, &failed) {
		return err
	}
	if line := errorLine(string(failed.Output)); line != "" && !strings.Contains(err.Error(), line) {
		return fmt.Errorf("%w: %s", err, line)
	}
	return err
}

// errorLine is the line of a program's output that says what was wrong: the first that speaks of an error, or the last.
func errorLine(output string) string {
	last := ""
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if strings.Contains(strings.ToLower(line), "error") {
			return line
		}
		last = line
	}
	return last
}
