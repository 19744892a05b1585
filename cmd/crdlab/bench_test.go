package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The benchmarks print what was measured, and how much of what the lab allows itself that is (1 is all of it). They
// assert no time: a busy machine is no fault of the program. Run them on a quiet one:
//
//	go test -run '^$' -bench . -benchtime 20x ./cmd/crdlab

// allowed is what the lab allows itself on two cores.
const (
	allowedFirstFrame = 250 * time.Millisecond
	allowedReady      = time.Second
	allowedRun        = 5 * time.Second
	allowedStep       = 150 * time.Millisecond
	allowedChange     = 500 * time.Millisecond
	allowedKey        = 50 * time.Millisecond
	allowedMemory     = 200 << 20
	allowedBinary     = 95e6
)

// median reports the median of what was measured, and its part of what is allowed.
func median(b *testing.B, took []time.Duration, allowed time.Duration) {
	b.Helper()
	slices.Sort(took)
	m := took[len(took)/2]
	b.ReportMetric(float64(m.Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(m)/float64(allowed), "of-allowed")
	b.ReportMetric(0, "ns/op") // what the harness does around it says nothing
}

// quit leaves the lab between two measurements.
func (x *terminal) quit() {
	x.t.Helper()
	x.press("\x03")  // q would ask first where a step is under way
	_ = x.cmd.Wait() // 130: interrupted
}

func BenchmarkStartToFirstFrame(b *testing.B) {
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		x := openTerminal(b, 160, 45)
		x.see("crdlab", "enter begin")
		took = append(took, time.Since(began))
		x.quit()
	}
	median(b, took, allowedFirstFrame)
}

func BenchmarkStartToReadyServer(b *testing.B) {
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		x := openTerminal(b, 160, 45)
		x.see("● live")
		took = append(took, time.Since(began))
		x.quit()
	}
	median(b, took, allowedReady)
}

func BenchmarkRunMigrate(b *testing.B) {
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if out, err := exec.Command("crdlab", "run", "migrate", "-o", "json").CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		took = append(took, time.Since(began))
	}
	median(b, took, allowedRun)
}

// BenchmarkStepToScreen takes a step of one request, which the server answers within a few milliseconds.
func BenchmarkStepToScreen(b *testing.B) {
	x := openTerminal(b, 160, 45)
	x.begin()
	for i := range 5 {
		x.offers("enter apply")
		x.see(fmt.Sprintf("%d of 11", i+1))
		x.press(enter)
		x.offers("enter go on")
		x.press(enter)
	}
	x.offers("enter apply")
	x.see("6 of 11")
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		x.press(enter)
		x.offers("enter go on")
		took = append(took, time.Since(began))
		b.StopTimer()
		x.press("g")
		x.see("Go to")
		x.press("6")
		x.offers("enter apply")
		x.see("6 of 11")
		b.StartTimer()
	}
	median(b, took, allowedStep)
	x.quit()
}

// BenchmarkChangeToScreen is from a request of somebody else to its effect on the screen.
func BenchmarkChangeToScreen(b *testing.B) {
	x := openTerminal(b, 160, 45)
	x.begin()
	x.press(enter)
	x.offers("enter go on")
	send := others(b, x)
	n := 0
	var took []time.Duration
	for b.Loop() {
		n++
		color := fmt.Sprintf("color-%d", n)
		began := time.Now()
		send(`{"spec":{"color":"` + color + `"}}`)
		x.see(color)
		took = append(took, time.Since(began))
	}
	median(b, took, allowedChange)
	x.quit()
}

// others returns a function that patches alpha by the session's kubeconfig, as kubectl would.
func others(b *testing.B, x *terminal) func(patch string) {
	b.Helper()
	files, err := filepath.Glob(filepath.Join(x.state, "crdlab", "*", "kubeconfig"))
	if err != nil || len(files) != 1 {
		b.Fatalf("kubeconfigs: %v, %v", files, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", files[0])
	if err != nil {
		b.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		b.Fatal(err)
	}
	return func(patch string) {
		path := config.Host + "/apis/lab.example.com/v1alpha1/namespaces/crdlab/widgets/alpha"
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPatch, path, strings.NewReader(patch))
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/merge-patch+json")
		resp, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			b.Fatal(resp.Status)
		}
	}
}

// BenchmarkKeyDuringARewrite opens and closes the help while ten thousand objects are rewritten.
func BenchmarkKeyDuringARewrite(b *testing.B) {
	x := openTerminal(b, 160, 45, "--widgets", "10000")
	x.begin()
	for i := range 4 {
		x.offers("enter apply")
		x.see(fmt.Sprintf("%d of 11", i+1))
		x.press(enter)
		x.offers("enter go on")
		x.press(enter)
	}
	x.offers("enter apply")
	x.see("5 of 11")
	x.press(enter)
	x.see("rate")
	var took []time.Duration
	for b.Loop() {
		if !strings.Contains(x.screen(), "rate") && len(took) > 0 {
			continue // the rewrite is over: what comes now would say nothing
		}
		began := time.Now()
		x.press("?")
		x.see("Keys and signs")
		took = append(took, time.Since(began))
		x.press("\x1b")
		x.until("the help is gone", func(s string) bool { return !strings.Contains(s, "Keys and signs") })
	}
	b.ReportMetric(float64(len(took)), "keys")
	median(b, took, allowedKey)
	x.quit()
}

// BenchmarkIdleMemory is the resident memory of the program and the API server's process, with the first step applied.
func BenchmarkIdleMemory(b *testing.B) {
	program := release(b)
	for b.Loop() {
		x := openProgram(b, program, 160, 45)
		x.begin()
		x.press(enter)
		x.offers("enter go on")
		children, err := exec.Command("pgrep", "-P", strconv.Itoa(x.cmd.Process.Pid)).Output()
		if err != nil {
			b.Fatal(err)
		}
		pids := append(strings.Fields(string(children)), strconv.Itoa(x.cmd.Process.Pid))
		total := 0
		for _, pid := range pids {
			out, err := exec.Command("ps", "-o", "rss=", "-p", pid).Output()
			if err != nil {
				b.Fatal(err)
			}
			kib, err := strconv.Atoi(strings.TrimSpace(string(out)))
			if err != nil {
				b.Fatal(err)
			}
			total += kib << 10
		}
		b.ReportMetric(float64(total)/(1<<20), "MiB")
		b.ReportMetric(float64(total)/allowedMemory, "of-allowed")
		b.ReportMetric(0, "ns/op")
		x.quit()
	}
}

func BenchmarkBinarySize(b *testing.B) {
	for b.Loop() {
		info, err := os.Stat(release(b))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(info.Size())/1e6, "MB")
		b.ReportMetric(float64(info.Size())/allowedBinary, "of-allowed")
		b.ReportMetric(0, "ns/op")
	}
}

// release builds the program as it would be given to people: this binary has the tests in it.
func release(b *testing.B) string {
	b.Helper()
	out := filepath.Join(b.TempDir(), "crdlab")
	if said, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, said)
	}
	return out
}
