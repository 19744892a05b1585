package existing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/crdlab/crdlab/lab/storage"
)

// controlSystem is the namespace of the control plane's pods, as kubeadm makes them.
const controlSystem = "kube-system"

// giveEndpoints is what to do where the cluster itself leads to no etcd.
const giveEndpoints = "where etcd can be reached otherwise, give --etcd-endpoints and its certificates"

// etcdPod is a pod of etcd in which etcdctl can be run.
type etcdPod struct {
	cluster         *Cluster
	name, container string
	flags           []string // by which etcdctl finds etcd
}

// openPod finds a pod of etcd in which etcdctl answers.
func (c *Cluster) openPod(ctx context.Context) (storage.Reader, error) {
	pods, err := c.client.CoreV1().Pods(controlSystem).List(ctx, metav1.ListOptions{LabelSelector: "component=etcd"})
	if err != nil && !apierrors.IsNotFound(err) { // not every API server has pods
		return nil, fmt.Errorf("%w: look for etcd's pod in %s: %w; %s", storage.ErrNoAccess, controlSystem, err, giveEndpoints)
	}
	failed := fmt.Errorf("the cluster shows no pod of etcd in %s, as one that somebody else manages does not", controlSystem)
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning || len(pod.Spec.Containers) == 0 {
			continue
		}
		container := pod.Spec.Containers[0]
		p := &etcdPod{cluster: c, name: pod.Name, container: container.Name, flags: etcdctlFlags(append(container.Command, container.Args...))}
		from := storage.NewEtcdctl(p.run, c.prefix(ctx))
		if _, failed = from.Revision(ctx); failed == nil {
			return from, nil
		}
		from.Close()
	}
	return nil, fmt.Errorf("%w: %w; %s", storage.ErrNoAccess, failed, giveEndpoints)
}

// prefix is that of the API server's keys, as its own pod says it; empty where it says nothing.
func (c *Cluster) prefix(ctx context.Context) string {
	pods, err := c.client.CoreV1().Pods(controlSystem).List(ctx, metav1.ListOptions{LabelSelector: "component=kube-apiserver"})
	if err != nil {
		return ""
	}
	for _, pod := range pods.Items {
		for _, container := range pod.Spec.Containers {
			if prefix := flag(append(container.Command, container.Args...), "etcd-prefix"); prefix != "" {
				return "/" + strings.Trim(prefix, "/")
			}
		}
	}
	return ""
}

// etcdctlFlags are made of etcd's own command line: its certificate is good for a client, too, in what kubeadm makes.
func etcdctlFlags(etcd []string) []string {
	var out []string
	for _, f := range [][2]string{{"cacert", "trusted-ca-file"}, {"cert", "cert-file"}, {"key", "key-file"}} {
		if value := flag(etcd, f[1]); value != "" {
			out = append(out, "--"+f[0]+"="+value)
		}
	}
	if endpoint := nearest(strings.Split(flag(etcd, "listen-client-urls"), ",")); endpoint != "" {
		out = append(out, "--endpoints="+endpoint)
	}
	return out
}

// nearest is the loopback's URL, or else the first.
func nearest(urls []string) string {
	for _, u := range urls {
		if strings.Contains(u, "//127.0.0.1:") || strings.Contains(u, "//localhost:") || strings.Contains(u, "//[::1]:") {
			return u
		}
	}
	return urls[0]
}

// flag is the value of a flag in a command line; empty where it has none.
func flag(command []string, name string) string {
	for i, word := range command {
		word = strings.TrimLeft(word, "-")
		if value, ok := strings.CutPrefix(word, name+"="); ok {
			return value
		}
		if word == name && i+1 < len(command) {
			return command[i+1]
		}
	}
	return ""
}

// run runs etcdctl itself: there need be no shell in the image.
func (p *etcdPod) run(ctx context.Context, arguments []string, in io.Reader, out io.Writer) error {
	command := append(append([]string{"etcdctl"}, p.flags...), arguments...)
	url := p.cluster.client.CoreV1().RESTClient().Post().Namespace(controlSystem).Resource("pods").Name(p.name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: p.container, Command: command, Stdin: in != nil, Stdout: true, Stderr: true},
			scheme.ParameterCodec).URL()
	config := p.cluster.Config()
	old, err := remotecommand.NewSPDYExecutor(config, "POST", url)
	if err != nil {
		return fmt.Errorf("run etcdctl in %s/%s: %w", controlSystem, p.name, err)
	}
	socket, err := remotecommand.NewWebSocketExecutor(config, "GET", url.String())
	if err != nil {
		return fmt.Errorf("run etcdctl in %s/%s: %w", controlSystem, p.name, err)
	}
	executor, err := remotecommand.NewFallbackExecutor(socket, old, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return fmt.Errorf("run etcdctl in %s/%s: %w", controlSystem, p.name, err)
	}
	var complaint bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: &complaint})
	if err != nil {
		if text := strings.TrimSpace(complaint.String()); text != "" {
			err = errors.New(text[strings.LastIndexByte(text, '\n')+1:]) // its last word
		}
		return fmt.Errorf("run etcdctl in %s/%s: %w", controlSystem, p.name, err)
	}
	return nil
}
