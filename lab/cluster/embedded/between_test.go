package embedded

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/crdlab/crdlab/lab/cluster/embedded/quiet"
)

// betweenCommand makes the test binary a process between a test and a server. It starts the server in one of two ways,
// says where it is, and then only lives until its standard input ends.
const betweenCommand = "__between"

// place is what the process between says about its server.
type place struct {
	Folder, Session, Kubeconfig string
	Child                       int // process id; 0 where the server runs in the process between
}

// between runs in the process between: spawn|start DIR STATEDIR [KUBECONFIG].
func between(args []string) int {
	fail := func(err error) int {
		fmt.Fprintln(quiet.Stderr, "between:", err)
		return 1
	}
	var where place
	var end func(context.Context) error
	switch args[0] {
	case "spawn":
		p, err := Spawn(context.Background(), SpawnOptions{Dir: args[1], StateDir: args[2]})
		if err != nil {
			return fail(err)
		}
		where, end = place{p.folder.path, p.session.path, p.kubeconfig, p.child.cmd.Process.Pid}, p.Close
		if len(args) > 3 {
			if err := p.WriteKubeconfig(args[3]); err != nil {
				return fail(err)
			}
		}
	case "start":
		s, err := Start(context.Background(), Options{Dir: args[1], StateDir: args[2]})
		if err != nil {
			return fail(err)
		}
		where, end = place{s.folder.path, s.session.path, s.kubeconfig, 0}, s.Close
	}
	if err := json.NewEncoder(os.Stdout).Encode(where); err != nil {
		return fail(err)
	}
	io.Copy(io.Discard, os.Stdin)
	if err := end(context.Background()); err != nil {
		return fail(err)
	}
	return 0
}

// betweenProcess is such a process as the test sees it.
type betweenProcess struct {
	place
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr *os.File
}

// startBetween runs a process between and waits for its server.
func startBetween(t *testing.T, how, dir, state string, more ...string) *betweenProcess {
	t.Helper()
	stderr, err := os.CreateTemp(t.TempDir(), "stderr")
	if err != nil {
		t.Fatal(err)
	}
	b := &betweenProcess{cmd: exec.Command(os.Args[0], append([]string{betweenCommand, how, dir, state}, more...)...), stderr: stderr}
	b.cmd.Stderr = stderr
	if b.stdin, err = b.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := b.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.cmd.Process.Kill(); b.cmd.Wait() })
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatalf("the process between: %v: %s", err, b.said(t))
	}
	if err := json.Unmarshal(line, &b.place); err != nil {
		t.Fatal(err)
	}
	return b
}

// end lets the process end by itself.
func (b *betweenProcess) end(t *testing.T) {
	t.Helper()
	b.stdin.Close()
	if err := b.cmd.Wait(); err != nil {
		t.Errorf("the process between: %v", err)
	}
}

// said is what has come out of its standard error.
func (b *betweenProcess) said(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(b.stderr.Name())
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// alive tells whether a process is there.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
