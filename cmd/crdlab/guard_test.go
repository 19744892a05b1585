package main

import (
	"path/filepath"
	"testing"
)

// A lab that is killed takes its webhook along. Another process then sees to it that the CRD does not depend on it: else every
// read at the other version would be an error for everybody on the cluster.
func TestAKilledLabLeavesNoWebhookBehind(t *testing.T) {
	t.Parallel()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	server, _ := command(t, "serve", "--write-kubeconfig", kubeconfig)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		server.Process.Kill()
		server.Wait()
	}()
	if err := await(kubeconfig); err != nil {
		t.Fatal(err)
	}
	run, _ := command(t, "run", "webhook", "--kubeconfig", kubeconfig)
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	awaitStrategy(t, kubeconfig, "Webhook")
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	run.Wait()
	awaitStrategy(t, kubeconfig, "None")
}
