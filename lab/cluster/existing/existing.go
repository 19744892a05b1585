// Package existing is a cluster that is there already, and not the lab's: a context of somebody's kubeconfig. The lab works
// in a namespace and an API group of its own there, touches nothing that it did not make, and never writes to the user's
// kubeconfig.
package existing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/crdlab/crdlab/lab/cluster"
)

// answerTimeout is how long an API server may take to say what it is.
const answerTimeout = 10 * time.Second

// Options say which cluster it is, and how it is reached.
type Options struct {
	Kubeconfig *clientcmdapi.Config // as it was loaded, with absolute paths
	Context    string
	Namespace  string // of the lab, for the kubeconfig that the learner gets
	Etcd       Etcd   // where etcd is; the zero value: it is looked for in the cluster
	Webhook    string // HOST[:PORT] at which the cluster reaches this machine; empty: it does not
}

// Cluster is a context of a kubeconfig.
type Cluster struct {
	options Options
	version string
	config  *rest.Config
	client  kubernetes.Interface

	full *cluster.Full

	kubeconfig *cluster.OwnKubeconfig
}

var (
	_ cluster.Cluster  = &Cluster{}
	_ cluster.Preparer = &Cluster{}
)

// Connect looks at a cluster, and changes nothing anywhere. Begin is to follow, once somebody has agreed.
func Connect(ctx context.Context, o Options) (*Cluster, error) {
	c := &Cluster{options: o}
	if err := o.Etcd.check(); err != nil {
		return nil, err
	}
	if err := checkWebhook(o.Webhook); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*o.Kubeconfig, o.Context, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("the context %s of the kubeconfig cannot be used: %w; mend it, or give another --context", o.Context, err)
	}
	c.config = cluster.OwnConfig(config)
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return nil, fmt.Errorf("make a client for the context %s: %w; mend the kubeconfig, or give another --context", o.Context, err)
	}
	c.full = cluster.NewFull(c.config, c.client, o.Namespace)
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, fmt.Errorf("no answer within %s", answerTimeout))
	defer cancel()
	if c.version, err = c.serverVersion(ctx); err != nil {
		return nil, c.explain(ctx, err)
	}
	return c, nil
}

func (c *Cluster) serverVersion(ctx context.Context) (string, error) {
	data, err := c.client.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return "", err
	}
	var v version.Info
	if err := json.Unmarshal(data, &v); err != nil {
		return "", fmt.Errorf("read its version: %w", err)
	}
	return strings.TrimPrefix(v.GitVersion, "v"), nil
}

// explain says what to do about a server that did not let itself be looked at.
func (c *Cluster) explain(ctx context.Context, err error) error {
	var answer apierrors.APIStatus
	switch {
	case apierrors.IsUnauthorized(err), strings.Contains(err.Error(), "getting credentials"): // which client-go has no type for
		return fmt.Errorf("%s does not accept the credentials of the context %s: %w; have they expired? Log in again, and try kubectl --context %s version",
			c.Server(), c.options.Context, err, cluster.ShellWord(c.options.Context))
	case errors.As(err, &answer):
		return fmt.Errorf("ask %s for its version: %w; is it an API server? Give another --context if not", c.Server(), err)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return fmt.Errorf("%s, the server of the context %s, cannot be reached: %w; start it or the way to it, or give another --context",
		c.Server(), c.options.Context, err)
}

// Server is the URL of the API server.
func (c *Cluster) Server() string { return c.config.Host }

// Context is the name of the kubeconfig's context.
func (c *Cluster) Context() string { return c.options.Context }

// Begin makes what a lab needs on this machine: a kubeconfig of its own for the learner's kubectl.
func (c *Cluster) Begin() error {
	own, err := cluster.NewKubeconfig(c.options.Kubeconfig, c.options.Context, c.options.Namespace)
	if err != nil {
		return err
	}
	c.kubeconfig = own
	return nil
}

// Info says what this cluster is.
func (c *Cluster) Info() cluster.Info {
	return cluster.Info{Type: "existing", Version: c.version, Shared: true}
}

// Config is for the lab's own clients.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig is the file for the learner's kubectl, a copy of the context with the lab's namespace; no flags are needed.
// It is empty before Begin.
func (c *Cluster) Kubeconfig() (path, flags string) {
	if c.kubeconfig == nil {
		return "", ""
	}
	return c.kubeconfig.Path, ""
}

// Prepare makes the scope's namespace where it is missing, and makes the Service of a listener lead here again.
func (c *Cluster) Prepare(ctx context.Context, scope cluster.Scope) error {
	return c.full.Prepare(ctx, scope)
}

// Reset deletes the scope's CRD with its objects, whatever state they are in, the Service of ListenWebhook and the
// namespace, and returns when they are gone. It is cluster.ErrForeign or cluster.ErrTaken, and nothing was touched, where
// the CRD or the namespace is not the lab's, or not its owner's.
func (c *Cluster) Reset(ctx context.Context, scope cluster.Scope) error {
	if scope.Namespace != "" {
		if err := cluster.CheckClaim(ctx, c, scope); err != nil {
			return err
		}
	}
	return c.full.Clear(ctx, c, scope)
}

// Close ends what was opened here, and removes the lab's kubeconfig. The cluster goes on.
func (c *Cluster) Close(context.Context) error {
	return errors.Join(c.full.End(), c.kubeconfig.Remove())
}
