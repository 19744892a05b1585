package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	kinds "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"

	"github.com/crdlab/crdlab/lab/cluster"
)

// view is how a node sees this machine, if it does.
type view struct {
	Gateways []netip.Addr // of its container network
	Hosts    []netip.Addr // what the names resolve to that runtimes in a virtual machine give to the machine around it
}

// hostNames are those names: Docker Desktop's and those like it, and Podman's.
var hostNames = []string{"host.docker.internal", "host.containers.internal"}

// place is an address of this machine to listen at, and the one by which nodes reach it.
type place struct {
	listen, dial netip.Addr
}

// places are where this process could listen so that nodes reach it, the best first. Where a runtime runs containers on
// this machine itself, as Docker and Podman do on Linux, the network's gateway is an address of this machine. Where it
// keeps them in a virtual machine, as Docker Desktop and Podman do elsewhere, the nodes know a name, and what is sent there
// comes to this machine's loopback. Only addresses of one family are of use, the Service's.
func places(v view, local []netip.Addr, ipv6 bool) ([]place, error) {
	var found []place
	for _, a := range slices.Concat(v.Gateways, v.Hosts) {
		p := place{listen: a, dial: a}
		switch {
		case a.Is6() != ipv6 || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified():
			continue // an EndpointSlice takes none of them
		case slices.Contains(local, a):
		case slices.Contains(v.Hosts, a):
			p.listen = loopback(ipv6)
		default:
			continue // the gateway within a virtual machine, or of another machine
		}
		if !slices.Contains(found, p) {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: the nodes' gateway (%s) is no address of this machine, and %s is not known to them (%s); "+
			"is the container runtime on another machine, or rootless?",
			cluster.ErrUnreachable, list(v.Gateways), strings.Join(hostNames, " or "), list(v.Hosts))
	}
	return found, nil
}

func loopback(ipv6 bool) netip.Addr {
	if ipv6 {
		return netip.IPv6Loopback()
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

func list(addresses []netip.Addr) string {
	if len(addresses) == 0 {
		return "none"
	}
	var text []string
	for _, a := range addresses {
		text = append(text, a.String())
	}
	return strings.Join(text, ", ")
}

// localAddresses are those of this machine.
func localAddresses() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("find this machine's addresses: %w", err)
	}
	var local []netip.Addr
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			local = append(local, p.Addr().Unmap())
		}
	}
	return local, nil
}

// defaultRoute is a line of ip route show default.
var defaultRoute = regexp.MustCompile(`(?m)^default via (\S+)`)

// look asks a node how it sees this machine. The gateway of a container's default route is that of its network, with every
// runtime, while each has another way to ask for the network.
func look(provider *kinds.Provider, name string) (*view, error) {
	control, err := controlPlane(provider, name)
	if err != nil {
		return nil, err
	}
	v := &view{}
	for _, family := range []string{"-4", "-6"} {
		for _, route := range defaultRoute.FindAllStringSubmatch(say(control[0], "ip", family, "route", "show", "default"), -1) {
			v.Gateways = appendAddress(v.Gateways, route[1])
		}
	}
	for _, host := range hostNames {
		for line := range strings.Lines(say(control[0], "getent", "ahosts", host)) {
			v.Hosts = appendAddress(v.Hosts, strings.Fields(line)[0])
		}
	}
	return v, nil
}

// say is what a command prints on a node: nothing where it fails, as it does for a name that is not known.
func say(n nodes.Node, command string, args ...string) string {
	var out bytes.Buffer
	if err := n.Command(command, args...).SetStdout(&out).Run(); err != nil {
		return ""
	}
	return out.String()
}

func appendAddress(to []netip.Addr, text string) []netip.Addr {
	a, err := netip.ParseAddr(text)
	if err != nil || slices.Contains(to, a.Unmap()) {
		return to
	}
	return append(to, a.Unmap())
}

// probe is an address that every node of the control plane is to reach, and what is sent there to who connects.
type probe struct {
	Address string
	Port    int
	Token   string
	Within  time.Duration
}

// probeScript connects and prints what comes.
const probeScript = `exec 3<>"/dev/tcp/$0/$1" && head -c "$2" <&3`

func (p probe) run(ctx context.Context, provider *kinds.Provider, name string) error {
	control, err := controlPlane(provider, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.Within, errors.New("not within "+p.Within.String()))
	defer cancel()
	for _, n := range control {
		if err := poll(ctx, func(ctx context.Context) (bool, error) { return p.try(ctx, n) }); err != nil {
			return fmt.Errorf("from the node %s to %s: %w", n, net.JoinHostPort(p.Address, strconv.Itoa(p.Port)), err)
		}
	}
	return nil
}

func (p probe) try(ctx context.Context, n nodes.Node) (bool, error) {
	var out bytes.Buffer
	err := n.CommandContext(ctx, "timeout", "3", "bash", "-c", probeScript,
		p.Address, strconv.Itoa(p.Port), strconv.Itoa(len(p.Token))).SetStdout(&out).Run()
	if err != nil {
		return false, withOutput(err)
	}
	if out.String() != p.Token {
		return false, errors.New("somebody else answered")
	}
	return true, nil
}
