// Package quiet keeps what the Kubernetes and etcd libraries print away from the terminal.
//
// Some of them take hold of os.Stderr in an init and cannot be told otherwise later, and a line of theirs in the middle
// of a terminal program ruins its screen. Go initialises packages in the order of their import paths as soon as what
// they import is ready; this one needs nothing but os, and its path sorts before go.etcd.io, k8s.io and the standard
// library's log, so os.Stderr is another file by the time that they look at it. It must not import anything else.
//
// What a crash of the runtime writes goes to file descriptor 2, past os.Stderr, and stays visible.
package quiet

import "os"

// ChildCommand is the first argument that makes this program the child process that runs the API server. That process
// has no terminal, its standard error is a log file, and what the libraries print belongs there.
const ChildCommand = "__embedded"

// Stderr is the standard error that the process was started with: what the program itself has to say goes here.
var Stderr = os.Stderr

func init() {
	if len(os.Args) > 1 && os.Args[1] == ChildCommand {
		return
	}
	// Where there is no null device, a nil file swallows what is written to it as well.
	os.Stderr, _ = os.OpenFile(os.DevNull, os.O_WRONLY, 0)
}
