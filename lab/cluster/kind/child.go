package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	kinds "sigs.k8s.io/kind/pkg/cluster"

	"github.com/crdlab/crdlab/lab/cluster"
)

// ChildCommand is the first argument by which this package starts this program again, as the process that calls kind. The
// program's main must look for it before anything else, and then end with what ChildMain returns:
//
//	if len(os.Args) > 1 && os.Args[1] == kind.ChildCommand {
//		os.Exit(kind.ChildMain(os.Args[2:], os.Stdin, os.Stdout))
//	}
const ChildCommand = "__kind"

// What a child may be told to do.
const (
	doOpen    = "open"    // find a cluster, start the nodes that are stopped, describe it
	doCreate  = "create"  // make a cluster, describe it
	doDelete  = "delete"  // remove its containers
	doAbandon = "abandon" // the same for a half-made one, whose containers may still be coming
	doList    = "list"
	doLook    = "look"  // how the nodes see this machine
	doProbe   = "probe" // connect from every node to an address
)

const (
	// lockFD is the cluster's lock, where the child inherits it.
	lockFD = 3
	// settle is for how long no container must have appeared until a half-made cluster counts as removed: the engine may
	// still be making what a client asked for that has been killed meanwhile.
	settle = time.Second
)

// order is the one line that a child reads.
type order struct {
	Do      string
	Name    string
	Image   string
	Scratch string // a folder for what kind writes and nobody needs; removed at the end
	Locked  bool   // the lock is inherited
	Probe   probe
}

// lasting tells what goes on when the one who ordered it is gone.
func (o order) lasting() bool { return o.Do == doDelete || o.Do == doAbandon }

// message is one line that a child writes: one of its fields.
type message struct {
	Phase *cluster.Phase
	Reply *reply
	Error *failure
}

// failure is an error on its way from the child.
type failure struct {
	Text      string
	NoRuntime bool
}

// reply is a child's last word, unless that is an error.
type reply struct {
	Names   []string
	Cluster *description // nil where there is none
	View    *view
}

// description is what must be known of a cluster to use it.
type description struct {
	Kubeconfig string
	Nodes      []string // the control plane's
	Etcd       etcdAccess
}

// ChildMain does one thing for the process that started this one, and returns the program's exit code: 0 when it was
// done, 2 when not.
func ChildMain(args []string, stdin io.Reader, stdout io.Writer) int {
	signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP) // nobody reads any more when the parent is dead
	var o order
	if err := json.NewDecoder(stdin).Decode(&o); err != nil || len(args) > 0 {
		fmt.Fprintln(os.Stderr, "error:", ChildCommand, "is for crdlab itself, which says on standard input what to do")
		return 2
	}
	syscall.CloseOnExec(lockFD) // for kind's own children
	defer os.RemoveAll(o.Scratch)
	if !o.lasting() {
		go o.endWithParent(stdin)
	}
	tell := json.NewEncoder(stdout)
	said, err := o.obey(func(p cluster.Phase) { _ = tell.Encode(message{Phase: &p}) })
	if err != nil {
		_ = tell.Encode(message{Error: &failure{Text: err.Error(), NoRuntime: errors.Is(err, ErrNoRuntime)}})
		return 2
	}
	_ = tell.Encode(message{Reply: said})
	return 0
}

// endWithParent waits for the parent's end, and then ends this process with all that it runs. Of a cluster that was being
// made nothing is to be left; another process sees to that.
func (o order) endWithParent(stdin io.Reader) {
	_, _ = io.Copy(io.Discard, stdin)
	if o.Do == doCreate {
		o.Do = doAbandon
		var lock *os.File
		if o.Locked {
			lock = os.NewFile(lockFD, lockName)
		}
		_, _ = start(o, lock)
	}
	_ = syscall.Kill(0, syscall.SIGKILL) // this process group, which is its own
}

func (o order) obey(onPhase func(cluster.Phase)) (*reply, error) {
	ctx := context.Background() // the parent kills this process when it has no more patience
	engine, err := findRuntime(ctx)
	if err != nil {
		return nil, err
	}
	provider := kinds.NewProvider(engine.provider, kinds.ProviderWithLogger(newPhases(onPhase)))
	said := &reply{}
	switch o.Do {
	case doList:
		said.Names, err = provider.List()
	case doOpen:
		said.Cluster, err = engine.open(ctx, provider, o.Name, onPhase)
	case doCreate:
		said.Cluster, err = o.create(provider)
	case doDelete:
		said.Names, err = o.removeNodes(provider)
	case doAbandon:
		err = o.removeUntilSettled(provider)
	case doLook:
		said.View, err = look(provider, o.Name)
	case doProbe:
		err = o.Probe.run(ctx, provider, o.Name)
	default:
		err = fmt.Errorf("%q cannot be done", o.Do)
	}
	return said, withOutput(err)
}

// kubeconfig is where kind may write one, and look for one to change. Each process has one of its own: kind locks it, and
// does not get over the lock of one that was killed.
func (o order) kubeconfig() string {
	return filepath.Join(o.Scratch, kubeconfigName+"-"+strconv.Itoa(os.Getpid()))
}

// create leaves nothing if it fails: kind removes the cluster itself, as long as it is at work on it.
func (o order) create(provider *kinds.Provider) (*description, error) {
	if err := provider.Create(o.Name, o.createOptions()...); err != nil {
		return nil, err
	}
	made, err := describe(provider, o.Name)
	if err != nil {
		_, failed := o.removeNodes(provider)
		err = errors.Join(err, failed)
	}
	return made, err
}

// createWait is how long kind waits for the nodes to be ready. It goes on where they are not.
const createWait = 3 * time.Minute

func (o order) createOptions() []kinds.CreateOption {
	options := []kinds.CreateOption{
		kinds.CreateWithKubeconfigPath(o.kubeconfig()), kinds.CreateWithWaitForReady(createWait),
		kinds.CreateWithV1Alpha4Config(&v1alpha4.Cluster{KubeadmConfigPatchesJSON6902: routingPatches}),
	}
	if o.Image != "" {
		options = append(options, kinds.CreateWithNodeImage(o.Image))
	}
	return options
}

// removeNodes returns the name of the cluster if there was one.
func (o order) removeNodes(provider *kinds.Provider) ([]string, error) {
	nodes, err := provider.ListNodes(o.Name)
	if err != nil || len(nodes) == 0 {
		return nil, err
	}
	return []string{o.Name}, provider.Delete(o.Name, o.kubeconfig())
}

func (o order) removeUntilSettled(provider *kinds.Provider) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for last := time.Now(); time.Since(last) < settle; <-tick.C {
		removed, err := o.removeNodes(provider)
		if err != nil {
			return err
		}
		if len(removed) > 0 {
			last = time.Now()
		}
	}
	return nil
}
