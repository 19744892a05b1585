package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/crdlab/crdlab/lab/cluster"
	"github.com/crdlab/crdlab/lab/lesson"
	"github.com/crdlab/crdlab/lab/storage"
	"github.com/crdlab/crdlab/manifests"
)

// Announced is where the webhook of a lab that runs is to be found by a CRD: what crdlab manifests, in another process, fills
// in. It is fs.ErrNotExist where no lab of this user's serves one for that resource. Nothing in it is secret.
func Announced(resource storage.Resource) (*manifests.Webhook, error) {
	path, err := announcement(resource)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var w manifests.Webhook
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return &w, nil
}

func announcement(resource storage.Resource) (string, error) {
	dir, err := cluster.StateDir()
	return filepath.Join(dir, "webhook-"+resource.String()+".json"), err
}

// announce tells this user's other processes where the webhook is.
func (s *Session) announce() error {
	path, err := announcement(s.state.Resource)
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
	s.announced = data
	return nil
}

// withdraw takes that back, unless another lab has told where its own is meanwhile.
func (s *Session) withdraw() error {
	path, err := announcement(s.state.Resource)
	if err != nil || s.announced == nil {
		return err
	}
	now, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(now) != string(s.announced) {
		return nil
	}
	return errors.Join(err, os.Remove(path))
}
