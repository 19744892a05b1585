package embedded

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// shortDir is a temporary folder with a short path, in which a socket may lie.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "t")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func makeFolder(t *testing.T, parent string) *folder {
	t.Helper()
	f, err := newFolder(parent, socketPrefix)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestLeftoversOfTheDeadAreRemovedAndThoseOfTheLivingAreNot(t *testing.T) {
	parent := t.TempDir()
	living, dead := makeFolder(t, parent), makeFolder(t, parent)
	defer living.remove()
	dead.lock.Close() // as the end of a process does

	unlocked := filepath.Join(parent, socketPrefix+"-unlocked") // its owner died before the lock was there
	young := filepath.Join(parent, socketPrefix+"-young")       // or has not got so far yet
	foreign := filepath.Join(parent, socketPrefix+"-foreign")   // not a folder at all
	full := filepath.Join(parent, socketPrefix+"-full")         // another program's
	for _, dir := range []string{unlocked, young, full, filepath.Join(full, "sub")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-2 * unlockedGrace)
	for _, path := range []string{unlocked, foreign, full} {
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
	}
	defer makeFolder(t, parent).remove()
	for path, want := range map[string]bool{
		living.path: true, dead.path: false, unlocked: false, young: true, foreign: true, full: true,
	} {
		if exists(path) != want {
			t.Errorf("%s is there: %v, want %v", filepath.Base(path), !want, want)
		}
	}
}

func TestAFolderIsPrivateAndRemovedOnce(t *testing.T) {
	f := makeFolder(t, t.TempDir())
	info, err := os.Stat(f.path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode %o, want 700", info.Mode().Perm())
	}
	for range 2 {
		if err := f.remove(); err != nil || exists(f.path) {
			t.Errorf("removed: %v, still there: %v", err, exists(f.path))
		}
	}
}

func TestAnEmptiedFolderKeepsItsLock(t *testing.T) {
	parent := t.TempDir()
	f := makeFolder(t, parent)
	defer f.remove()
	inside := filepath.Join(f.path, "etcd")
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, removed := range []bool{false, true} {
		if removed {
			f.remove()
		}
		if err := f.empty(); err != nil {
			t.Fatal(err)
		}
		if _, err := removeLeftovers(parent, socketPrefix); err != nil {
			t.Error(err)
		}
		if exists(inside) || !exists(f.path) {
			t.Errorf("removed before: %v; content there: %v, folder there: %v", removed, exists(inside), exists(f.path))
		}
	}
}

func TestASocketWithTooLongAPathGoesToTmp(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("x", maxSocketPath))
	f, err := socketFolder(long)
	if err != nil {
		t.Fatal(err)
	}
	defer f.remove()
	if filepath.Dir(f.path) != "/tmp" {
		t.Errorf("made in %s, want /tmp", filepath.Dir(f.path))
	}
	dir := shortDir(t)
	near, err := socketFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer near.remove()
	if filepath.Dir(near.path) != dir {
		t.Errorf("made in %s, want %s", filepath.Dir(near.path), dir)
	}
}

func TestTheStateFolderIsWhereTheSpecificationSays(t *testing.T) {
	home, state := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	for set, want := range map[string]string{
		state:      filepath.Join(state, "crdlab"),
		"relative": filepath.Join(home, ".local/state/crdlab"),
		"":         filepath.Join(home, ".local/state/crdlab"),
	} {
		t.Setenv("XDG_STATE_HOME", set)
		f, err := sessionFolder("")
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Dir(f.path) != want {
			t.Errorf("XDG_STATE_HOME=%q: %s, want a folder in %s", set, f.path, want)
		}
		f.remove()
	}
}

func TestLeftoversInTheUsualPlacesAreNamed(t *testing.T) {
	temp, state := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("XDG_STATE_HOME", state)
	session, err := sessionFolder("")
	if err != nil {
		t.Fatal(err)
	}
	living, dead := makeFolder(t, temp), makeFolder(t, temp)
	defer living.remove()
	dead.lock.Close()
	session.lock.Close()
	removed, err := RemoveLeftovers()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{dead.path: true, session.path: true, living.path: false} {
		if slices.Contains(removed, path) != want || exists(path) == want {
			t.Errorf("%s: named %v, want %v; still there: %v", path, !want, want, exists(path))
		}
	}
}

func TestFoldersHaveAbsolutePaths(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, maker := range map[string]func(string) (*folder, error){"sockets": socketFolder, "session": sessionFolder} {
		f, err := maker(name)
		if err != nil {
			t.Fatal(err)
		}
		if !filepath.IsAbs(f.path) || !exists(filepath.Join(name, filepath.Base(f.path))) {
			t.Errorf("%s is not an absolute path in %s", f.path, name)
		}
		f.remove()
	}
}
