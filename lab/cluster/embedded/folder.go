package embedded

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/crdlab/crdlab/lab/cluster"
)

const (
	// lockName is the file in a folder whose lock says that somebody still lives there.
	lockName = "lock"
	// socketPrefix and sessionPrefix begin the names of the folders for etcd and for a session.
	socketPrefix  = "crdlab-etcd"
	sessionPrefix = "session"
	// maxSocketPath is how long a unix socket's path may be on every system that this runs on, in bytes; fallbackDir is
	// where sockets go if it would be longer.
	maxSocketPath = 103
	fallbackDir   = "/tmp"
	// unlockedGrace is how old a folder without a lock file must be until it counts as left over: between making the
	// folder and making the lock its owner may have been interrupted, but not for longer.
	unlockedGrace = time.Minute
)

// folder is a private folder that is removed when its owner is gone: by the owner itself, or by the next one who makes a
// folder in the same place, who can tell by the lock that nobody holds it any more. The lock belongs to the open file, so
// a process and its child share it, and it is free only when both have ended, in whatever way.
type folder struct {
	path string
	lock *os.File
}

// newFolder makes parent/prefix-RANDOM, 0700, locked, and removes what dead owners left beside it.
func newFolder(parent, prefix string) (*folder, error) {
	// Its path is told to others, who may be elsewhere.
	dir, err := filepath.Abs(parent)
	if err != nil {
		return nil, folderError(parent, err)
	}
	parent = dir
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, folderError(parent, err)
	}
	_, _ = removeLeftovers(parent, prefix) // what cannot be removed is no reason not to start
	for {
		path := filepath.Join(parent, prefix+"-"+randomName())
		if err := os.Mkdir(path, 0o700); errors.Is(err, fs.ErrExist) {
			continue
		} else if err != nil {
			return nil, folderError(parent, err)
		}
		f, err := lockFolder(path)
		if err != nil {
			os.RemoveAll(path)
			return nil, folderError(parent, err)
		}
		if f != nil {
			return f, nil
		}
		// Somebody who looked for leftovers took the lock before its owner could: another try, another name.
	}
}

// lockFolder makes and takes the lock of a new folder; nil without an error if somebody else was faster.
func lockFolder(path string) (*folder, error) {
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	held := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
	if _, err := os.Stat(lock.Name()); !held || err != nil {
		lock.Close()
		return nil, nil
	}
	return &folder{path: path, lock: lock}, nil
}

// inherit is the folder of another process whose open lock this one was given.
func inherit(path string, lock *os.File) *folder { return &folder{path: path, lock: lock} }

// remove removes the folder and gives up the lock. It may be called twice.
func (f *folder) remove() error {
	if f == nil {
		return nil
	}
	err := os.RemoveAll(f.path)
	f.lock.Close()
	if err != nil {
		return fmt.Errorf("remove %s: %w", f.path, err)
	}
	return nil
}

// empty removes what is in the folder but the lock. A folder that was removed is made again, locked.
func (f *folder) empty() error {
	entries, err := os.ReadDir(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return f.restore()
	}
	for _, e := range entries {
		if e.Name() != lockName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(f.path, e.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("empty %s: %w", f.path, err)
	}
	return nil
}

func (f *folder) restore() error {
	if err := os.Mkdir(f.path, 0o700); err != nil {
		return folderError(filepath.Dir(f.path), err)
	}
	again, err := lockFolder(f.path)
	if err == nil && again == nil {
		err = errors.New("another process took it for a leftover")
	}
	if err != nil {
		return folderError(filepath.Dir(f.path), err)
	}
	f.lock = again.lock
	return nil
}

// RemoveLeftovers removes what servers whose processes are dead have left in the usual places, and returns the paths.
// Every start does this, too. Those that run are not touched, and what others own is not an error.
func RemoveLeftovers() (removed []string, err error) {
	state, err := cluster.StateDir()
	if err != nil {
		return nil, err
	}
	places := [][2]string{{os.TempDir(), socketPrefix}, {state, sessionPrefix}}
	if os.TempDir() != fallbackDir {
		places = append(places, [2]string{fallbackDir, socketPrefix})
	}
	for _, place := range places {
		gone, failed := removeLeftovers(place[0], place[1])
		removed, err = append(removed, gone...), errors.Join(err, failed)
	}
	return removed, err
}

// removeLeftovers removes the folders of owners who are dead. What cannot be looked at belongs to somebody else.
func removeLeftovers(parent, prefix string) (removed []string, err error) {
	paths, _ := filepath.Glob(filepath.Join(parent, prefix+"-*"))
	for _, path := range paths {
		left, failed := removeLeftover(path)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("remove what a dead server left: %w", failed))
		} else if left {
			removed = append(removed, path)
		}
	}
	return removed, err
}

func removeLeftover(path string) (removed bool, err error) {
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err == nil {
		defer lock.Close()
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			return false, nil
		}
		return true, os.RemoveAll(path)
	}
	if info, e := os.Lstat(path); errors.Is(err, fs.ErrNotExist) && e == nil && unlockedLeftover(info) {
		// The lock would have been the first thing in it: what is not empty is something else.
		return os.Remove(path) == nil, nil
	}
	return false, nil
}

// unlockedLeftover tells a folder whose maker died before locking it from one that is being made, and from a file that
// only has such a name.
func unlockedLeftover(info fs.FileInfo) bool {
	return info.Mode() == fs.ModeDir|0o700 && time.Since(info.ModTime()) > unlockedGrace
}

// socketFolder makes the folder for etcd's data and socket in parent, or in /tmp where a socket's path would be too long
// for the system.
func socketFolder(parent string) (*folder, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	dir, err := filepath.Abs(parent)
	if err != nil {
		return nil, folderError(parent, err)
	}
	if longest := filepath.Join(dir, socketPrefix+"-"+randomName(), socketName); len(longest) > maxSocketPath {
		parent = fallbackDir
	}
	return newFolder(parent, socketPrefix)
}

// sessionFolder makes the folder for a session's kubeconfig and log in parent, or in the user's state folder.
func sessionFolder(parent string) (*folder, error) {
	if parent == "" {
		var err error
		if parent, err = cluster.StateDir(); err != nil {
			return nil, err
		}
	}
	f, err := newFolder(parent, sessionPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a folder for the session's kubeconfig: %w", err)
	}
	return f, nil
}

// folderError says what to do about a folder that cannot be made.
func folderError(parent string, err error) error {
	hint := "choose another folder with TMPDIR (sockets and data) or XDG_STATE_HOME (kubeconfig)"
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		hint = "free some space there, or " + hint
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		hint = "it cannot be written; " + hint
	}
	return fmt.Errorf("make a private folder in %s: %w; %s", parent, err, hint)
}

func randomName() string {
	b := make([]byte, 5)
	rand.Read(b)
	return hex.EncodeToString(b)
}
