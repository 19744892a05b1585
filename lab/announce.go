package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/storage"
	"github.com/crdlab/crdlab/manifests"
)

// ErrSeveral says that several labs of this user's serve a webhook for one resource.
var ErrSeveral = errors.New("several labs serve a webhook for it")

// Announced is where the webhook of a lab that runs is to be found by a CRD: what crdlab manifests, in another process, fills
// in. It is fs.ErrNotExist where no lab of this user's serves one for that resource, and ErrSeveral where it is not known
// which is meant. Nothing in it is secret.
func Announced(resource storage.Resource) (*manifests.Webhook, error) {
	pattern, err := announcement(resource, "*")
	if err != nil {
		return nil, err
	}
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, stale)
	if len(found) == 0 {
		return nil, fmt.Errorf("the webhook for %s: %w", resource, fs.ErrNotExist)
	}
	if len(found) > 1 {
		return nil, fmt.Errorf("%s: %w", resource, ErrSeveral)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		return nil, err
	}
	var w manifests.Webhook
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, fmt.Errorf("read %s: %w", found[0], err)
	}
	return &w, nil
}

// stale says that an announcement was left by a process that was killed, and removes it.
func stale(path string) bool {
	name := strings.TrimSuffix(path, ".json")
	pid, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if err == nil && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	_ = os.Remove(path) // another process may have been faster
	return true
}

// RemoveAnnouncements removes those that killed labs have left, and names them.
func RemoveAnnouncements() ([]string, error) {
	dir, err := cluster.StateDir()
	if err != nil {
		return nil, err
	}
	found, err := filepath.Glob(filepath.Join(dir, "webhook-*.json"))
	return slices.DeleteFunc(found, func(path string) bool { return !stale(path) }), err
}

// announcement is the file of a process; each has one of its own.
func announcement(resource storage.Resource, pid string) (string, error) {
	dir, err := cluster.StateDir()
	return filepath.Join(dir, "webhook-"+resource.String()+"-"+pid+".json"), err
}

// announce tells this user's other processes where the webhook is.
func (s *Session) announce() error {
	path, err := announcement(s.state.Resource, strconv.Itoa(os.Getpid()))
	if err != nil {
		return err
	}
	data, err := json.Marshal(lesson.ManifestWebhook(s.webhook.ClientConfig()))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("tell where the webhook is: %w", err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("tell where the webhook is: %w", err)
	}
	s.announced = true
	return nil
}

// withdraw takes that back.
func (s *Session) withdraw() error {
	path, err := announcement(s.state.Resource, strconv.Itoa(os.Getpid()))
	if err != nil || !s.announced {
		return err
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
