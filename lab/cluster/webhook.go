package cluster

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	discoveryv1apply "k8s.io/client-go/applyconfigurations/discovery/v1"
	"k8s.io/client-go/kubernetes"
)

// The Service through which a cluster's API server reaches this process, and its EndpointSlice, in the namespace of the lab.
const (
	WebhookName = "crdlab-webhook"
	WebhookPort = 443
)

// WebhookService is a Service without a selector: its endpoints are what is said of them, this process.
type WebhookService struct {
	Client  kubernetes.Interface
	Scope   Scope          // in whose namespace it is
	Address netip.AddrPort // by which the cluster reaches this process
}

// Listener is what a socket with this Service before it is to the API server.
func (w *WebhookService) Listener(l net.Listener) *WebhookListener {
	port := int32(WebhookPort)
	return &WebhookListener{
		Listener: l,
		Service:  apiextensionsv1.ServiceReference{Namespace: w.Scope.Namespace, Name: WebhookName, Port: &port},
		DNSNames: []string{WebhookName + "." + w.Scope.Namespace + ".svc"},
	}
}

var applyOptions = metav1.ApplyOptions{FieldManager: Maker, Force: true}

// Apply makes the Service, which leads nowhere yet. It is ErrForeign where one of that name is not the lab's.
func (w *WebhookService) Apply(ctx context.Context) (*corev1.Service, error) {
	space := w.Scope.Namespace
	services := w.Client.CoreV1().Services(space)
	there, err := services.Get(ctx, WebhookName, metav1.GetOptions{})
	if err == nil && there.Labels[ManagedBy] != Maker {
		return nil, fmt.Errorf("the Service %s/%s has no label %s=%s: %w; remove it yourself", space, WebhookName, ManagedBy, Maker, ErrForeign)
	}
	service := corev1apply.Service(WebhookName, space).
		WithLabels(w.Scope.Labels()).
		WithSpec(corev1apply.ServiceSpec().WithPorts(corev1apply.ServicePort().WithProtocol(corev1.ProtocolTCP).WithPort(WebhookPort)))
	applied, err := services.Apply(ctx, service, applyOptions)
	if err != nil {
		return nil, fmt.Errorf("apply the Service %s/%s: %w", space, WebhookName, err)
	}
	return applied, nil
}

// Announce makes the Service and its EndpointSlice what they have to be.
func (w *WebhookService) Announce(ctx context.Context) (*corev1.Service, error) {
	service, err := w.Apply(ctx)
	if err != nil {
		return nil, err
	}
	space, family := w.Scope.Namespace, discoveryv1.AddressTypeIPv4
	if w.Address.Addr().Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	labels := w.Scope.Labels()
	labels[discoveryv1.LabelServiceName], labels[discoveryv1.LabelManagedBy] = WebhookName, Maker
	slice := discoveryv1apply.EndpointSlice(WebhookName, space).
		WithLabels(labels).
		WithAddressType(family).
		WithEndpoints(discoveryv1apply.Endpoint().WithAddresses(w.Address.Addr().String()).
			WithConditions(discoveryv1apply.EndpointConditions().WithReady(true))).
		WithPorts(discoveryv1apply.EndpointPort().WithName("").WithProtocol(corev1.ProtocolTCP).WithPort(int32(w.Address.Port())))
	if _, err := w.Client.DiscoveryV1().EndpointSlices(space).Apply(ctx, slice, applyOptions); err != nil {
		return nil, fmt.Errorf("apply the EndpointSlice %s/%s: %w", space, WebhookName, err)
	}
	return service, nil
}

// Withdraw removes both, but leaves alone what leads elsewhere: another process listens now.
func (w *WebhookService) Withdraw(ctx context.Context) error {
	there, err := w.Client.DiscoveryV1().EndpointSlices(w.Scope.Namespace).Get(ctx, WebhookName, metav1.GetOptions{})
	if err == nil && !w.leadsHere(there) {
		return nil
	}
	return RemoveWebhookService(ctx, w.Client, w.Scope.Namespace)
}

// leadsHere tells whether a slice is this one's.
func (w *WebhookService) leadsHere(s *discoveryv1.EndpointSlice) bool {
	if len(s.Endpoints) != 1 || len(s.Endpoints[0].Addresses) != 1 || len(s.Ports) != 1 || s.Ports[0].Port == nil {
		return false
	}
	return net.JoinHostPort(s.Endpoints[0].Addresses[0], strconv.Itoa(int(*s.Ports[0].Port))) == w.Address.String()
}

// RemoveWebhookService removes the Service and its EndpointSlice, as far as they are there and the lab's.
func RemoveWebhookService(ctx context.Context, client kubernetes.Interface, space string) error {
	services, slices := client.CoreV1().Services(space), client.DiscoveryV1().EndpointSlices(space)
	service, err := services.Get(ctx, WebhookName, metav1.GetOptions{})
	if err == nil && service.Labels[ManagedBy] != Maker {
		return nil
	}
	if err == nil {
		err = services.Delete(ctx, WebhookName, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &service.UID}})
	}
	if err == nil || apierrors.IsNotFound(err) {
		err = slices.Delete(ctx, WebhookName, metav1.DeleteOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the Service %s/%s: %w", space, WebhookName, err)
	}
	return nil
}
