package embedded

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// spawn starts a server in a child that the test's end closes.
func spawn(t testing.TB, change ...func(*SpawnOptions)) *Process {
	t.Helper()
	o := SpawnOptions{Dir: shortDir(t), StateDir: t.TempDir()}
	for _, c := range change {
		c(&o)
	}
	p, err := Spawn(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error("close:", err)
		}
	})
	return p
}

// left are the things in folders that should be empty, but for the log that is kept of a failure.
func left(dirs ...string) (paths []string) {
	for _, dir := range dirs {
		found, _ := filepath.Glob(filepath.Join(dir, "*"))
		paths = append(paths, found...)
	}
	return slices.DeleteFunc(paths, func(p string) bool { return filepath.Base(p) == failureLogName })
}

func TestAChildServesAndLeavesNothingBehind(t *testing.T) {
	var phases []string
	p := spawn(t, func(o *SpawnOptions) {
		o.OnPhase = func(p Phase) {
			if p.Done && p.Took > 0 {
				phases = append(phases, p.Name)
			}
		}
	})
	if want := []string{PhaseEtcd, PhaseAPIServer, PhaseCRDs}; !slices.Equal(phases, want) {
		t.Errorf("phases %q, want %q", phases, want)
	}
	createCRD(t, p.Config(), widgetCRD("v1"))
	createWidget(t, p.Config(), "v1", "one")
	values, err := p.Storage()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := values.Get(t.Context(), widgets, Namespace, "one"); err != nil {
		t.Error(err)
	}
	pid := p.child.cmd.Process.Pid
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("the child %d is in group %d (%v); a Ctrl-C would reach it", pid, group, err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if alive(pid) {
		t.Error("the child is alive")
	}
	if paths := left(p.options.Dir, p.options.StateDir); len(paths) > 0 {
		t.Errorf("left: %v", paths)
	}
	select {
	case <-p.Ended():
		t.Errorf("what was closed counts as ended by itself: %v", p.Err())
	default:
	}
}

func TestAChildThatIsKilledIsNoticedExplainedAndReplaced(t *testing.T) {
	p := spawn(t)
	config := p.Config()
	createCRD(t, config, widgetCRD("v1"))
	ended := p.Ended()
	if err := syscall.Kill(p.child.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-ended
	err := p.Err()
	if err == nil {
		t.Fatal("no reason")
	}
	log := filepath.Join(p.options.StateDir, failureLogName)
	for _, want := range []string{"signal: killed", log, "a reset starts a fresh one"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if !exists(log) {
		t.Error("the log that is named is not there")
	}
	if exists(p.folder.path) {
		t.Errorf("%s is left", p.folder.path)
	}
	// Nobody must hang on a port that nobody serves.
	crds := crdClient(t, config).ApiextensionsV1().CustomResourceDefinitions()
	for range 2 { // the first one may still find the old connection
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := crds.List(ctx, metav1.ListOptions{})
		if err == nil || ctx.Err() != nil {
			t.Errorf("asking a server that has ended: %v", err)
		}
		cancel()
	}
	if err := p.Reset(t.Context(), wholeScope); err != nil {
		t.Fatal(err)
	}
	if p.Err() != nil {
		t.Errorf("after the reset: %v", p.Err())
	}
	if _, err := crds.Get(t.Context(), widgets.String(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the CRD after the reset: %v, want NotFound", err)
	}
	select {
	case <-p.Ended():
		t.Error("the fresh one counts as ended")
	default:
	}
}

func TestEtcdsEndOnADiskErrorIsExplainedAndDoesNotEndThisProcess(t *testing.T) {
	p := spawn(t)
	createCRD(t, p.Config(), widgetCRD("v1"))
	// The next segment of the write-ahead log cannot be made; etcd ends its process then.
	if err := os.RemoveAll(filepath.Join(p.folder.path, "etcd", "member", "wal")); err != nil {
		t.Fatal(err)
	}
	objects := dynamicClient(t, p.Config()).Resource(widgetsAt("v1")).Namespace(Namespace)
	large := &unstructured.Unstructured{Object: widget("v1", "").Object}
	large.SetName("")
	large.SetGenerateName("large-")
	large.Object["spec"] = map[string]any{"text": strings.Repeat("x", 1<<20)}
	for {
		select {
		case <-p.Ended():
			if err := p.Err().Error(); !strings.Contains(err, "fatal") && !strings.Contains(err, "panic") {
				t.Errorf("%q does not give etcd's own reason", err)
			}
			return
		default:
		}
		_, err := objects.Create(t.Context(), large, metav1.CreateOptions{})
		if err != nil && t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

func TestAResetOfAChildKeepsPortTokenCertificateWatchersAndWebhooks(t *testing.T) {
	p := spawn(t)
	config := p.Config()
	createCRD(t, config, widgetCRD("v1"))
	requests, err := p.WatchRequests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hook, err := p.ListenWebhook(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := make(chan string, 100)
	cert := serveConversion(t, hook, hook.DNSNames, names)
	if err := p.Reset(t.Context(), wholeScope); err != nil {
		t.Fatal(err)
	}
	createCRD(t, config, webhookCRD(hook.Service, cert))
	createWidget(t, config, "v1alpha1", "one")
	_, err = dynamicClient(t, config).Resource(widgetsAt("v1beta1")).Namespace(Namespace).Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Errorf("through the webhook after the reset: %v", err)
	}
	// The stream goes on, as soon as it has found the fresh server.
	byHand := handClient(t, p.kubeconfig)
	eventually(t, "a request after the reset to be seen", func() bool {
		if _, err := byHand.Resource(widgetsAt("v1alpha1")).Namespace(Namespace).Get(t.Context(), "one", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-requests:
			return true
		default:
			return false
		}
	})
}

func TestSpawnThatIsGivenUpLeavesNothingBehind(t *testing.T) {
	dir, state := shortDir(t), t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	_, err := Spawn(ctx, SpawnOptions{Dir: dir, StateDir: state, OnPhase: func(p Phase) {
		if p.Name == PhaseAPIServer {
			cancel(enough)
		}
	}})
	if !errors.Is(err, enough) {
		t.Errorf("error %v, want %v", err, enough)
	}
	if paths := left(dir, state); len(paths) > 0 {
		t.Errorf("left: %v", paths)
	}
}

func TestSpawnSaysWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir, state := shortDir(t), t.TempDir()
	_, err = Spawn(t.Context(), SpawnOptions{Dir: dir, StateDir: state, Port: taken.Addr().(*net.TCPAddr).Port})
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "choose another") {
		t.Errorf("port taken: %v", err)
	}
	_, err = Spawn(t.Context(), SpawnOptions{Dir: dir, StateDir: state, Certificate: &Certificate{}})
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("what fails in the child: %v", err)
	}
	if paths := left(dir, state); len(paths) > 0 {
		t.Errorf("left: %v", paths)
	}
}

func TestTheDeathOfTheParentLeavesNothingBehind(t *testing.T) {
	dir, state := shortDir(t), t.TempDir()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	b := startBetween(t, "spawn", dir, state, kubeconfig)
	if !exists(b.Folder) || !exists(b.Session) || !alive(b.Child) || !exists(kubeconfig) {
		t.Fatalf("not there: %+v, %s", b.place, kubeconfig)
	}
	if err := b.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "folders, kubeconfig and child to be gone", func() bool {
		return len(left(dir, state)) == 0 && !exists(kubeconfig) && !running(b.Child)
	})
}

func TestWhatBothLeaveWhenKilledIsRemovedByTheNext(t *testing.T) {
	dir, state := shortDir(t), t.TempDir()
	b := startBetween(t, "spawn", dir, state)
	// The parent cannot react while it is stopped.
	for _, kill := range []struct {
		pid    int
		signal syscall.Signal
	}{{b.cmd.Process.Pid, syscall.SIGSTOP}, {b.Child, syscall.SIGKILL}, {b.cmd.Process.Pid, syscall.SIGKILL}} {
		if err := syscall.Kill(kill.pid, kill.signal); err != nil {
			t.Fatal(err)
		}
	}
	b.cmd.Wait()
	eventually(t, "both to be gone", func() bool { return unlocked(t, b.Folder) && unlocked(t, b.Session) })
	if len(left(dir, state)) != 2 {
		t.Fatalf("left: %v; nothing to test", left(dir, state))
	}
	p := spawn(t, func(o *SpawnOptions) { o.Dir, o.StateDir = dir, state })
	if exists(b.Folder) || exists(b.Session) {
		t.Errorf("left: %v", left(dir, state))
	}
	if !exists(p.folder.path) || !exists(p.kubeconfig) {
		t.Error("it removed its own")
	}
}

func TestNothingIsPrintedOnTheTerminal(t *testing.T) {
	for _, how := range []string{"spawn", "start"} {
		dir, state := shortDir(t), t.TempDir()
		b := startBetween(t, how, dir, state)
		provoke(t, b.Kubeconfig)
		if how == "spawn" {
			log, err := os.ReadFile(filepath.Join(b.Session, logName))
			if err != nil || !strings.Contains(string(log), "Serving securely on") {
				t.Errorf("the child's log: %v: %s", err, log)
			}
			if err := syscall.Kill(b.Child, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the parent to notice", func() bool { return !exists(b.Folder) })
		}
		b.end(t)
		if said := b.said(t); said != "" {
			t.Errorf("%s: on standard error: %s", how, said)
		}
	}
}

// provoke does what makes the libraries speak: a failed handshake, a broken connection, a CRD with a dead webhook, watches
// that are open to the end.
func provoke(t *testing.T, kubeconfig string) {
	t.Helper()
	found, err := loadKubeconfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(found.endpoint, "https://")
	if conn, err := tls.Dial("tcp", host, &tls.Config{}); err == nil {
		conn.Close()
		t.Error("a client without the CA trusts the server")
	}
	if response, err := http.Get("http://" + host); err == nil {
		response.Body.Close()
	}
	config := found.Config()
	crd := widgetCRD("v1alpha1", "v1beta1")
	createCRD(t, config, crd)
	createWidget(t, config, "v1alpha1", "one")
	watching := rest.CopyConfig(config)
	if _, err := crdClient(t, watching).ApiextensionsV1().CustomResourceDefinitions().Watch(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	_, err = dynamicClient(t, config).Resource(widgetsAt("v1beta1")).Namespace(Namespace).Get(t.Context(), "none", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// unlocked tells whether a folder's owners have all ended. That of a process takes its time after it counts as ended.
func unlocked(t *testing.T, path string) bool {
	t.Helper()
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// running tells whether a process runs. Where orphans are not waited for by anybody, one that has ended stays as a zombie.
func running(pid int) bool {
	if !alive(pid) {
		return false
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !exists("/proc/self") // not a system that says more
	}
	_, state, _ := strings.Cut(string(status), ") ")
	return !strings.HasPrefix(state, "Z")
}

func TestWhatToDoAfterAnEndIsForTheCallerToSay(t *testing.T) {
	p := spawn(t, func(o *SpawnOptions) { o.WayOn = "start it again" })
	if err := syscall.Kill(p.child.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.Ended()
	if said := p.Err().Error(); !strings.HasSuffix(said, "; start it again") || strings.Contains(said, "reset") {
		t.Error(said)
	}
}

func TestAChildThatCloseKillsHasNotFailed(t *testing.T) {
	p := spawn(t)
	if err := syscall.Kill(p.child.cmd.Process.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // and no patience with it
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if log := filepath.Join(p.options.StateDir, failureLogName); exists(log) || p.Err() != nil {
		t.Errorf("%s is there: %v; error %v", log, exists(log), p.Err())
	}
}
