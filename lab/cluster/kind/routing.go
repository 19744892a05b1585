package kind

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

// routingFlag has an API server look up itself where a webhook's Service leads to. Without it, it sends to the Service's
// own address and depends on kube-proxy, which takes its time on a fresh node.
const routingFlag = "enable-aggregator-routing"

// routingPatches give it to the API servers of clusters that are made here, for either form of kubeadm's configuration.
var routingPatches = []v1alpha4.PatchJSON6902{
	{
		Group: "kubeadm.k8s.io", Version: "v1beta4", Kind: "ClusterConfiguration",
		Patch: `[{"op":"add","path":"/apiServer/extraArgs/-","value":{"name":"` + routingFlag + `","value":"true"}}]`,
	},
	{
		Group: "kubeadm.k8s.io", Version: "v1beta3", Kind: "ClusterConfiguration",
		Patch: `[{"op":"add","path":"/apiServer/extraArgs/` + routingFlag + `","value":"true"}]`,
	},
}

// routesItself tells whether all API servers have the flag; clusters made elsewhere seldom do.
func (c *Cluster) routesItself(ctx context.Context) (bool, error) {
	pods, err := c.client.CoreV1().Pods(controlSystem).List(ctx, metav1.ListOptions{LabelSelector: "component=kube-apiserver"})
	if err != nil {
		return false, fmt.Errorf("look at the API server's pods: %w", err)
	}
	for _, pod := range pods.Items {
		if len(pod.Spec.Containers) == 0 || !slices.Contains(pod.Spec.Containers[0].Command, "--"+routingFlag+"=true") {
			return false, nil
		}
	}
	return len(pods.Items) > 0, nil
}
