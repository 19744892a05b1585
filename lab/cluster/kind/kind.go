// Package kind is a cluster of Kubernetes nodes in containers, through the libraries of kind: no kind program is needed,
// but Docker, Podman or nerdctl is. Create makes one or takes one up that is there; it stays when the program ends.
//
// Its kubeconfig is the lab's own, in the lab's state folder. The user's is never read or written.
//
// kind's functions take no context, so all of them run in a child process of this program, which can be killed. The
// program's main must call ChildMain.
package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdlab/crdlab/lab/cluster"
)

const (
	// DefaultName is the cluster's name where none is given.
	DefaultName = "crdlab"
	// namespace is where the kubeconfig's context points to.
	namespace = "crdlab"
	// answerTimeout is how long an API server may take until it is ready, once its nodes run.
	answerTimeout = 3 * time.Minute
	// pollInterval is how often it is looked whether something has come about.
	pollInterval = 100 * time.Millisecond
)

// ErrNoCluster says that there is no cluster of that name.
var ErrNoCluster = errors.New("no such kind cluster")

// Options say which cluster is wanted. The zero value is good.
type Options struct {
	// Name of the cluster; DefaultName if empty.
	Name string
	// Image of the nodes, for a cluster that has to be made; kind's own choice if empty.
	Image string
	// OnPhase is told how it goes on, from the calling goroutine.
	OnPhase func(cluster.Phase)
}

// Cluster is a kind cluster that runs. It outlives this process.
type Cluster struct {
	name       string
	kubeconfig string
	version    string
	nodes      []string // the control plane's
	config     *rest.Config
	client     kubernetes.Interface
	etcd       etcdAccess
	full       *cluster.Full
}

var (
	_ cluster.Cluster  = &Cluster{}
	_ cluster.Preparer = &Cluster{}
)

// Create makes a cluster, or takes up the one of that name; nodes that are stopped are started. If the context ends
// before, what was made by then is removed. It is ErrNoRuntime where no container runtime answers.
func Create(ctx context.Context, o Options) (*Cluster, error) {
	if o.Name == "" {
		o.Name = DefaultName
	}
	if err := checkName(o.Name); err != nil {
		return nil, err
	}
	folder, err := newFolder(ctx, o.Name)
	if err != nil {
		return nil, err
	}
	defer folder.unlock()
	c, err := take(ctx, folder, o)
	if err != nil {
		return nil, fmt.Errorf("kind cluster %s: %w", o.Name, err)
	}
	return c, nil
}

// take finds the cluster and connects to it, or makes it first.
func take(ctx context.Context, folder *folder, o Options) (*Cluster, error) {
	found, err := run(ctx, order{Do: doOpen, Name: o.Name}, folder.lock, o.OnPhase)
	if err != nil {
		return nil, fmt.Errorf("look for it: %w", err)
	}
	if found.Cluster == nil {
		return create(ctx, folder, o)
	}
	c, err := connect(ctx, folder, found.Cluster)
	if err != nil {
		return nil, fmt.Errorf("%w; if it does not recover, remove it: crdlab cluster delete%s", err, nameFlag(o.Name))
	}
	return c, nil
}

// create leaves nothing if it fails.
func create(ctx context.Context, folder *folder, o Options) (c *Cluster, err error) {
	made, err := run(ctx, order{Do: doCreate, Name: o.Name, Image: o.Image}, folder.lock, o.OnPhase)
	if err == nil {
		c, err = connect(ctx, folder, made.Cluster)
	} else if ctx.Err() == nil && !errors.Is(err, errDied) {
		folder.remove() // the child has removed what it made
		return nil, fmt.Errorf("create it: %w", err)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create it: %w", err), abandon(ctx, folder))
	}
	return c, nil
}

// connect writes the kubeconfig and waits until the API server is ready.
func connect(ctx context.Context, folder *folder, found *description) (*Cluster, error) {
	data, err := ownKubeconfig([]byte(found.Kubeconfig))
	if err != nil {
		return nil, err
	}
	if err := folder.writeKubeconfig(data); err != nil {
		return nil, err
	}
	c := &Cluster{name: folder.name, kubeconfig: folder.kubeconfig(), nodes: found.Nodes, etcd: found.Etcd}
	if c.config, err = clientcmd.RESTConfigFromKubeConfig(data); err != nil {
		return nil, fmt.Errorf("read its kubeconfig: %w", err)
	}
	cluster.OwnConfig(c.config)
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	c.full = cluster.NewFull(c.config, c.client, namespace)
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errors.New("the API server was not ready after "+answerTimeout.String()))
	defer cancel()
	if err := poll(ctx, func(ctx context.Context) (bool, error) {
		_, err := c.ask(ctx, "/readyz")
		return err == nil, err
	}); err != nil {
		return nil, fmt.Errorf("wait for its API server: %w", err)
	}
	var v version.Info
	data, err = c.ask(ctx, "/version")
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		return nil, fmt.Errorf("read its version: %w", err)
	}
	c.version = strings.TrimPrefix(v.GitVersion, "v")
	return c, nil
}

// ask reads what the API server says of itself.
func (c *Cluster) ask(ctx context.Context, path string) ([]byte, error) {
	return c.client.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
}

// List names the kind clusters that the container runtime has, whoever made them.
func List(ctx context.Context) ([]string, error) {
	got, err := run(ctx, order{Do: doList}, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("list the kind clusters: %w", err)
	}
	return got.Names, nil
}

// Delete removes a cluster and its kubeconfig; ErrNoCluster if there is neither. It is done also where the context ends
// before it is known to be.
func Delete(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	folder, err := newFolder(ctx, name)
	if err != nil {
		return err
	}
	defer folder.unlock()
	got, err := run(ctx, order{Do: doDelete, Name: name}, folder.lock, nil)
	if err != nil {
		return fmt.Errorf("delete the kind cluster %s: %w", name, err)
	}
	known := folder.hasKubeconfig()
	folder.remove()
	if len(got.Names) == 0 && !known {
		return fmt.Errorf("%w: %s", ErrNoCluster, name)
	}
	return nil
}

// Kubeconfig is where the kubeconfig of a cluster that the lab made is; ErrNoCluster if there is none.
func Kubeconfig(name string) (path string, err error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	folder, err := folderOf(name)
	if err != nil {
		return "", err
	}
	if !folder.hasKubeconfig() {
		return "", fmt.Errorf("%w of the lab's: %s; make one: crdlab cluster create%s", ErrNoCluster, name, nameFlag(name))
	}
	return folder.kubeconfig(), nil
}

// nameFlag is what a command for this cluster needs.
func nameFlag(name string) string {
	if name == DefaultName {
		return ""
	}
	return " --kind-name " + name
}

// names are those that kind takes and that leave room for what it appends to make the name of a host.
var names = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,48}[a-z0-9])?$`)

func checkName(name string) error {
	if !names.MatchString(name) {
		return fmt.Errorf("%q is no name for a kind cluster: at most 50 of a-z, 0-9, - and ., a letter or digit at both ends", name)
	}
	return nil
}

// Info says what this cluster is. It lacks nothing.
func (c *Cluster) Info() cluster.Info { return cluster.Info{Type: "kind", Version: c.version} }

// Config is for the lab's own clients.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig is the file for the learner's kubectl; no flags are needed.
func (c *Cluster) Kubeconfig() (path, flags string) { return c.kubeconfig, "" }

// Close ends what was opened here. The cluster goes on.
func (c *Cluster) Close(context.Context) error { return c.full.End() }

// poll asks until it is done, or the context ends; then it says what was the matter last.
func poll(ctx context.Context, done func(context.Context) (bool, error)) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var last error
	for {
		ok, err := done(ctx)
		if ok {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if last == nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		}
	}
}
