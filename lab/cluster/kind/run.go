package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/crdlab/crdlab/lab/cluster"
)

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
		return nil, errors.Join(fmt.Errorf("start the process that calls kind: %w", err), os.RemoveAll(o.Scratch))
	}
	if !o.lasting() {
		defer os.RemoveAll(o.Scratch) // which a child that was killed has not done
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
	c.cmd.WaitDelay = time.Second // for what is said by those that it left
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
func abandon(ctx context.Context, f *folder) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonPatience)
	defer cancel()
	if _, err := run(ctx, order{Do: doAbandon, Name: f.name}, f.lock, nil); err != nil {
		return fmt.Errorf("remove what was made of it: %w; look for it with crdlab cluster list, and remove it with crdlab cluster delete%s",
			err, nameFlag(f.name))
	}
	f.remove()
	return nil
}

// Error is its text.
func (f *failure) Error() string { return f.Text }

// Is makes it the error that it was in the child.
func (f *failure) Is(target error) bool { return f.NoRuntime && target == ErrNoRuntime }
