package kind

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/crdlab/crdlab/lab/cluster"
)

func TestWhereTheNodesReachThisMachine(t *testing.T) {
	at := func(text ...string) (found []netip.Addr) {
		for _, a := range text {
			found = append(found, netip.MustParseAddr(a))
		}
		return found
	}
	local := at("127.0.0.1", "::1", "192.168.1.7", "172.18.0.1", "fc00:f853:ccd:e793::1")
	for name, c := range map[string]struct {
		view view
		ipv6 bool
		want []string // listen>dial
	}{
		"Docker on Linux":             {view: view{Gateways: at("172.18.0.1", "fc00:f853:ccd:e793::1")}, want: []string{"172.18.0.1>172.18.0.1"}},
		"a cluster of IPv6":           {view: view{Gateways: at("172.18.0.1", "fc00:f853:ccd:e793::1")}, ipv6: true, want: []string{"fc00:f853:ccd:e793::1>fc00:f853:ccd:e793::1"}},
		"Docker Desktop":              {view: view{Gateways: at("172.19.0.1"), Hosts: at("192.168.65.254")}, want: []string{"127.0.0.1>192.168.65.254"}},
		"Desktop beside an engine":    {view: view{Gateways: at("172.18.0.1"), Hosts: at("192.168.65.254")}, want: []string{"172.18.0.1>172.18.0.1", "127.0.0.1>192.168.65.254"}},
		"Podman, its own network":     {view: view{Gateways: at("172.18.0.1"), Hosts: at("172.18.0.1")}, want: []string{"172.18.0.1>172.18.0.1"}},
		"Podman names an interface":   {view: view{Gateways: at("10.89.0.1"), Hosts: at("192.168.1.7")}, want: []string{"192.168.1.7>192.168.1.7"}},
		"Podman in a virtual machine": {view: view{Gateways: at("10.89.0.1"), Hosts: at("192.168.127.254")}, want: []string{"127.0.0.1>192.168.127.254"}},
		"rootless, link-local":        {view: view{Gateways: at("10.89.0.1"), Hosts: at("169.254.1.2")}},
		"on another machine":          {view: view{Gateways: at("172.20.0.1")}},
		"nothing is known":            {},
	} {
		got, err := places(c.view, local, c.ipv6)
		var text []string
		for _, p := range got {
			text = append(text, p.listen.String()+">"+p.dial.String())
		}
		if !slices.Equal(text, c.want) || errors.Is(err, cluster.ErrUnreachable) != (c.want == nil) {
			t.Errorf("%s: %q, %v; want %q", name, text, err, c.want)
		}
	}
}
