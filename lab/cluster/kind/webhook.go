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
)

// ListenWebhook listens where the nodes reach this process, and makes the Service crdlab-webhook lead there, in the
// namespace that was prepared last. That every node of the control plane gets there is tried before this returns. The last
// one that listens is the one that is found. A Prepare after a Reset tells the cluster again. It is
// cluster.ErrUnreachable where no address of this machine can be reached from the nodes.
func (c *Cluster) ListenWebhook(ctx context.Context) (*cluster.WebhookListener, error) {
	l := &listening{cluster: c}
	return c.full.Listen(ctx, l.open)
}

// listening is the finding of a place to listen at.
type listening struct {
	cluster *Cluster
	socket  net.Listener // nil until there is one
	service *cluster.WebhookService
}

// open leaves no socket where it fails.
func (l *listening) open(ctx context.Context, service *cluster.WebhookService) (net.Listener, error) {
	l.service = service
	err := l.listen(ctx)
	if err != nil && l.socket != nil {
		return nil, errors.Join(err, l.socket.Close())
	}
	return l.socket, err
}

// listen finds the place to listen at, and proves that the Service leads there.
func (l *listening) listen(ctx context.Context) error {
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
func (l *listening) listenAt(ctx context.Context, p place, token string) error {
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
	l.socket, l.service.Address = socket, netip.AddrPortFrom(p.dial, uint16(port))
	return nil
}

// proveService has the nodes try to connect to the Service's own address: API servers are on them, and take the same way.
func (l *listening) proveService(ctx context.Context, service *corev1.Service, token string) error {
	err := answerProbes(l.socket.(*net.TCPListener), token, func() error {
		return l.probe(ctx, probe{Address: service.Spec.ClusterIP, Port: cluster.WebhookPort, Token: token, Within: serviceTimeout})
	})
	if err != nil {
		return fmt.Errorf("%w: the Service %s/%s does not lead here: %w", cluster.ErrUnreachable, service.Namespace, service.Name, err)
	}
	return nil
}

func (l *listening) probe(ctx context.Context, p probe) error {
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
