package kind

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	discoveryv1apply "k8s.io/client-go/applyconfigurations/discovery/v1"

	"github.com/crdlab/crdlab/lab/cluster"
)

const (
	// webhookName is the Service that ListenWebhook makes, and its EndpointSlice, in the namespace of the lab.
	webhookName = "crdlab-webhook"
	webhookPort = 443
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
	space := c.space
	c.mu.Unlock()
	if err := c.Prepare(ctx, cluster.Scope{Namespace: space}); err != nil {
		return nil, err
	}
	l := &webhookListener{cluster: c, namespace: space}
	if err := l.listen(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("listen for the API server's conversion requests: %w", err), l.Close())
	}
	c.remember(l)
	c.mu.Lock()
	c.webhooks = append(c.webhooks, l)
	c.mu.Unlock()
	port := int32(webhookPort)
	return &cluster.WebhookListener{
		Listener: l,
		Service:  apiextensionsv1.ServiceReference{Namespace: space, Name: webhookName, Port: &port},
		DNSNames: []string{webhookName + "." + space + ".svc"},
	}, nil
}

// webhookListener is a socket with a Service before it.
type webhookListener struct {
	net.Listener
	cluster   *Cluster
	namespace string
	address   netip.AddrPort // by which the nodes reach it
	once      sync.Once
	err       error
}

// listen finds the place to listen at, and proves that the Service leads there.
func (l *webhookListener) listen(ctx context.Context) error {
	service, err := l.applyService(ctx)
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
	service, err = l.announce(ctx)
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
	l.Listener, l.address = socket, netip.AddrPortFrom(p.dial, uint16(port))
	return nil
}

// proveService has the nodes try to connect to the Service's own address: API servers are on them, and take the same way.
func (l *webhookListener) proveService(ctx context.Context, service *corev1.Service, token string) error {
	err := answerProbes(l.Listener.(*net.TCPListener), token, func() error {
		return l.probe(ctx, probe{Address: service.Spec.ClusterIP, Port: webhookPort, Token: token, Within: serviceTimeout})
	})
	if err != nil {
		return fmt.Errorf("%w: the Service %s/%s does not lead here: %w", cluster.ErrUnreachable, l.namespace, webhookName, err)
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

// announce makes the Service and its EndpointSlice what they have to be.
func (l *webhookListener) announce(ctx context.Context) (*corev1.Service, error) {
	service, err := l.applyService(ctx)
	if err != nil {
		return nil, err
	}
	family := discoveryv1.AddressTypeIPv4
	if l.address.Addr().Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	slice := discoveryv1apply.EndpointSlice(webhookName, l.namespace).
		WithLabels(map[string]string{
			cluster.ManagedBy: cluster.Maker, discoveryv1.LabelServiceName: webhookName, discoveryv1.LabelManagedBy: cluster.Maker,
		}).
		WithAddressType(family).
		WithEndpoints(discoveryv1apply.Endpoint().WithAddresses(l.address.Addr().String()).
			WithConditions(discoveryv1apply.EndpointConditions().WithReady(true))).
		WithPorts(discoveryv1apply.EndpointPort().WithName("").WithProtocol(corev1.ProtocolTCP).WithPort(int32(l.address.Port())))
	_, err = l.cluster.client.DiscoveryV1().EndpointSlices(l.namespace).Apply(ctx, slice, applyOptions)
	if err != nil {
		return nil, fmt.Errorf("apply the EndpointSlice %s/%s: %w", l.namespace, webhookName, err)
	}
	return service, nil
}

var applyOptions = metav1.ApplyOptions{FieldManager: cluster.Maker, Force: true}

// applyService makes the Service, without a selector: its endpoints are what is said of them.
func (l *webhookListener) applyService(ctx context.Context) (*corev1.Service, error) {
	services := l.cluster.client.CoreV1().Services(l.namespace)
	there, err := services.Get(ctx, webhookName, metav1.GetOptions{})
	if err == nil && there.Labels[cluster.ManagedBy] != cluster.Maker {
		return nil, fmt.Errorf("the Service %s/%s has no label %s=%s: %w; remove it yourself",
			l.namespace, webhookName, cluster.ManagedBy, cluster.Maker, cluster.ErrForeign)
	}
	service := corev1apply.Service(webhookName, l.namespace).
		WithLabels(map[string]string{cluster.ManagedBy: cluster.Maker}).
		WithSpec(corev1apply.ServiceSpec().WithPorts(corev1apply.ServicePort().WithProtocol(corev1.ProtocolTCP).WithPort(webhookPort)))
	applied, err := services.Apply(ctx, service, applyOptions)
	if err != nil {
		return nil, fmt.Errorf("apply the Service %s/%s: %w", l.namespace, webhookName, err)
	}
	return applied, nil
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
		l.err = l.withdraw(ctx)
		if l.Listener != nil {
			l.err = errors.Join(l.err, l.Listener.Close())
		}
	})
	return l.err
}

// withdraw leaves alone what leads elsewhere: another one listens now.
func (l *webhookListener) withdraw(ctx context.Context) error {
	there, err := l.cluster.client.DiscoveryV1().EndpointSlices(l.namespace).Get(ctx, webhookName, metav1.GetOptions{})
	if err == nil && !l.leadsHere(there) {
		return nil
	}
	return l.cluster.removeService(ctx, l.namespace)
}

// removeService removes what ListenWebhook makes, as far as it is there and the lab's.
func (c *Cluster) removeService(ctx context.Context, space string) error {
	services, slices := c.client.CoreV1().Services(space), c.client.DiscoveryV1().EndpointSlices(space)
	service, err := services.Get(ctx, webhookName, metav1.GetOptions{})
	if err == nil && service.Labels[cluster.ManagedBy] != cluster.Maker {
		return nil
	}
	if err == nil {
		err = services.Delete(ctx, webhookName, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &service.UID}})
	}
	if err == nil || apierrors.IsNotFound(err) {
		err = slices.Delete(ctx, webhookName, metav1.DeleteOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the Service %s/%s: %w", space, webhookName, err)
	}
	return nil
}

// leadsHere tells whether a slice is this listener's.
func (l *webhookListener) leadsHere(s *discoveryv1.EndpointSlice) bool {
	if len(s.Endpoints) != 1 || len(s.Endpoints[0].Addresses) != 1 || len(s.Ports) != 1 || s.Ports[0].Port == nil {
		return false
	}
	return net.JoinHostPort(s.Endpoints[0].Addresses[0], strconv.Itoa(int(*s.Ports[0].Port))) == l.address.String()
}
