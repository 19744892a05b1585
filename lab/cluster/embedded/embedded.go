// Package embedded is a live API server that needs nothing but this program: etcd and the CRD server of Kubernetes
// (k8s.io/apiextensions-apiserver) on the loopback, with the keys, the watch cache, the discovery and the namespaces of a
// full cluster, as far as custom resources are concerned.
//
// Start runs it in this process, which suits tests; many may run at once. Spawn runs it in a child process, which suits
// the program: etcd ends its process when the disk fails, and that must not be the terminal's. Attach joins one that
// another process runs, through its kubeconfig. All three are a cluster.Cluster and a cluster.RequestWatcher.
//
// It is not for keeping data: everything is gone with the process, and writes are not even flushed to the disk. It is no
// full cluster either: Info says what it lacks.
//
// Importing it takes the logs of the Kubernetes and etcd libraries off standard error, and os.Stderr with them; what a
// program has to say itself goes to quiet.Stderr.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/apiserver/pkg/util/compatibility"

	"github.com/crdlab/crdlab/lab/cluster"
)

// Options say how a server is to run. The zero value is good: a free port, a fresh token and certificate, folders in
// their usual places, no log.
type Options struct {
	// Port on the loopback; 0 is a free one.
	Port int
	// Listener is used instead of Port, if it is given. The server closes it.
	Listener net.Listener
	// Token is what clients show; fresh if empty.
	Token string
	// Certificate is what the server shows; fresh if nil. Kept together with Port and Token, clients do not notice that
	// another server has taken the place of the one they knew.
	Certificate *Certificate
	// Dir is where the private folder for data and sockets is made; os.TempDir if empty, /tmp where that makes the path of
	// a socket too long.
	Dir string
	// StateDir is where the session's folder for the kubeconfig is made; if empty, crdlab in XDG_STATE_HOME or
	// ~/.local/state.
	StateDir string
	// Log receives warnings and errors of etcd and of the Kubernetes libraries; nil discards them. The latter have one
	// logger a process, so that every server's Log gets the lines of all.
	Log io.Writer
	// OnPhase is told how the start goes on, from the calling goroutine.
	OnPhase func(Phase)
}

// The phases of a start, in their order.
const (
	PhaseEtcd      = "etcd"
	PhaseAPIServer = "API server"
	PhaseCRDs      = "CRDs accepted"
)

// Phase is one part of a start.
type Phase = cluster.Phase

// Server is an API server in this process.
type Server struct {
	access
	options  Options
	folder   *folder // data and sockets
	session  *folder // kubeconfig; nil in a child process, whose parent has it
	gate     *gate
	services *services
	recorder *recorder
	quiet    func() // ends the logging

	running sync.Mutex // serialises Reset and Close
	etcd    *embed.Etcd
	api     *apiServer
	closed  bool
}

var (
	_ cluster.Cluster        = &Server{}
	_ cluster.RequestWatcher = &Server{}
)

// Start runs an API server in this process and returns when it accepts CRDs. Its errors say what was tried, and what to
// do where that is known: choose another port, another folder.
func Start(ctx context.Context, o Options) (*Server, error) {
	folder, err := socketFolder(o.Dir)
	if err != nil {
		return nil, err
	}
	session, err := sessionFolder(o.StateDir)
	if err != nil {
		return nil, errors.Join(err, folder.remove())
	}
	return start(ctx, o, folder, session)
}

// start runs a server in folders that exist. It removes them if it fails.
func start(ctx context.Context, o Options, folder, session *folder) (s *Server, err error) {
	s = &Server{
		options: o, folder: folder, session: session,
		services: &services{addresses: map[string]string{}}, recorder: newRecorder(), quiet: logs.add(o.Log),
	}
	s.begin()
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close(context.WithoutCancel(ctx)))
			s = nil
		}
	}()
	if err := s.identify(); err != nil {
		return s, err
	}
	if err := s.boot(ctx); err != nil {
		return s, err
	}
	if session == nil {
		return s, nil
	}
	s.kubeconfig = filepath.Join(session.path, kubeconfigName)
	return s, s.writeKubeconfig(s.kubeconfig)
}

// identify settles by what clients know the server: address, token, certificate. It keeps them for life.
func (s *Server) identify() error {
	o := &s.options
	if o.Listener == nil {
		l, err := Listen(o.Port)
		if err != nil {
			return err
		}
		o.Listener = l
	}
	s.gate = newGate(o.Listener)
	if o.Token == "" {
		o.Token = newToken()
	}
	if o.Certificate == nil {
		c, err := NewCertificate()
		if err != nil {
			return err
		}
		o.Certificate = c
	}
	s.endpoint = "https://" + o.Listener.Addr().String()
	s.token, s.ca = o.Token, o.Certificate.CertPEM
	s.storage = "unix://" + filepath.Join(s.folder.path, socketName)
	s.version = strings.TrimPrefix(libraryVersion(compatibility.DefaultBuildEffectiveVersion()), "v")
	return nil
}

// Listen opens a port on the loopback, 0 for a free one, and says what to do where that fails.
func Listen(port int) (net.Listener, error) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	l, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: %w; another program has the port: choose another one, or 0 for a free one", address, err)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("listen on %s: %w; choose a port from 1024 on, or 0 for a free one", address, err)
	}
	return nil, fmt.Errorf("listen on %s: %w; choose a port from 1024 to 65535, or 0 for a free one", address, err)
}

// boot starts etcd and the API server, whose data is empty.
func (s *Server) boot(ctx context.Context) error {
	done := s.phase(PhaseEtcd)
	etcd, err := startEtcd(ctx, s.folder.path, s.options.Log)
	if err != nil {
		return err
	}
	s.etcd = etcd
	done()

	done = s.phase(PhaseAPIServer)
	api, loopback, err := startAPI(ctx, apiConfig{
		door: s.gate.door(), etcd: s.storage, token: s.token, certificate: s.options.Certificate,
		services: s.services, recorder: s.recorder,
	})
	if err != nil {
		return err
	}
	s.api = api
	if err := api.awaitListening(ctx, loopback); err != nil {
		return err
	}
	done()

	done = s.phase(PhaseCRDs)
	if err := api.awaitReady(ctx, loopback); err != nil {
		return err
	}
	api.letIn()
	done()
	return nil
}

// phase reports that a phase begins; the function that it returns, that it has ended.
func (s *Server) phase(name string) (done func()) {
	if s.options.OnPhase == nil {
		return func() {}
	}
	began := time.Now()
	s.options.OnPhase(Phase{Name: name})
	return func() { s.options.OnPhase(Phase{Name: name, Done: true, Took: time.Since(began)}) }
}

// Reset replaces the server by a fresh one behind the same port, token and certificate. Who connects meanwhile waits.
// Everything goes, also what lies outside the scope.
func (s *Server) Reset(ctx context.Context, _ cluster.Scope) error {
	s.running.Lock()
	defer s.running.Unlock()
	if s.closed {
		return errors.New("reset the embedded API server: it was closed")
	}
	err := s.halt()
	if err == nil {
		err = os.RemoveAll(filepath.Join(s.folder.path, "etcd"))
	}
	if err == nil {
		err = s.boot(ctx)
	}
	if err != nil {
		return fmt.Errorf("reset the embedded API server: %w", err)
	}
	return nil
}

// halt ends the API server, then etcd, each if it runs.
func (s *Server) halt() (err error) {
	s.closeReaders() // etcd would wait for their watches
	if s.api != nil {
		err = s.api.end()
		s.api = nil
	}
	if s.etcd != nil {
		s.etcd.Close()
		s.etcd = nil
	}
	return err
}

// Close ends the server and leaves nothing behind. It may be called twice.
func (s *Server) Close(context.Context) error {
	s.running.Lock()
	defer s.running.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.gate != nil {
		s.gate.close()
	} else if s.options.Listener != nil {
		s.options.Listener.Close()
	}
	s.release()
	err := s.halt()
	s.quiet()
	s.removeWritten()
	return errors.Join(err, s.session.remove(), s.folder.remove())
}
