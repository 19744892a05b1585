package existing

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/crdlab/crdlab/lab/cluster"
)

// splitWebhook takes HOST[:PORT] apart; the port is 0 where there is none.
func splitWebhook(address string) (host string, port int, err error) {
	bare := address
	if strings.HasPrefix(bare, "[") && strings.HasSuffix(bare, "]") {
		bare = bare[1 : len(bare)-1]
	}
	if a, err := netip.ParseAddr(bare); err == nil {
		return a.String(), 0, nil
	}
	host, text, found := strings.Cut(address, ":")
	if strings.HasPrefix(address, "[") {
		host, text, err = net.SplitHostPort(address)
		found = err == nil
	}
	if found {
		if port, err = strconv.Atoi(text); err == nil && (port < 1 || port > 65535) {
			err = errors.New("no port")
		}
	}
	if err != nil || host == "" {
		return "", 0, fmt.Errorf("--webhook-address %q is no HOST or HOST:PORT; give the address by which the cluster reaches this machine, for example 192.0.2.7:9443", address)
	}
	return host, port, nil
}

func checkWebhook(address string) error {
	if address == "" {
		return nil
	}
	_, _, err := splitWebhook(address)
	return err
}

// Secluded says that ListenWebhook cannot succeed, where no address was given.
func (c *Cluster) Secluded() error {
	if c.options.Webhook == "" {
		return fmt.Errorf("%w: nobody said where; give --webhook-address HOST[:PORT], an address of this machine that the cluster's API server can connect to, or run on --cluster kind",
			cluster.ErrUnreachable)
	}
	return nil
}

// ListenWebhook listens at the address that the options name, and makes the Service crdlab-webhook lead there, in the
// namespace that was prepared last. The last one that listens is the one that is found. A Prepare after a Reset tells the
// cluster again. It is cluster.ErrUnreachable where no address was given, or it can be none.
func (c *Cluster) ListenWebhook(ctx context.Context) (*cluster.WebhookListener, error) {
	if err := c.Secluded(); err != nil {
		return nil, err
	}
	return c.full.Listen(ctx, c.listen)
}

// listen opens a socket at the address, and makes the Service lead there.
func (c *Cluster) listen(ctx context.Context, service *cluster.WebhookService) (net.Listener, error) {
	host, port, err := splitWebhook(c.options.Webhook)
	if err != nil {
		return nil, err
	}
	found, err := addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	applied, err := service.Apply(ctx)
	if err != nil {
		return nil, err
	}
	ipv6 := slices.Index(applied.Spec.IPFamilies, corev1.IPv6Protocol) == 0
	at := slices.IndexFunc(found, func(a netip.Addr) bool { return a.Is6() == ipv6 })
	if at < 0 {
		return nil, fmt.Errorf("%w: the cluster's Services are of another IP family than %s (%s); give --webhook-address with an address of that family",
			cluster.ErrUnreachable, host, list(found))
	}
	local, err := own(found[at])
	if err != nil {
		return nil, err
	}
	where := netip.AddrPortFrom(found[at], uint16(port)).String()
	if !local { // something before this machine has that address, and sends here what comes
		if port == 0 {
			return nil, fmt.Errorf("%w: %s is no address of this machine; give the port too that is forwarded to it, --webhook-address %s:PORT",
				cluster.ErrUnreachable, found[at], host)
		}
		where = ":" + strconv.Itoa(port)
	}
	socket, err := new(net.ListenConfig).Listen(ctx, "tcp", where)
	if err != nil {
		return nil, fmt.Errorf("%w; give --webhook-address another port, or none", err)
	}
	service.Address = netip.AddrPortFrom(found[at], uint16(socket.Addr().(*net.TCPAddr).Port))
	if _, err := service.Announce(ctx); err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	return socket, nil
}

// addresses are those that a name stands for. An EndpointSlice takes addresses and no names, and none that mean another
// machine on each.
func addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("%w: %w; give --webhook-address an IP address of this machine", cluster.ErrUnreachable, err)
	}
	var found []netip.Addr
	for _, a := range all {
		if a = a.Unmap(); !a.IsLoopback() && !a.IsLinkLocalUnicast() && !a.IsUnspecified() && !a.IsMulticast() {
			found = append(found, a)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: %s is %s, which means another machine to the cluster; give --webhook-address an address of this machine that the cluster's API server can connect to",
			cluster.ErrUnreachable, host, list(all))
	}
	return found, nil
}

// own tells whether an address is one of this machine's.
func own(address netip.Addr) (bool, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false, fmt.Errorf("find this machine's addresses: %w", err)
	}
	return slices.ContainsFunc(all, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == address
	}), nil
}

func list(addresses []netip.Addr) string {
	var out []string
	for _, a := range addresses {
		out = append(out, a.String())
	}
	return strings.Join(out, ", ")
}
