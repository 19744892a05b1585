package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/version"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/storage"
)

// ErrNotCrdlab says that a kubeconfig was not written by crdlab for an embedded server.
var ErrNotCrdlab = errors.New("not a kubeconfig of an embedded crdlab server")

// attachTimeout is how long a server on the loopback may take to say that it is there.
const attachTimeout = 5 * time.Second

// Attached is an embedded API server that another process runs and keeps.
type Attached struct {
	access
}

var (
	_ cluster.Cluster        = &Attached{}
	_ cluster.RequestWatcher = &Attached{}
)

// Attach joins the API server whose kubeconfig stands at path, such as another terminal's crdlab serve has written it.
// It is ErrNotCrdlab if another program wrote the file.
func Attach(path string) (*Attached, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("attach to an embedded server: %w", err)
	}
	found, err := loadKubeconfig(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w; start a server that writes it: %s", err, serveAgain(path))
	case errors.Is(err, ErrNotCrdlab):
		return nil, fmt.Errorf("attach to the embedded server of %s: %w", path, err)
	case err != nil:
		return nil, fmt.Errorf("%w; give the file that crdlab serve --write-kubeconfig wrote", err)
	}
	a := &Attached{access: access{
		endpoint: found.endpoint, token: found.token, ca: found.ca, storage: found.storage, kubeconfig: path,
	}}
	a.begin()
	if a.version, err = a.serverVersion(); err != nil {
		a.release()
		hint := "is it the file of a server that still runs?"
		if errors.Is(err, syscall.ECONNREFUSED) {
			hint = "the server has ended; start it again: " + serveAgain(path)
		}
		return nil, fmt.Errorf("attach to the embedded server of %s: %w; %s", path, err, hint)
	}
	return a, nil
}

// serveAgain is the command that writes a kubeconfig.
func serveAgain(path string) string {
	return "crdlab serve --write-kubeconfig " + cluster.ShellWord(path)
}

func (a *Attached) serverVersion() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), attachTimeout)
	defer cancel()
	response, err := a.do(ctx, http.MethodGet, "/version", nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var v version.Info
	if err := json.NewDecoder(response.Body).Decode(&v); err != nil {
		return "", fmt.Errorf("read its version: %w", err)
	}
	return strings.TrimPrefix(v.GitVersion, "v"), nil
}

// Storage opens a reader of the stored values; storage.ErrNoAccess if etcd's socket cannot be seen from here.
func (a *Attached) Storage() (storage.Reader, error) {
	socket := strings.TrimPrefix(a.storage, "unix://")
	_, err := os.Stat(socket)
	if err == nil {
		return a.access.Storage()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w; does the server run as another user?", storage.ErrNoAccess, err)
	}
	if _, err := a.serverVersion(); err != nil {
		return nil, fmt.Errorf("%w: %w; the server has ended; start it again: %s", storage.ErrNoAccess, err, serveAgain(a.kubeconfig))
	}
	return nil, fmt.Errorf("%w: the server answers, but its etcd socket %s is gone: start crdlab serve again", storage.ErrNoAccess, socket)
}

// Close ends what was opened here and leaves the server alone.
func (a *Attached) Close(context.Context) error {
	a.release()
	a.removeWritten()
	return nil
}

// Reset deletes the scope's CRD and its objects through the API, whatever state they are in, and returns when they are
// gone. The server belongs to somebody else, so nothing but that is touched. It is cluster.ErrForeign if a CRD of that
// name does not carry the label that the lab gives to what it makes.
func (a *Attached) Reset(ctx context.Context, scope cluster.Scope) error {
	return cluster.Remove(ctx, a, scope.Resource, scope.Versions...)
}
