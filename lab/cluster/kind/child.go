package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

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
		if err = provider.Create(o.Name, o.createOptions()...); err == nil {
			said.Cluster, err = describe(provider, o.Name)
		}
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

// createWait is how long kind waits for the nodes to be ready. It goes on where they are not.
const createWait = 3 * time.Minute

func (o order) createOptions() []kinds.CreateOption {
	options := []kinds.CreateOption{
		kinds.CreateWithKubeconfigPath(o.kubeconfig()), kinds.CreateWithWaitForReady(createWait),
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

// errDied says that a child ended without a last word.
var errDied = errors.New("the process that calls kind has ended")

// child is a running child process. Its messages end when it does.
type child struct {
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	messages chan message
	complaint
}

// complaint keeps the beginning of what a child writes to its standard error: how a crash begins.
type complaint struct{ text []byte }

const maxComplaint = 4 << 10

// Write takes all, and keeps what there is room for.
func (c *complaint) Write(p []byte) (int, error) {
	c.text = append(c.text, p[:min(len(p), maxComplaint-len(c.text))]...)
	return len(p), nil
}

// run has a child do something. If the context ends before, the child is killed with all that it runs, unless what it does
// has to be done in any case. Phases are reported from the calling goroutine.
func run(ctx context.Context, o order, lock *os.File, onPhase func(cluster.Phase)) (*reply, error) {
	var err error
	if o.Scratch, err = os.MkdirTemp("", "crdlab-kind-"); err != nil {
		return nil, fmt.Errorf("make a folder for kind: %w", err)
	}
	c, err := start(o, lock)
	if err != nil {
		os.RemoveAll(o.Scratch)
		return nil, fmt.Errorf("start the process that calls kind: %w", err)
	}
	for {
		select {
		case m, more := <-c.messages:
			switch {
			case !more:
				return nil, fmt.Errorf("%w: %s: %s", errDied, c.cmd.ProcessState, c.text)
			case m.Phase != nil && onPhase != nil:
				onPhase(*m.Phase)
			case m.Error != nil:
				c.wait()
				return nil, m.Error
			case m.Reply != nil:
				c.wait()
				return m.Reply, nil
			}
		case <-ctx.Done():
			if o.lasting() {
				go c.wait() // it has a time of its own
				return nil, context.Cause(ctx)
			}
			_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) // not collected yet, so the number is still its own
			c.wait()
			os.RemoveAll(o.Scratch)
			return nil, context.Cause(ctx)
		}
	}
}

// start starts a child in a process group of its own, which no Ctrl-C reaches.
func start(o order, lock *os.File) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(program, ChildCommand), messages: make(chan message)}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.cmd.Stderr = &c.complaint
	if o.Locked = lock != nil; o.Locked {
		c.cmd.ExtraFiles = []*os.File{lock}
	}
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go c.read(stdout)
	// A child that dies before it has read this is noticed by its end.
	_ = json.NewEncoder(c.stdin).Encode(o)
	return c, nil
}

// read delivers what the child says until it has ended, and collects its exit.
func (c *child) read(stdout io.Reader) {
	for lines := json.NewDecoder(stdout); ; {
		var m message
		if lines.Decode(&m) != nil {
			break
		}
		c.messages <- m
	}
	_ = c.cmd.Wait() // how it ended is in its ProcessState
	close(c.messages)
}

// wait returns when the child has ended.
func (c *child) wait() {
	for range c.messages {
	}
	c.stdin.Close()
}

// abandonPatience is how long it is waited until a half-made cluster is gone.
const abandonPatience = 4 * time.Second

// abandon removes what was made of a cluster, also where the context has ended. The process that does it goes on if it
// takes longer than a person waits.
func abandon(ctx context.Context, name string, lock *os.File) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonPatience)
	defer cancel()
	if _, err := run(ctx, order{Do: doAbandon, Name: name}, lock, nil); err != nil {
		return fmt.Errorf("remove what was made of it: %w; look for it with crdlab cluster list, and remove it with crdlab cluster delete%s",
			err, nameFlag(name))
	}
	return nil
}

// Error is its text.
func (f *failure) Error() string { return f.Text }

// Is makes it the error that it was in the child.
func (f *failure) Is(target error) bool { return f.NoRuntime && target == ErrNoRuntime }
