package kind

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/crdlab/crdlab/lab/cluster"
)

const (
	// placeTimeout is how long a node may take to connect to an address of this machine, serviceTimeout to a Service,
	// which the nodes of a fresh cluster do not know at once.
	placeTimeout   = 5 * time.Second
	serviceTimeout = time.Minute
	// withdrawTimeout is how long it may take to take back a Service.
	withdrawTimeout = 2 * time.Second
)

// ListenWebhook listens where the nodes reach this process, and makes the Service crdlab-webhook lead there, in the
// namespace that was prepared last. That every node of the control plane gets there is tried before this returns. The last
// one that listens is the one that is found. A Prepare after a Reset tells the cluster again. It is
// cluster.ErrUnreachable where no address of this machine can be reached from the nodes.
func (c *Cluster) ListenWebhook(ctx context.Context) (*cluster.WebhookListener, error) {
	c.mu.Lock()
	scope := c.scope
	c.mu.Unlock()
	if err := c.Prepare(ctx, scope); err != nil {
		return nil, err
	}
	l := &webhookListener{cluster: c, service: cluster.WebhookService{Client: c.client, Scope: scope}}
	if err := l.listen(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("listen for the API server's conversion requests: %w", err), l.Close())
	}
	c.remember(l)
	c.mu.Lock()
	c.webhooks = append(c.webhooks, l)
	c.mu.Unlock()
	return l.service.Listener(l), nil
}

// webhookListener is a socket with a Service before it.
type webhookListener struct {
	net.Listener
	cluster *Cluster
	service cluster.WebhookService
	once    sync.Once
	err     error
}

// listen finds the place to listen at, and proves that the Service leads there.
func (l *webhookListener) listen(ctx context.Context) error {
	service, err := l.service.Apply(ctx)
	if err != nil {
		return err
	}
	said, err := run(ctx, order{Do: doLook, Name: l.cluster.name}, nil, nil)
	if err != nil {
		return fmt.Errorf("ask a node how it sees this machine: %w", err)
	}
	local, err := localAddresses()
	if err != nil {
		return err
	}
	possible, err := places(*said.View, local, slices.Index(service.Spec.IPFamilies, corev1.IPv6Protocol) == 0)
	if err != nil {
		return err
	}
	token := rand.Text()
	for _, p := range possible {
		err = l.listenAt(ctx, p, token)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w; does a firewall on this machine keep the containers away?", cluster.ErrUnreachable, err)
	}
	service, err = l.service.Announce(ctx)
	if err != nil {
		return err
	}
	if direct, err := l.cluster.routesItself(ctx); err != nil || direct {
		return err
	}
	return l.proveService(ctx, service, token)
}

// listenAt opens the socket at a place, and has the nodes try to connect.
func (l *webhookListener) listenAt(ctx context.Context, p place, token string) error {
	socket, err := new(net.ListenConfig).Listen(ctx, "tcp", netip.AddrPortFrom(p.listen, 0).String())
	if err != nil {
		return err
	}
	port := socket.Addr().(*net.TCPAddr).Port
	err = answerProbes(socket.(*net.TCPListener), token, func() error {
		return l.probe(ctx, probe{Address: p.dial.String(), Port: port, Token: token, Within: placeTimeout})
	})
	if err != nil {
		return errors.Join(err, socket.Close())
	}
	l.Listener, l.service.Address = socket, netip.AddrPortFrom(p.dial, uint16(port))
	return nil
}

// proveService has the nodes try to connect to the Service's own address: API servers are on them, and take the same way.
func (l *webhookListener) proveService(ctx context.Context, service *corev1.Service, token string) error {
	err := answerProbes(l.Listener.(*net.TCPListener), token, func() error {
		return l.probe(ctx, probe{Address: service.Spec.ClusterIP, Port: cluster.WebhookPort, Token: token, Within: serviceTimeout})
	})
	if err != nil {
		return fmt.Errorf("%w: the Service %s/%s does not lead here: %w", cluster.ErrUnreachable, service.Namespace, service.Name, err)
	}
	return nil
}

func (l *webhookListener) probe(ctx context.Context, p probe) error {
	_, err := run(ctx, order{Do: doProbe, Name: l.cluster.name, Probe: p}, nil, nil)
	return err
}

// answerProbes sends a token to everybody who connects, while something goes on.
func answerProbes(socket *net.TCPListener, token string, while func() error) error {
	var answering sync.WaitGroup
	answering.Go(func() {
		for {
			conn, err := socket.Accept()
			if err != nil {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(placeTimeout))
			_, _ = conn.Write([]byte(token))
			conn.Close()
		}
	})
	err := while()
	_ = socket.SetDeadline(time.Now())
	answering.Wait()
	return errors.Join(err, socket.SetDeadline(time.Time{}))
}

// Close stops listening, and takes the Service back where it still leads here.
func (l *webhookListener) Close() error {
	l.once.Do(func() {
		l.cluster.forget(l)
		l.cluster.mu.Lock()
		l.cluster.webhooks = slices.DeleteFunc(l.cluster.webhooks, func(o *webhookListener) bool { return o == l })
		l.cluster.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), withdrawTimeout)
		defer cancel()
		l.err = l.service.Withdraw(ctx)
		if l.Listener != nil {
			l.err = errors.Join(l.err, l.Listener.Close())
		}
	})
	return l.err
}
