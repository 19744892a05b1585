package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/crdlab/crdlab/lab/cluster/embedded/quiet"
)

// ChildCommand is the first argument by which Spawn starts this program again, as the process that runs the API server.
// The program's main must look for it before anything else, and then end with what ChildMain returns:
//
//	if len(os.Args) > 1 && os.Args[1] == embedded.ChildCommand {
//		os.Exit(embedded.ChildMain(os.Args[2:], os.Stdin, os.Stdout))
//	}
const ChildCommand = quiet.ChildCommand

// What the child inherits beside its standard files.
const (
	listenerFD = 3 + iota
	folderLockFD
	sessionLockFD
)

// childGrace is how long the child takes to end by itself; then it removes what it can and is gone.
const childGrace = 3 * time.Second

// GCPercent is how much the heap of the child may grow between two collections, where GOGC does not say otherwise. An API
// server makes a lot of garbage and keeps little: with 400, bulk work is half as fast again, for some 30 MiB when idle.
const GCPercent = 400

// memoryLimit is where collections become frequent all the same, in bytes.
const memoryLimit = 1 << 30

// childConfig is the first line that the child reads. It is no argument and no variable, which others could see.
type childConfig struct {
	Folder      string       `json:"folder"`
	Session     string       `json:"session"`
	Token       string       `json:"token"`
	Certificate *Certificate `json:"certificate"`
	Written     []string     `json:"written,omitempty"` // kubeconfigs elsewhere
}

// childOrder is any line after it.
type childOrder struct {
	Written string `json:"written"` // one kubeconfig more
}

// childMessage is one line that the child writes: one of its fields.
type childMessage struct {
	Phase *Phase      `json:"phase,omitempty"`
	Ready *childReady `json:"ready,omitempty"`
	Error string      `json:"error,omitempty"`
}

// childReady says that CRDs are accepted.
type childReady struct {
	Version string `json:"version"`
	Storage string `json:"storage"` // etcd's endpoint
}

// ChildMain runs the API server for the process that started this one by Spawn, until stdin ends, and returns the
// program's exit code: 0 when it was ended, 2 when it failed. Its standard error belongs to a log file.
func ChildMain(args []string, stdin io.Reader, stdout io.Writer) int {
	// Nobody reads any more when the parent is dead. That is no reason to die before everything is removed.
	signal.Ignore(syscall.SIGPIPE, syscall.SIGHUP)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(GCPercent)
		debug.SetMemoryLimit(memoryLimit)
	}
	tell := json.NewEncoder(stdout)
	if err := runChild(args, stdin, func(m childMessage) { _ = tell.Encode(m) }); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		_ = tell.Encode(childMessage{Error: err.Error()})
		return 2
	}
	return 0
}

func runChild(args []string, stdin io.Reader, tell func(childMessage)) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments; it is for crdlab itself", ChildCommand)
	}
	lines := json.NewDecoder(stdin)
	var c childConfig
	if err := lines.Decode(&c); err != nil || c.Folder == "" {
		return errors.New(ChildCommand + " is for crdlab itself, which says on standard input what to run")
	}
	listener, err := net.FileListener(os.NewFile(listenerFD, "listener"))
	if err != nil {
		return fmt.Errorf("take over the listening socket: %w", err)
	}
	folder := inherit(c.Folder, os.NewFile(folderLockFD, "folder lock"))
	session := inherit(c.Session, os.NewFile(sessionLockFD, "session lock"))
	ctx, cancel := context.WithCancelCause(context.Background())
	kubeconfigs := &access{token: c.Token, written: c.Written} // it alone can remove them if the parent is killed
	go func() {
		for o := (childOrder{}); lines.Decode(&o) == nil; o = (childOrder{}) {
			kubeconfigs.remember(o.Written)
		}
		kubeconfigs.removeWritten()
		cancel(errParentEnded)
		time.AfterFunc(childGrace, func() { removeAndExit(folder, session) })
	}()

	s, err := start(ctx, Options{
		Listener: listener, Token: c.Token, Certificate: c.Certificate, Log: os.Stderr,
		OnPhase: func(p Phase) { tell(childMessage{Phase: &p}) },
	}, folder, nil)
	if errors.Is(context.Cause(ctx), errParentEnded) {
		return errors.Join(s.closeIfStarted(), session.remove())
	}
	if err != nil {
		return err
	}
	tell(childMessage{Ready: &childReady{Version: s.version, Storage: s.storage}})
	if err := s.serve(ctx); err != nil {
		return err
	}
	return errors.Join(s.closeIfStarted(), session.remove())
}

var errParentEnded = errors.New("the process that started the API server has ended")

// removeAndExit is for a server that hangs while nobody is there any more to kill it.
func removeAndExit(folder, session *folder) {
	_, _ = folder.remove(), session.remove()
	os.Exit(1)
}

func (s *Server) closeIfStarted() error {
	if s == nil {
		return nil
	}
	return s.Close(context.Background())
}

// serve waits until the context ends, which is no error, or etcd or the API server does.
func (s *Server) serve(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.etcd.Err():
		return fmt.Errorf("etcd failed: %w", err)
	case <-s.etcd.Server.StopNotify():
		return errors.New("etcd stopped")
	case err := <-s.api.done:
		return fmt.Errorf("the API server ended: %w", err)
	}
}
