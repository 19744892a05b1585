package progress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/crdlab/crdlab/lab/cluster"
)

// ErrDamaged says that a file is no learner's progress, or is so no more.
var ErrDamaged = errors.New("not what crdlab has written")

const (
	extension = ".json"
	lockName  = ".lock"
	// maxSize is more than the progress of any track takes.
	maxSize = 1 << 20
	// between is how long is waited until somebody else's lock is looked at again; they hold it for a few milliseconds.
	between = 5 * time.Millisecond
)

// Folder is where progress is kept, one file a learner and track.
type Folder string

// Own is this user's, in the state folder. It need not exist.
func Own() (Folder, error) {
	state, err := cluster.StateDir()
	return Folder(filepath.Join(state, "progress")), err
}

// path is the file of a learner and track. Neither a learner's name nor a track's id has a _ or @ in it.
func (f Folder) path(learner, track string) string {
	name := strings.ReplaceAll(track, "/", "_")
	if learner != "" {
		name += "@" + learner
	}
	return filepath.Join(string(f), name+extension)
}

// Load returns what is kept of a learner in a track, nil where nothing is. A file that is damaged is put aside; the error,
// which wraps ErrDamaged, says where it is.
func (f Folder) Load(ctx context.Context, learner, track string) (*Progress, error) {
	if _, err := os.Stat(string(f)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	unlock, err := f.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return f.sound(learner, track)
}

// Update changes what is kept of a learner in a track, as it is at that moment: several crdlabs may do so at a time. The
// file is replaced as a whole. An error that wraps ErrDamaged says that it was done, and that what was there before was put
// aside.
func (f Folder) Update(ctx context.Context, learner, track string, change func(*Progress)) error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return cannotKeep(err)
	}
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	p, damaged := f.sound(learner, track)
	if damaged != nil && !errors.Is(damaged, ErrDamaged) {
		return damaged
	}
	if p == nil {
		p = &Progress{}
	}
	change(p)
	if err := f.write(p); err != nil {
		return cannotKeep(err)
	}
	return damaged
}

// sound reads a file, and puts it aside where it is damaged; the lock is held.
func (f Folder) sound(learner, track string) (*Progress, error) {
	path := f.path(learner, track)
	p, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil && !errors.Is(err, ErrDamaged):
		return nil, cannotKeep(err)
	case err == nil:
		return p, nil
	}
	aside := fmt.Sprintf("%s.damaged-%s", path, time.Now().UTC().Format("20060102-150405.000"))
	if failed := os.Rename(path, aside); failed != nil {
		return nil, cannotKeep(failed)
	}
	return nil, fmt.Errorf("%w; it was put aside as %s: mend it and put it back, or remove it", err, aside)
}

// write replaces a file as a whole; the lock is held.
func (f Folder) write(p *Progress) error {
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(string(f), ".progress-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(append(data, '\n'))
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), f.path(p.Learner, p.Track))
}

// lock waits until no other crdlab changes what is in the folder. The lock goes with the process that holds it.
func (f Folder) lock(ctx context.Context) (unlock func(), err error) {
	lock, err := os.OpenFile(filepath.Join(string(f), lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, cannotKeep(err)
	}
	tick := time.NewTicker(between)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { lock.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			lock.Close()
			return nil, cannotKeep(fmt.Errorf("lock %s: %w", lock.Name(), err))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			lock.Close()
			return nil, cannotKeep(fmt.Errorf("wait for another crdlab that holds %s: %w", lock.Name(), context.Cause(ctx)))
		}
	}
}

// cannotKeep says what to do.
func cannotKeep(err error) error {
	return fmt.Errorf("your progress cannot be kept: %w; see that the folder can be written, or set XDG_STATE_HOME to one that can", err)
}

// readFile reads one file.
func readFile(path string) (*Progress, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // to open a pipe would wait for its writer
		return nil, fmt.Errorf("%s is no file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err != nil {
		return nil, err
	}
	p := &Progress{}
	if len(data) > maxSize {
		err = errors.New("it is too large")
	} else if err = json.Unmarshal(data, p); err == nil {
		err = p.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s is %w: %w", path, ErrDamaged, err)
	}
	return p, nil
}

// Found is a file with a learner's progress.
type Found struct {
	Path string
	*Progress
}

// Read reads files, and in folders all whose names end with .json. What cannot be read is in the error, each for itself; the
// others are returned all the same. A file is read once, however often it is named.
func Read(paths ...string) (found []Found, err error) {
	seen := map[string]bool{}
	read := func(path string) {
		if whole, failed := filepath.Abs(path); failed == nil {
			if seen[whole] {
				return
			}
			seen[whole] = true
		}
		p, failed := readFile(path)
		if failed != nil {
			err = errors.Join(err, failed)
			return
		}
		found = append(found, Found{path, p})
	}
	for _, path := range paths {
		info, failed := os.Stat(path)
		if failed != nil || !info.IsDir() {
			read(path) // which says why it cannot
			continue
		}
		failed = filepath.WalkDir(path, func(path string, d fs.DirEntry, failed error) error {
			switch {
			case failed != nil:
				err = errors.Join(err, failed)
			case !d.IsDir() && filepath.Ext(path) == extension:
				read(path)
			}
			return nil
		})
		err = errors.Join(err, failed)
	}
	return found, err
}

// All reads all that is in the folder, as Read does; nothing where there is no folder.
func (f Folder) All() ([]Found, error) {
	if _, err := os.Stat(string(f)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return Read(string(f))
}
