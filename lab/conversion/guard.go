package conversion

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/evidence"
	"github.com/crdlab/crdlab/lab/storage"
)

// GuardCommand is the first argument by which this package starts this program again, as a Guard's process. The program's
// main must look for it before anything else, and then end with what GuardMain returns.
const GuardCommand = "__guard"

const (
	// released is the line by which a guard is told that there is nothing left to do.
	released = "released"
	// guardPatience is how long a guard tries, in a process that nobody waits for.
	guardPatience = time.Minute
	guardInterval = time.Second
)

// Guard is a process that waits for the end of this one. If this one is killed, it detaches the CRD from the webhook that
// has died with it; an orderly end releases it.
type Guard struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

// guarded is what a guard is told at its start.
type guarded struct {
	Kubeconfig []byte // the content: the file may be gone when it is needed
	Resource   storage.Resource
	CABundle   []byte
}

// StandGuard starts a guard over a CRD that refers to the server, on the cluster of a kubeconfig.
func StandGuard(s *Server, kubeconfig string, resource storage.Resource) (*Guard, error) {
	data, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("guard %s: %w", resource, err)
	}
	order, err := json.Marshal(guarded{Kubeconfig: data, Resource: resource, CABundle: s.CABundle()})
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("guard %s: %w", resource, err)
	}
	g := &Guard{cmd: exec.Command(program, GuardCommand)}
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // no Ctrl-C is for it
	if g.stdin, err = g.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("guard %s: %w", resource, err)
	}
	if err := g.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the process that guards %s: %w", resource, err)
	}
	if _, err := g.stdin.Write(append(order, '\n')); err != nil {
		return nil, errors.Join(fmt.Errorf("guard %s: %w", resource, err), g.Release())
	}
	return g, nil
}

// Release ends the guard: the CRD is right, or this cluster is gone.
func (g *Guard) Release() error {
	_, _ = io.WriteString(g.stdin, released+"\n") // one that has died needs no word
	g.stdin.Close()
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("end the process that guards the CRD: %w", err)
	}
	return nil
}

// Leave lets the guard do its work, for the CRD could not be put right.
func (g *Guard) Leave() {
	g.stdin.Close()
	_ = g.cmd.Process.Release() // nobody waits for it
}

// GuardMain is the guard's process. It returns the exit code.
func GuardMain(stdin io.Reader) int {
	lines := bufio.NewReader(stdin)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return 0 // nothing was to be guarded yet
	}
	var order guarded
	if err := json.Unmarshal(line, &order); err != nil {
		return 2
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(order.Kubeconfig)
	if err != nil {
		return 2
	}
	if word, err := lines.ReadString('\n'); err == nil && word == released+"\n" {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), guardPatience)
	defer cancel()
	for {
		if err := order.detach(ctx, config); err == nil {
			return 0
		}
		select {
		case <-ctx.Done():
			return 2
		case <-time.After(guardInterval):
		}
	}
}

// detach leaves a CRD alone that somebody has pointed elsewhere meanwhile.
func (g *guarded) detach(ctx context.Context, config *rest.Config) error {
	client, err := evidence.NewClient(cluster.OwnConfig(config), nil)
	if err != nil {
		return err
	}
	defer client.Close()
	crd, err := readDefinition(ctx, client.As(evidence.ByProbe), g.Resource)
	if apierrors.IsNotFound(err) || errors.Is(err, syscall.ECONNREFUSED) { // the CRD has gone, or the server
		return nil
	}
	if err != nil {
		return err
	}
	if !PointsToLab(crd) || !bytes.Equal(crd.Spec.Conversion.Webhook.ClientConfig.CABundle, g.CABundle) {
		return nil
	}
	_, err = Detach(ctx, client, g.Resource)
	return err
}
