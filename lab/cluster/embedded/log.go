package embedded

import (
	"flag"
	"io"
	"slices"
	"sync"

	"k8s.io/klog/v2"

	_ "github.com/crdlab/crdlab/lab/cluster/embedded/quiet" // before what it keeps quiet
)

// logs is where the Kubernetes libraries of this process log to: they have one logger for all servers.
var logs fanOut

func init() {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError) // a private one: the program's own flags are not klog's
	klog.InitFlags(flags)
	for name, value := range map[string]string{
		"logtostderr":     "false",
		"alsologtostderr": "false",
		"stderrthreshold": "FATAL",
		"one_output":      "true", // else an error is written once for each severity below it
	} {
		if err := flags.Set(name, value); err != nil {
			panic("klog has no flag " + name + ": " + err.Error()) // it was built with another klog
		}
	}
	klog.SetOutput(&logs)
}

// fanOut writes to every writer that was added, and nowhere while there is none.
type fanOut struct {
	mu      sync.Mutex
	writers []*io.Writer
}

func (f *fanOut) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.writers {
		(*w).Write(p) // a full disk must not stop the server, nor keep the line from the others
	}
	return len(p), nil
}

// add adds a writer until remove is called. A nil one is not added.
func (f *fanOut) add(w io.Writer) (remove func()) {
	if w == nil {
		return func() {}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writers = append(f.writers, &w)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.writers = slices.DeleteFunc(f.writers, func(o *io.Writer) bool { return o == &w })
	}
}
