package existing

import (
	"slices"
	"testing"
)

func TestEtcdctlGetsItsFlagsFromEtcdsCommandLine(t *testing.T) {
	kubeadm := []string{"etcd", "--advertise-client-urls=https://172.18.0.2:2379", "--cert-file=/etc/kubernetes/pki/etcd/server.crt",
		"--key-file=/etc/kubernetes/pki/etcd/server.key", "--listen-client-urls=https://172.18.0.2:2379,https://127.0.0.1:2379",
		"--peer-cert-file=/etc/kubernetes/pki/etcd/peer.crt", "--trusted-ca-file", "/etc/kubernetes/pki/etcd/ca.crt"}
	want := []string{"--cacert=/etc/kubernetes/pki/etcd/ca.crt", "--cert=/etc/kubernetes/pki/etcd/server.crt",
		"--key=/etc/kubernetes/pki/etcd/server.key", "--endpoints=https://127.0.0.1:2379"}
	if got := etcdctlFlags(kubeadm); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := etcdctlFlags([]string{"etcd"}); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
