package cluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// StateDir is where this user's labs keep their folders: crdlab in XDG_STATE_HOME or ~/.local/state. It need not exist.
func StateDir() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // the specification says: ignore a relative one
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the state folder: %w; set XDG_STATE_HOME to a folder that can be written", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "crdlab"), nil
}
