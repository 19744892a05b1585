package cluster

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// OwnKubeconfig is a kubeconfig of the lab's own, for the learner's kubectl: in a folder of the state folder that is removed
// at the end, and if not then, by the next lab's start: it is locked while somebody lives there.
type OwnKubeconfig struct {
	Path   string
	folder string
	lock   *os.File
}

// NewKubeconfig writes a minified copy of a kubeconfig's context, 0600, with the namespace that is given, and what it names
// of other files within it. The one that it was given is not changed.
func NewKubeconfig(of *clientcmdapi.Config, context, namespace string) (*OwnKubeconfig, error) {
	config := of.DeepCopy()
	config.CurrentContext = context
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return nil, fmt.Errorf("copy the kubeconfig's context %s: %w", context, err)
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return nil, fmt.Errorf("copy the kubeconfig's context %s: %w", context, err)
	}
	config.Contexts[context].Namespace = namespace
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("copy the kubeconfig's context %s: %w", context, err)
	}
	k, err := newKubeconfigFolder()
	if err == nil {
		k.Path = filepath.Join(k.folder, "kubeconfig")
		if err = os.WriteFile(k.Path, data, 0o600); err != nil {
			k.Remove()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("write the lab's kubeconfig: %w; set XDG_STATE_HOME to a folder that can be written", err)
	}
	return k, nil
}

// newKubeconfigFolder makes a folder as those of embedded servers are, so that it is found and removed as they are.
func newKubeconfigFolder() (*OwnKubeconfig, error) {
	state, err := StateDir()
	if err != nil {
		return nil, err
	}
	for {
		k := &OwnKubeconfig{folder: filepath.Join(state, "session-"+rand.Text())}
		if err := os.MkdirAll(k.folder, 0o700); err != nil {
			return nil, err
		}
		if k.lock, err = os.OpenFile(filepath.Join(k.folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
			return nil, errors.Join(err, os.RemoveAll(k.folder))
		}
		err := syscall.Flock(int(k.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if _, gone := os.Stat(k.lock.Name()); err == nil && gone == nil {
			return k, nil
		}
		k.lock.Close()
		if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", k.lock.Name(), err), os.RemoveAll(k.folder))
		}
		// somebody who looked for leftovers was faster
	}
}

// Remove removes it. To remove it twice, or one that is nil, does nothing.
func (k *OwnKubeconfig) Remove() error {
	if k == nil {
		return nil
	}
	err := os.RemoveAll(k.folder)
	k.lock.Close()
	if err != nil {
		return fmt.Errorf("remove the lab's kubeconfig: %w", err)
	}
	return nil
}
