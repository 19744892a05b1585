package kind

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// engine puts a program that stands for a container runtime into a folder.
func engine(t *testing.T, dir, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestARuntimeThatAnswersIsFound(t *testing.T) {
	const (
		dockerRuns   = `case $1 in --version) echo "Docker version 27.1";; *) echo 27.1;; esac`
		dockerStands = `case $1 in --version) echo "Docker version 27.1";; *) echo "Cannot connect to the Docker daemon at unix:///x." >&2; echo "Is it running?" >&2; exit 1;; esac`
		podmanRuns   = `case $1 in --version) echo "podman version 5.4";; *) echo host;; esac`
		podmanFails  = `case $1 in --version) echo "podman version 5.4";; *) exit 125;; esac`
	)
	for name, c := range map[string]struct {
		docker, podman, wanted string
		found, says            string
	}{
		"Docker":                        {docker: dockerRuns, podman: podmanRuns, found: "docker"},
		"Docker stopped, Podman":        {docker: dockerStands, podman: podmanRuns, found: "podman"},
		"Podman in Docker's place":      {docker: podmanRuns, podman: podmanRuns, found: "podman"},
		"Podman wanted":                 {docker: dockerRuns, podman: podmanRuns, wanted: "podman", found: "podman"},
		"Docker stopped":                {docker: dockerStands, says: "docker version: Cannot connect to the Docker daemon at unix:///x. Is it running?; start Docker"},
		"Docker stopped, Podman failed": {docker: dockerStands, podman: podmanFails, says: "start Docker"},
		"none":                          {says: "none of them is installed; install one, or use --cluster embedded"},
		"the wanted one is not there":   {docker: dockerRuns, wanted: "podman", says: runtimeVariable + "=podman"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir)
			t.Setenv(runtimeVariable, c.wanted)
			if c.docker != "" {
				engine(t, dir, "docker", c.docker)
			}
			if c.podman != "" {
				engine(t, dir, "podman", c.podman)
			}
			r, err := findRuntime(t.Context())
			if c.found != "" {
				if err != nil || r.program != c.found {
					t.Errorf("%+v, %v; want %s", r, err, c.found)
				}
				return
			}
			if !errors.Is(err, ErrNoRuntime) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestErrNoRuntimeComesOutOfTheChild(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("PATH", t.TempDir())
	if _, err := List(t.Context()); !errors.Is(err, ErrNoRuntime) {
		t.Errorf("%v, want ErrNoRuntime", err)
	}
	if _, err := Create(t.Context(), Options{}); !errors.Is(err, ErrNoRuntime) {
		t.Errorf("%v, want ErrNoRuntime", err)
	}
}

func TestAHungRuntimeIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	begun := filepath.Join(dir, "begun")
	engine(t, dir, "docker", `case $1 in --version) echo "Docker version 27.1";; *) : >"`+begun+`"; exec sleep 1000;; esac`)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		_ = poll(t.Context(), func(context.Context) (bool, error) { _, err := os.Stat(begun); return err == nil, nil })
		interrupt()
	}()
	before := time.Now()
	if _, err := List(ctx); !errors.Is(err, context.Canceled) || time.Since(before) > runtimeTimeout {
		t.Errorf("%v after %s", err, time.Since(before))
	}
}

func TestTheLineAboutTheErrorIsShown(t *testing.T) {
	for output, want := range map[string]string{
		"": "",
		"Pulling\n\nError response from daemon: no such image\nbye\n": "Error response from daemon: no such image",
		"one\n  two  \n": "two",
	} {
		if got := errorLine(output); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}
