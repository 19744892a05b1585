package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/steps"
)

func (a *app) serve() *cobra.Command {
	var port int
	var path string
	c := &cobra.Command{
		Use:   "serve",
		Short: "The embedded API server alone, until Ctrl-C",
		Long: "Runs the API server of the lab in the foreground, for kubectl, for crdlab run and\n" +
			"crdlab check with --kubeconfig, and for whatever else speaks to an API server\n" +
			"with CRDs. Nothing of it is left afterwards.",
		Example: "crdlab serve --write-kubeconfig lab.kubeconfig",
		Args:    arguments(0, 0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			if port < 0 || port > 65535 {
				return usage("--port %d is no port; give one from 1024 to 65535, or 0 for a free one", port)
			}
			return a.serveUntilEnd(c.Context(), port, path)
		},
	}
	c.Flags().IntVar(&port, "port", 0, "the port on the loopback; 0 is a free one")
	c.Flags().StringVar(&path, "write-kubeconfig", "", "write the kubeconfig to this file, and remove it at the end")
	_ = c.MarkFlagFilename("write-kubeconfig")
	return c
}

// serveUntilEnd runs the server until a signal, which is a good end, or until it fails.
func (a *app) serveUntilEnd(ctx context.Context, port int, path string) (err error) {
	server, err := embedded.Spawn(ctx, embedded.SpawnOptions{Port: port, WayOn: "start crdlab serve again"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closing(ctx, server.Close)) }()
	kubeconfig, _ := server.Kubeconfig()
	if path != "" {
		if err := server.WriteKubeconfig(path); err != nil {
			return err
		}
		if kubeconfig, err = filepath.Abs(path); err != nil { // it is for other terminals
			return err
		}
	}
	if err := a.tellServer(server, kubeconfig); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		err := closing(ctx, server.Close)
		if _, there := os.Lstat(path); path != "" && there == nil {
			a.note("Ended; %s is left, because it is no longer this server's alone.", path)
		} else if err == nil {
			a.note("Ended; nothing of it is left.")
		}
		return err
	case <-server.Ended():
		return server.Err()
	}
}

// tellServer says how the server is used. The lines for a shell can be pasted or evaluated; the rest is comment.
func (a *app) tellServer(server *embedded.Process, kubeconfig string) error {
	info := server.Info()
	track := steps.Tracks()[0]
	_, err := fmt.Fprintf(a.out, `# The API server of Kubernetes %s is at %s until Ctrl-C.
export KUBECONFIG=%s
# In another terminal, for example:
#   kubectl get crd
#   crdlab run %s --kubeconfig %s
#   crdlab check %s.%s --kubeconfig %s
`, info.Version, server.Config().Host, cluster.ShellWord(kubeconfig), track.ID, cluster.ShellWord(kubeconfig), track.Plural, lab.DefaultGroup, cluster.ShellWord(kubeconfig))
	return err
}
