package embedded

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// RemoveLeftovers removes the folders of servers whose processes were killed, and returns their paths. It leaves those of
// living ones alone. Every start does the same on its way.
func RemoveLeftovers() ([]string, error) {
	state, err := stateFolder()
	if err != nil {
		return nil, err
	}
	var removed []string
	for _, place := range []struct{ parent, prefix string }{{os.TempDir(), "crdlab"}, {"/tmp", "crdlab"}, {state, "session"}} {
		before, _ := filepath.Glob(filepath.Join(place.parent, place.prefix+"-*"))
		removeLeftovers(place.parent, place.prefix)
		for _, path := range before {
			if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
				removed = append(removed, path)
			}
		}
	}
	return removed, nil
}
