package lab

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdlab/crdlab/lab/cluster"
)

// kubectlIn has the learner's kubectl use the session's namespace: by the cluster's kubeconfig where that has it, or else by
// a copy that the session keeps.
func (s *Session) kubectlIn(namespace string) error {
	s.state.Kubeconfig, s.state.KubectlFlags = s.opts.Cluster.Kubeconfig()
	if s.state.Kubeconfig == "" {
		return nil
	}
	config, err := clientcmd.LoadFromFile(s.state.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read the cluster's kubeconfig: %w", err)
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil || current.Namespace == namespace {
		return nil
	}
	if s.kubeconfig, err = cluster.NewKubeconfig(config, config.CurrentContext, namespace); err != nil {
		return err
	}
	s.state.Kubeconfig = s.kubeconfig.Path
	return nil
}
