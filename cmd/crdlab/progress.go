package main

import (
	"fmt"
	"os"
	"sync"

	"github.com/crdlab/crdlab/lab"
	"github.com/crdlab/crdlab/lab/report"
)

// progress is one line on standard error that says what a run is busy with, where that is a terminal. Whatever else is
// written takes it away first.
type progress struct {
	out *os.File // nil where nobody would see it

	mu    sync.Mutex
	line  string
	ended bool
	stop  chan struct{}
	done  sync.WaitGroup
}

func (a *app) progress() *progress {
	p := &progress{stop: make(chan struct{})}
	if isTerminal(a.err) && os.Getenv("TERM") != "dumb" && !a.plain {
		p.out = a.err
	}
	return p
}

// follow shows what a session is doing, until end.
func (p *progress) follow(s *lab.Session) {
	if p.out == nil {
		return
	}
	p.done.Go(func() {
		for {
			changed := s.Changed()
			p.say(doing(s.State()))
			select {
			case <-changed:
			case <-p.stop:
				return
			}
		}
	})
}

// doing says in one line what a session is busy with.
func doing(s *lab.State) string {
	out := s.Doing
	if p := s.Progress; p != nil && p.Migration != nil {
		out += fmt.Sprintf(": %s of %s; %s", report.Number(p.Done), report.Number(p.Total), p.Said())
	} else if p != nil && p.Total > 0 {
		out += fmt.Sprintf(": %s of %s, %s/s", report.Number(p.Done), report.Number(p.Total), report.Number(int(p.Rate)))
	}
	switch {
	case s.Progress != nil && s.Progress.Waiting != "":
		out += ": " + s.Progress.Waiting
	case s.Waiting != nil:
		out += fmt.Sprintf(": waiting for %s %s", s.Waiting.Method, s.Waiting.Path)
	}
	return out
}

// say replaces the line.
func (p *progress) say(line string) {
	if p.out == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || line == p.line {
		return
	}
	p.line = line
	p.show()
}

func (p *progress) show() {
	if p.line == "" {
		p.clear()
		return
	}
	fmt.Fprintf(p.out, "\r\x1b[K%s …", p.line)
}

func (p *progress) clear() { fmt.Fprint(p.out, "\r\x1b[K") }

// hide takes the line away while something else is written.
func (p *progress) hide(write func() error) error {
	if p.out == nil {
		return write()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	defer func() {
		if !p.ended {
			p.show()
		}
	}()
	return write()
}

// end takes the line away for good. It may be called twice.
func (p *progress) end() {
	if p.out == nil {
		return
	}
	p.mu.Lock()
	if !p.ended {
		p.ended = true
		close(p.stop)
		p.clear()
	}
	p.mu.Unlock()
	p.done.Wait()
}
