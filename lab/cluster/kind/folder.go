package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdlab/crdlab/lab/cluster"
)

const (
	lockName       = "lock"
	kubeconfigName = "kubeconfig"
)

// folder is where a cluster's kubeconfig is. Whoever makes or deletes the cluster holds its lock, and so do the child
// processes that do it, as long as they live.
type folder struct {
	name string // of the cluster
	path string
	lock *os.File // nil where it is not held
}

// folderOf is a cluster's folder, which need not exist.
func folderOf(name string) (*folder, error) {
	state, err := cluster.StateDir()
	if err != nil {
		return nil, err
	}
	return &folder{name: name, path: filepath.Join(state, "kind-"+name)}, nil
}

// newFolder makes a cluster's folder, 0700, and waits for its lock.
func newFolder(ctx context.Context, name string) (*folder, error) {
	f, err := folderOf(name)
	if err != nil {
		return nil, err
	}
	err = poll(ctx, func(context.Context) (bool, error) { return f.tryLock() })
	if err != nil {
		return nil, fmt.Errorf("lock the folder %s: %w; is another crdlab at work on this cluster?", f.path, err)
	}
	return f, nil
}

// tryLock is false where another holds the lock, or has just removed the folder.
func (f *folder) tryLock() (bool, error) {
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return false, err
	}
	lock, err := os.OpenFile(filepath.Join(f.path, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return false, err
	}
	held, err := lock.Stat()
	if there, e := os.Stat(lock.Name()); err != nil || e != nil || !os.SameFile(held, there) {
		lock.Close()
		return false, errors.Join(err, e)
	}
	f.lock = lock
	return true, nil
}

func (f *folder) unlock() { f.lock.Close() }

// remove removes the folder. Its lock is still held, by a file that has no name any more.
func (f *folder) remove() { os.RemoveAll(f.path) }

func (f *folder) kubeconfig() string { return filepath.Join(f.path, kubeconfigName) }

func (f *folder) hasKubeconfig() bool {
	_, err := os.Stat(f.kubeconfig())
	return err == nil
}

// writeKubeconfig writes it all at once, 0600.
func (f *folder) writeKubeconfig(data []byte) error {
	temp, err := os.CreateTemp(f.path, ".kubeconfig-*") // 0600
	if err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), f.kubeconfig())
	}
	if err != nil {
		os.Remove(temp.Name())
		return fmt.Errorf("write the kubeconfig %s: %w", f.kubeconfig(), err)
	}
	return nil
}

// ownKubeconfig is kind's kubeconfig with the lab's namespace in its context.
func ownKubeconfig(kinds []byte) ([]byte, error) {
	config, err := clientcmd.Load(kinds)
	if err != nil {
		return nil, fmt.Errorf("read its kubeconfig: %w", err)
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil {
		return nil, fmt.Errorf("its kubeconfig has no context %q", config.CurrentContext)
	}
	current.Namespace = namespace
	return clientcmd.Write(*config)
}
