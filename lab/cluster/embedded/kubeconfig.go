package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// storageExtension is the cluster extension of a kubeconfig that says where the stored values can be read.
	storageExtension = "crdlab.dev/storage"
	// kubeconfigName is the file in the session's folder, and the name of everything in it.
	kubeconfigName = "kubeconfig"
	contextName    = "crdlab"
)

// storageObject is the extension's content.
type storageObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Endpoint   string `json:"endpoint"`
}

// WriteKubeconfig writes the kubeconfig to a path of the caller's choice, mode 0600, all at once. It overwrites what
// crdlab wrote there before, and an empty file, and refuses to touch anything else. Close removes the file again, unless
// somebody has added to it.
func (a *access) WriteKubeconfig(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	if err := refuseForeign(path); err != nil {
		return err
	}
	if err := a.writeKubeconfig(path); err != nil {
		return err
	}
	a.remember(path)
	return nil
}

// remember is what removeWritten goes by.
func (a *access) remember(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Contains(a.written, path) {
		a.written = append(a.written, path)
	}
}

// refuseForeign is an error if something that is not crdlab's stands at path.
func refuseForeign(path string) error {
	why := "crdlab did not write it"
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		why = "it cannot be looked at: " + err.Error()
	case info.IsDir():
		why = "it is a folder"
	case info.Mode().IsRegular():
		if info.Size() == 0 {
			return nil
		}
		_, err := loadOwn(path)
		if err == nil {
			return nil
		}
		if errors.Is(err, errShared) {
			why = errShared.Error()
		}
	}
	return fmt.Errorf("will not overwrite %s: %s; name a file that does not exist yet", path, why)
}

func (a *access) writeKubeconfig(path string) error {
	data, err := a.kubeconfigData()
	if err != nil {
		return fmt.Errorf("make the kubeconfig: %w", err)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".kubeconfig-*") // 0600
	if err != nil {
		return fmt.Errorf("write the kubeconfig %s: %w; name a file in a folder that can be written", path, err)
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		os.Remove(temp.Name())
		return fmt.Errorf("write the kubeconfig %s: %w", path, err)
	}
	return nil
}

func (a *access) kubeconfigData() ([]byte, error) {
	extension, err := json.Marshal(storageObject{"crdlab.dev/v1", "Storage", a.storage})
	if err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[contextName] = &clientcmdapi.Cluster{
		Server:                   a.endpoint,
		CertificateAuthorityData: a.ca,
		Extensions: map[string]runtime.Object{
			storageExtension: &runtime.Unknown{Raw: extension, ContentType: runtime.ContentTypeJSON},
		},
	}
	config.AuthInfos[contextName] = &clientcmdapi.AuthInfo{Token: a.token}
	config.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName, Namespace: Namespace}
	config.CurrentContext = contextName
	return clientcmd.Write(*config)
}

// ReadKubeconfig reads a kubeconfig, of whatever cluster. Its errors say what is wrong with the file, and leave it to the
// caller to say which one to give.
func ReadKubeconfig(path string) (*clientcmdapi.Config, error) {
	config, err := clientcmd.LoadFromFile(path)
	var unread *fs.PathError
	switch {
	case err == nil:
		return config, nil
	case errors.Is(err, syscall.EISDIR):
		return nil, fmt.Errorf("%s is no kubeconfig (it is a folder)", path)
	case errors.As(err, &unread):
		return nil, fmt.Errorf("read the kubeconfig %s: %w", path, unread.Err)
	case strings.HasPrefix(err.Error(), "yaml: "):
		return nil, fmt.Errorf("%s is no kubeconfig (%w)", path, err)
	}
	// The library's text speaks of its own Go types.
	return nil, fmt.Errorf("%s is no kubeconfig (what it holds is not of apiVersion v1, kind Config)", path)
}

// errShared says of a kubeconfig that it is crdlab's, but not alone.
var errShared = errors.New("it holds more than crdlab wrote")

// loadOwn is loadKubeconfig for files that are to be overwritten or removed: it is errShared where anything of somebody
// else would be lost.
func loadOwn(path string) (*access, error) {
	config, err := ReadKubeconfig(path)
	if err != nil {
		return nil, err
	}
	a, err := reachedBy(config, path)
	if err == nil && (len(config.Clusters) != 1 || len(config.AuthInfos) != 1 || len(config.Contexts) != 1) {
		return nil, errShared
	}
	return a, err
}

// loadKubeconfig reads how a server is reached from a kubeconfig that crdlab wrote; ErrNotCrdlab if another did.
func loadKubeconfig(path string) (*access, error) {
	config, err := ReadKubeconfig(path)
	if err != nil {
		return nil, err
	}
	return reachedBy(config, path)
}

func reachedBy(config *clientcmdapi.Config, path string) (*access, error) {
	current := config.Contexts[config.CurrentContext]
	if current == nil {
		return nil, fmt.Errorf("it has no current context: %w", ErrNotCrdlab)
	}
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	if cluster == nil || user == nil {
		return nil, fmt.Errorf("its context %q names a cluster or user that is not in it: %w", config.CurrentContext, ErrNotCrdlab)
	}
	unknown, ok := cluster.Extensions[storageExtension].(*runtime.Unknown)
	if !ok {
		return nil, fmt.Errorf("its cluster %q has no extension %s: %w", current.Cluster, storageExtension, ErrNotCrdlab)
	}
	var object storageObject
	if err := json.Unmarshal(unknown.Raw, &object); err != nil || object.Endpoint == "" {
		return nil, fmt.Errorf("its extension %s names no endpoint: %w", storageExtension, ErrNotCrdlab)
	}
	return &access{
		endpoint: cluster.Server, ca: cluster.CertificateAuthorityData, token: user.Token,
		storage: object.Endpoint, kubeconfig: path,
	}, nil
}

// removeWritten removes the kubeconfigs that were written elsewhere, but not where another server has taken the place, or
// somebody has added to them.
func (a *access) removeWritten() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, path := range a.written {
		if there, err := loadOwn(path); err == nil && there.token == a.token {
			os.Remove(path)
		}
	}
	a.written = nil
}
