package embedded

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/crdlab/crdlab/lab/cluster"
)

const (
	// logName is the child's log in the session's folder; failureLogName the copy that stays, beside the folder.
	logName        = "server.log"
	failureLogName = "last-failure.log"
	// closeGrace is how long the child has to end by itself before it is killed.
	closeGrace = 3 * time.Second
	// logTail is how much of a log's end is searched for the reason of an end, in bytes.
	logTail = 256 << 10
)

// SpawnOptions say how a child process is to run the server. The zero value is good.
type SpawnOptions struct {
	// Port on the loopback; 0 is a free one.
	Port int
	// Token, Certificate, Dir and StateDir are as in Options.
	Token       string
	Certificate *Certificate
	Dir         string
	StateDir    string
	// WayOn is what Err tells people to do when the server has ended by itself; if empty, that a reset starts a fresh one.
	WayOn string
	// OnPhase is told how the start goes on, also that of a Reset, from the goroutine that calls Spawn or Reset.
	OnPhase func(Phase)
}

// Process is an API server in a child process of this program. The child has a process group of its own, so that a Ctrl-C
// in the terminal does not reach it, and ends with this process in whatever way that ends.
type Process struct {
	access
	options  SpawnOptions
	folder   *folder // data and sockets
	session  *folder // kubeconfig and log
	listener *net.TCPListener

	running sync.Mutex // serialises Reset and Close
	child   *child
	watch   sync.WaitGroup // for the ends of children to be noticed
	closed  bool

	state   sync.Mutex // guards what follows
	current *child     // the one that must not end by itself
	ended   chan struct{}
	err     error
	refuse  func() // ends the refusing of connections; nil while a child accepts them
}

var (
	_ cluster.Cluster        = &Process{}
	_ cluster.RequestWatcher = &Process{}
	_ cluster.Watchdog       = &Process{}
)

// Spawn starts this program again as a child process that runs the API server, and returns when that accepts CRDs. The
// program's main must call ChildMain. If the context ends before, the child is gone and nothing is left.
func Spawn(ctx context.Context, o SpawnOptions) (*Process, error) {
	p := &Process{options: o, ended: make(chan struct{})}
	p.begin()
	if err := p.spawn(ctx); err != nil {
		return nil, errors.Join(err, p.Close(context.WithoutCancel(ctx)))
	}
	return p, nil
}

func (p *Process) spawn(ctx context.Context) (err error) {
	o := &p.options
	if p.folder, err = socketFolder(o.Dir); err != nil {
		return err
	}
	if p.session, err = sessionFolder(o.StateDir); err != nil {
		return err
	}
	listener, err := Listen(o.Port)
	if err != nil {
		return err
	}
	p.listener = listener.(*net.TCPListener)
	if o.Token == "" {
		o.Token = newToken()
	}
	if o.Certificate == nil {
		if o.Certificate, err = NewCertificate(); err != nil {
			return err
		}
	}
	p.endpoint, p.token, p.ca = "https://"+listener.Addr().String(), o.Token, o.Certificate.CertPEM
	p.kubeconfig = filepath.Join(p.session.path, kubeconfigName)
	ready, err := p.startChild(ctx)
	if err != nil {
		return err
	}
	p.version, p.storage = ready.Version, ready.Storage
	return p.writeKubeconfig(p.kubeconfig)
}

// Reset kills the child and starts another one behind the same port, token and certificate. Who connects meanwhile
// waits. Everything goes, also what lies outside the scope. It is also the way on after the server has ended by itself.
func (p *Process) Reset(ctx context.Context, _ cluster.Scope) error {
	p.running.Lock()
	defer p.running.Unlock()
	if p.closed {
		return errors.New("reset the embedded API server: it was closed")
	}
	p.expect(nil)
	p.closeReaders()
	p.child.kill()
	p.revive()
	err := p.folder.empty()
	if err == nil {
		_, err = p.startChild(ctx)
	}
	if err == nil {
		err = p.announceAll(ctx)
	}
	if err != nil {
		err = fmt.Errorf("reset the embedded API server: %w", err)
		p.expect(nil)
		p.child.kill()
		p.fail(nil, err)
	}
	return err
}

// WriteKubeconfig writes the kubeconfig to a path of the caller's choice, mode 0600, all at once. It overwrites what
// crdlab wrote there before, and an empty file, and refuses to touch anything else. Close removes the file again; so does
// the child, if this process is killed.
func (p *Process) WriteKubeconfig(path string) error {
	p.running.Lock()
	defer p.running.Unlock()
	if err := p.access.WriteKubeconfig(path); err != nil {
		return err
	}
	if path, err := filepath.Abs(path); err == nil {
		_ = json.NewEncoder(p.child.stdin).Encode(childOrder{Written: path}) // a child that is dead removes nothing
	}
	return nil
}

// Close ends the child and leaves nothing behind but, where the server had failed, its log. It may be called twice. A
// child that does not end within 3 s, or until the context ends, is killed.
func (p *Process) Close(ctx context.Context) error {
	p.running.Lock()
	defer p.running.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	p.expect(nil)
	p.release() // the child's etcd waits for watches
	p.child.end(ctx)
	p.watch.Wait()
	p.acceptAgain()
	if p.listener != nil {
		p.listener.Close()
	}
	p.removeWritten()
	return errors.Join(p.session.remove(), p.folder.remove())
}

// Ended is closed when the API server's process has ended without having been asked to. A Reset that starts another one
// makes another channel.
func (p *Process) Ended() <-chan struct{} {
	p.state.Lock()
	defer p.state.Unlock()
	return p.ended
}

// Err says why the process ended, where its log is and what to do; nil while it runs.
func (p *Process) Err() error {
	p.state.Lock()
	defer p.state.Unlock()
	return p.err
}

// expect says which child must not end by itself.
func (p *Process) expect(c *child) {
	p.state.Lock()
	defer p.state.Unlock()
	p.current = c
}

// expected says whether a child is the one that must not end by itself.
func (p *Process) expected(c *child) bool {
	p.state.Lock()
	defer p.state.Unlock()
	return p.current == c
}

// fail notes that the server is gone, if its child is the one that should be there. Whoever connects is turned away
// instead of waiting for ever.
func (p *Process) fail(c *child, err error) {
	p.state.Lock()
	defer p.state.Unlock()
	if p.current != c || p.err != nil {
		return
	}
	p.err = err
	p.mu.Lock()
	p.endLife()
	p.mu.Unlock()
	p.refuse = turnAway(p.listener)
	_ = p.folder.remove() // what cannot be removed now is tried again in Close
	close(p.ended)
}

// revive undoes fail, where it happened.
func (p *Process) revive() {
	p.acceptAgain()
	p.state.Lock()
	defer p.state.Unlock()
	if p.err != nil {
		p.err, p.ended = nil, make(chan struct{})
		p.begin()
	}
}

// acceptAgain leaves connections to the next child.
func (p *Process) acceptAgain() {
	p.state.Lock()
	defer p.state.Unlock()
	if p.refuse != nil {
		p.refuse()
		p.refuse = nil
	}
}

// turnAway closes every connection that comes, until stop is called.
func turnAway(l *net.TCPListener) (stop func()) {
	// The socket is shared with the child and with files that were made to pass it on; each may have made it blocking.
	if raw, err := l.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = syscall.SetNonblock(int(fd), true) })
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err == nil {
				conn.Close()
			} else if !temporary(err) || errors.Is(err, os.ErrDeadlineExceeded) {
				return
			}
		}
	}()
	return func() {
		_ = l.SetDeadline(time.Now())
		<-done
		_ = l.SetDeadline(time.Time{})
	}
}

// child is one child process.
type child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	exited chan struct{}
}

// startChild starts a child and waits until it is ready.
func (p *Process) startChild(ctx context.Context) (*childReady, error) {
	c, messages, err := p.execChild()
	if err != nil {
		return nil, fmt.Errorf("start the API server's process: %w", err)
	}
	p.child = c
	ready, err := p.awaitReady(ctx, messages)
	if err != nil {
		go drain(messages)
		c.kill()
		return nil, fmt.Errorf("start the API server: %w", err)
	}
	p.expect(c)
	p.watch.Go(func() {
		drain(messages) // what it says before it ends is in its log as well
		<-c.exited
		if p.expected(c) {
			p.fail(c, p.explain(c))
		}
	})
	return ready, nil
}

// execChild starts the process. Its messages end when it does.
func (p *Process) execChild() (*child, <-chan childMessage, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	log, err := os.OpenFile(filepath.Join(p.session.path, logName), os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	socket, err := p.listener.File()
	if err != nil {
		return nil, nil, err
	}
	defer socket.Close()

	cmd := exec.Command(program, ChildCommand)
	cmd.Stderr = log
	cmd.ExtraFiles = []*os.File{socket, p.folder.lock, p.session.lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	c := &child{cmd: cmd, stdin: stdin, exited: make(chan struct{})}
	messages := make(chan childMessage)
	go c.read(stdout, messages)
	// A child that dies before it has read this is noticed by its exit.
	_ = json.NewEncoder(stdin).Encode(childConfig{
		Folder: p.folder.path, Session: p.session.path, Token: p.token, Certificate: p.options.Certificate,
		Written: p.written,
	})
	return c, messages, nil
}

// read delivers what the child says until it has ended, and collects its exit.
func (c *child) read(stdout io.Reader, messages chan<- childMessage) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var m childMessage
		if json.Unmarshal(lines.Bytes(), &m) == nil {
			messages <- m
		}
	}
	_ = c.cmd.Wait() // how it ended is in its ProcessState
	close(c.exited)
	close(messages)
}

// awaitReady follows the child's start.
func (p *Process) awaitReady(ctx context.Context, messages <-chan childMessage) (*childReady, error) {
	for {
		select {
		case m, more := <-messages:
			switch {
			case !more:
				return nil, p.explain(p.child)
			case m.Error != "":
				return nil, errors.New(m.Error)
			case m.Ready != nil:
				return m.Ready, nil
			case m.Phase != nil && p.options.OnPhase != nil:
				p.options.OnPhase(*m.Phase)
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func drain(messages <-chan childMessage) {
	for range messages {
	}
}

// kill ends the child at once, and is done when it is gone.
func (c *child) kill() {
	if c == nil {
		return
	}
	select {
	case <-c.exited:
		return // its number may be another's by now
	default:
	}
	c.stdin.Close()
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) // gone already: good
	<-c.exited
}

// end lets the child end by itself, for a while.
func (c *child) end(ctx context.Context) {
	if c == nil {
		return
	}
	c.stdin.Close()
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-c.exited:
		return
	case <-timer.C:
	case <-ctx.Done():
	}
	c.kill()
}

// explain says why a child has ended, from its exit and its log, of which it keeps a copy for the reader.
func (p *Process) explain(c *child) error {
	exit := c.cmd.ProcessState.String()
	log := filepath.Join(p.session.path, logName)
	tail := readTail(log, logTail)
	if kept := filepath.Join(filepath.Dir(p.session.path), failureLogName); len(tail) > 0 {
		if err := os.WriteFile(kept, tail, 0o600); err == nil {
			log = kept
		}
	}
	text := "the API server's process has ended: " + exit
	if line := lastWords(tail); line != "" {
		text += ": " + line
	}
	if len(tail) > 0 {
		text += " (its log: " + log + ")"
	}
	return errors.New(text + "; " + cmp.Or(p.options.WayOn, "a reset starts a fresh one"))
}

func readTail(path string, n int64) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > n {
		_, _ = f.Seek(-n, io.SeekEnd)
	}
	tail, _ := io.ReadAll(f)
	return tail
}

// lastWords finds the line of a log that says why a process ended: the one that begins a crash, which a stack follows, or
// what the process said itself. Nothing else in a log is a reason.
func lastWords(log []byte) string {
	for line := range strings.Lines(string(log)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") || strings.HasPrefix(line, "error:") ||
			strings.Contains(line, "\tfatal\t") || strings.Contains(line, "\tpanic\t") {
			return line
		}
	}
	return ""
}
