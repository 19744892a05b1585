// Command crdlab is a lab in which one does a CRD version migration on a live API server and sees, at each step, the
// same object at both versions, its bytes in etcd, and status.storedVersions.
//
// One file here is one command: flags in, exit code out. What the lab does is in the packages below lab/.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/crdlab/crdlab/lab/cluster/embedded"
	"github.com/crdlab/crdlab/lab/cluster/embedded/quiet"
	"github.com/crdlab/crdlab/lab/cluster/kind"
	"github.com/crdlab/crdlab/lab/conversion"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == embedded.ChildCommand {
		os.Exit(embedded.ChildMain(os.Args[2:], os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == kind.ChildCommand {
		os.Exit(kind.ChildMain(os.Args[2:], os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == conversion.GuardCommand {
		os.Exit(conversion.GuardMain(os.Stdin))
	}
	os.Exit(program())
}

// program runs a command. The first signal ends it in an orderly way; a second one at once.
func program() int {
	// Who reads our output may go first (| head). Without this, the write that finds out would end the process, and leave
	// its folders behind.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop)
	a := &app{in: os.Stdin, out: os.Stdout, err: quiet.Stderr}
	return a.execute(ctx, os.Args[1:])
}
