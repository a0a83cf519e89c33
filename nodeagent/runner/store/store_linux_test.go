package store_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner/store"
	"github.com/candor-grid/candor/nodeagent/runner/tree"
)

// kept is a store in a temporary directory of the test. It believes that an attempt runs if the map `runs` has true for
// this attempt.
type kept struct {
	*store.Store
	t    *testing.T
	dir  string
	runs map[messages.Attempt]bool
}

// open opens the store in a directory. Of the jobs without running tasks, this store keeps the directories of only two.
func open(t *testing.T, dir string) *kept {
	t.Helper()
	k := &kept{t: t, dir: dir, runs: map[messages.Attempt]bool{}}
	var err error
	k.Store, err = store.Open(store.Config{Dir: dir, KeepJobs: 2, MostOutput: 1 << 20,
		Runs: func(a messages.Attempt) bool { return k.runs[a] }, Closing: func() bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func attempt(id messages.JobID, index uint32) messages.Attempt {
	return messages.Attempt{Task: messages.TaskRef{Job: id, Index: index}, Number: 1}
}

// ran leaves the files of an ended attempt in a job's directory: a standard output, and a working directory with one
// file. The argument `age` is the time since the last change.
func (k *kept) ran(account messages.Name, a messages.Attempt, bytes int, age time.Duration) {
	k.t.Helper()
	j := k.Acquire(a.Task.Job, account)
	defer k.Release(j)
	if _, err := k.Program(j, &agent.Program{Job: a.Task.Job, Account: account, Command: []string{"true"}}); err != nil {
		k.t.Fatal(err)
	}
	dir, then := store.KeptDir(k.dir, account, a), time.Now().Add(-age)
	out := strings.TrimSuffix(dir, ".dir") + ".out"
	put(k.t, out, strings.Repeat("x", bytes))
	put(k.t, filepath.Join(dir, "file"), "left")
	for _, path := range []string{out, dir} {
		if err := os.Chtimes(path, then, then); err != nil {
			k.t.Fatal(err)
		}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (k *kept) used(account messages.Name) int64 {
	k.t.Helper()
	entries, err := filepath.Glob(filepath.Join(k.dir, "jobs", account, "*", "0.*"))
	if err != nil {
		k.t.Fatal(err)
	}
	meter := tree.NewMeter(math.MaxInt64, func() bool { return true })
	for _, path := range entries {
		meter.AddEntry(path)
	}
	return meter.Usage().Bytes
}

func (k *kept) has(want ...messages.Attempt) {
	k.t.Helper()
	var got []messages.Attempt
	for id := range messages.JobID(5) {
		for index := range uint32(4) {
			if file, err := k.OpenOutput(attempt(id, index), 0); err == nil {
				file.Close()
				got = append(got, attempt(id, index))
			}
		}
	}
	if !slices.Equal(got, want) {
		k.t.Errorf("there are outputs of %v, want %v", got, want)
	}
}

// TestTheOldestJobsAreRemoved checks a store that has more bytes than its bound. It must remove the files of the job
// that was unused for the longest time. It must keep the files of a job with a running task.
func TestTheOldestJobsAreRemoved(t *testing.T) {
	k := open(t, t.TempDir())
	k.ran("ann", attempt(1, 0), 10, 0)
	used := k.Acquire(1, "ann")
	for id := messages.JobID(2); id <= 4; id++ {
		k.ran("ann", attempt(id, 0), 10, 0)
	}
	k.has(attempt(1, 0), attempt(3, 0), attempt(4, 0))
	if !k.IsRemoving() {
		t.Error("no directory waits for its removal")
	}
	if !k.Release(used) {
		t.Error("Release did not report that there are directories to remove")
	}
	k.RemoveMoved()
	k.has(attempt(1, 0), attempt(4, 0))
	if left, err := os.ReadDir(filepath.Join(k.dir, "jobs", "ann")); err != nil || len(left) != 2 || k.IsRemoving() {
		t.Errorf("%v are left (%v), removing: %v", left, err, k.IsRemoving())
	}
}

// TestAStoreIsOpenedAgain checks that a second run knows the jobs of the first run, and finishes its removals.
func TestAStoreIsOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	k := open(t, dir)
	for id := messages.JobID(1); id <= 3; id++ { // the store moves job 1 and does not remove it
		k.ran("ann", attempt(id, 0), 10, 0)
	}
	put(t, filepath.Join(dir, "jobs", "stray"), "no directory")
	put(t, filepath.Join(dir, "jobs", "ann", "name", "x"), "no number")
	k = open(t, dir)
	k.has(attempt(2, 0), attempt(3, 0))
	if owner, known := k.Owner(3); owner != "ann" || !known {
		t.Errorf("job 3 is of %q, known: %v", owner, known)
	}
	if _, known := k.Owner(1); known {
		t.Error("job 1 is known, but its directory was to be removed")
	}
	k.RemoveMoved()
	if left, _ := filepath.Glob(filepath.Join(dir, "jobs", ".removed-*")); len(left) != 0 {
		t.Errorf("%v are left of the first run", left)
	}
}

// TestANumberOfAnotherAccount stores files of a job. Then a job of another account gets the same job number. It must
// not read the files of the first job. These files must be removed when the last task of the first job has ended.
func TestANumberOfAnotherAccount(t *testing.T) {
	k := open(t, t.TempDir())
	k.ran("ann", attempt(1, 0), 10, 0)
	used := k.Acquire(1, "ann")
	defer k.Release(k.Acquire(1, "bob"))
	k.has()
	if owner, _ := k.Owner(1); owner != "bob" {
		t.Errorf("job 1 is of %q, want bob", owner)
	}
	k.RemoveMoved()
	if _, err := os.Stat(used.Dir); err != nil {
		t.Errorf("the directory of a running task is gone: %v", err)
	}
	k.Release(used)
	k.RemoveMoved()
	if _, err := os.Stat(used.Dir); !os.IsNotExist(err) {
		t.Errorf("ann's directory is still there: %v", err)
	}
}

// TestBoundRemovesTheOldestFiles checks that an account above its bound loses first its idle jobs, and then the oldest
// attempts. Files of running attempts must stay. Files that are not stored in the depot yet must stay too.
func TestBoundRemovesTheOldestFiles(t *testing.T) {
	all := []messages.Attempt{attempt(1, 0), attempt(1, 1), attempt(1, 2), attempt(2, 0), attempt(3, 0)}
	without := func(gone ...messages.Attempt) []messages.Attempt {
		return slices.DeleteFunc(slices.Clone(all), func(a messages.Attempt) bool { return slices.Contains(gone, a) })
	}
	for _, c := range []struct {
		what   string
		eights int64 // the bound, in eighths of what ann's four attempts keep
		hold   bool  // the outputs of job 2 are not stored yet
		want   []messages.Attempt
	}{
		{"room for all", 8, false, all},
		{"an idle job goes first", 7, false, without(attempt(2, 0))},
		{"then the oldest attempt", 5, false, without(attempt(2, 0), attempt(1, 2))},
		{"outputs that are not stored", 7, true, without(attempt(1, 2))},
		{"all but what runs", 1, false, without(attempt(2, 0), attempt(1, 1), attempt(1, 2))},
		{"all but what runs or is not stored", 1, true, without(attempt(1, 1), attempt(1, 2))},
	} {
		t.Run(c.what, func(t *testing.T) {
			k := open(t, t.TempDir())
			used := k.Acquire(1, "ann")
			defer k.Release(used)
			for index, age := range []time.Duration{3 * time.Hour, time.Hour, 2 * time.Hour} {
				k.ran("ann", attempt(1, uint32(index)), 100<<10, age)
			}
			k.runs[attempt(1, 0)] = true
			k.ran("ann", attempt(2, 0), 100<<10, 0)
			k.ran("bob", attempt(3, 0), 1, 0)
			if c.hold {
				k.Hold(attempt(2, 0))
			}
			k.Bound(k.used("ann") * c.eights / 8)
			k.has(c.want...)
		})
	}
}

// TestFreeTakesFromTheAccountThatKeepsMost checks which account loses files when the disk is nearly full. An account
// that keeps less than a limit must lose no files.
func TestFreeTakesFromTheAccountThatKeepsMost(t *testing.T) {
	const large = 100 << 10
	k := open(t, t.TempDir())
	k.ran("ann", attempt(1, 0), large, 0)
	k.ran("bob", attempt(2, 0), 2*large, 0)
	k.Bound(1 << 30) // this call measures what the accounts keep
	if freed := k.Free(1, 4*large); freed != 0 {
		t.Errorf("%d bytes of accounts below the limit were freed", freed)
	}
	k.has(attempt(1, 0), attempt(2, 0))
	keeps := k.used("bob")
	if freed := k.Free(1, 0); freed != keeps {
		t.Errorf("%d bytes were freed, want the %d that bob keeps", freed, keeps)
	}
	k.has(attempt(1, 0))
}

// TestNamesThatAreNoAccount checks that an account's name cannot make a directory outside of the directory of jobs.
func TestNamesThatAreNoAccount(t *testing.T) {
	k := open(t, t.TempDir())
	for id, account := range []messages.Name{"..", ".removed-x", "a/b", "../ann"} {
		j := k.Acquire(messages.JobID(id+1), account)
		if _, err := k.Program(j, &agent.Program{Command: []string{"true"}}); err == nil || !strings.Contains(err.Error(), "must not begin with a dot, or have a slash") {
			t.Errorf("account %q: %v", account, err)
		}
		k.Release(j)
	}
	if left, err := os.ReadDir(filepath.Join(k.dir, "jobs")); err != nil || len(left) != 0 {
		t.Errorf("there are %v, %v", left, err)
	}
}

// TestOutputsThatAreNoFiles puts links and a pipe where outputs are expected. Nothing may be read through them, and the
// reader must not wait.
func TestOutputsThatAreNoFiles(t *testing.T) {
	k := open(t, t.TempDir())
	secret := filepath.Join(t.TempDir(), "secret")
	put(t, secret, "secret")
	k.ran("ann", attempt(1, 0), 1, 0)
	for what, make := range map[string]func(path string) error{
		"a link":      func(path string) error { return os.Symlink(secret, path) },
		"a pipe":      func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		path := filepath.Join(k.dir, "jobs", "ann", "1", "0.1.1.out")
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		if file, err := k.OpenOutput(attempt(1, 1), 0); err == nil {
			t.Errorf("%s was opened as an output", what)
			file.Close()
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Dir(secret), filepath.Join(k.dir, "jobs", "ann", "1", "out")); err != nil {
		t.Fatal(err)
	}
	if root, err := store.OpenRoot(filepath.Join(k.dir, "jobs", "ann", "1", "out")); err == nil {
		t.Error("a link that leads out of the job's directory was followed")
		root.Close()
	}
}

// TestALinkIsRemovedAndNotWhatItNames removes a job in whose directory a task left a link. The files to which the link
// leads must stay.
func TestALinkIsRemovedAndNotWhatItNames(t *testing.T) {
	k := open(t, t.TempDir())
	other := t.TempDir()
	put(t, filepath.Join(other, "file"), "of another user")
	k.ran("ann", attempt(1, 0), 1, 0)
	for _, name := range []string{"link", "0.1.1.dir", "0.2.1.out"} {
		if err := os.Symlink(other, filepath.Join(k.dir, "jobs", "ann", "1", name)); err != nil {
			t.Fatal(err)
		}
	}
	k.Bound(0)
	if _, err := os.Stat(filepath.Join(other, "file")); err != nil {
		t.Errorf("the file of another user is gone: %v", err)
	}
	if _, err := os.Stat(filepath.Join(k.dir, "jobs", "ann", "1")); !os.IsNotExist(err) {
		t.Errorf("the job's directory is still there: %v", err)
	}
}

// TestAttemptsWithoutOutput checks that an attempt without output is known, also after the store was opened again. If
// lines are missing in the file with the list of such attempts, only the attempts on these lines may be unknown.
func TestAttemptsWithoutOutput(t *testing.T) {
	dir := t.TempDir()
	k := open(t, dir)
	k.ran("ann", attempt(1, 0), 1, 0)
	j := k.Acquire(1, "ann")
	for _, name := range []string{"0.1.1", "0.2.1"} {
		if err := j.Note(name); err != nil {
			t.Fatal(err)
		}
	}
	k.Release(j)
	k.CloseIdle()
	list := filepath.Join(dir, "jobs", "ann", "1", "silent")
	for what, want := range map[string][]bool{"whole": {true, true, true, false}, "cut": {true, true, false, false}} {
		if what == "cut" {
			put(t, list, "0.1.1\n0.2")
		}
		for index, ran := range want {
			if got := open(t, dir).RanHere(attempt(1, uint32(index))); got != ran {
				t.Errorf("the %s list: attempt %d ran here: %v, want %v", what, index, got, ran)
			}
		}
		put(t, list, "0.1.1\n0.2.1\n")
	}
}

// TestInputsAreCopiedAndChecked places the inputs of tasks. For a damaged file there must be an error, and the file
// must be removed, so that it is fetched again.
func TestInputsAreCopiedAndChecked(t *testing.T) {
	k := open(t, t.TempDir())
	input := func(name, content, really string, executable bool) jobmsg.File {
		sum := sha256.Sum256([]byte(content))
		f := jobmsg.File{Name: name, Size: int64(len(content)), Digest: hex.EncodeToString(sum[:]), Executable: executable}
		if really != "" {
			put(t, store.InputFile(k.dir, f.Digest), really)
		}
		return f
	}
	data, tool := input("in/deep/data", "1,2", "1,2", false), input("tool", "#!/bin/sh\n", "#!/bin/sh\n", true)
	for _, c := range []struct {
		inputs []jobmsg.File
		says   string
	}{
		{[]jobmsg.File{data, tool}, ""},
		{[]jobmsg.File{data, data}, "in/deep/data: file exists"},
		{[]jobmsg.File{input("none", "lost", "", false)}, "none: is not on this node"},
		{[]jobmsg.File{input("damaged", "whole", "whale", false)}, "damaged: is damaged on this node: its SHA-256 is "},
		{[]jobmsg.File{{Name: "../out", Digest: data.Digest}}, "../out: mkdirat ..: path escapes from parent"},
	} {
		dir := filepath.Join(t.TempDir(), "task")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		err := k.PlaceInputs(&agent.Program{Inputs: c.inputs}, dir, nil)
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			continue
		}
		for name, want := range map[string]string{"in/deep/data": "1,2 -rw-------", "tool": "#!/bin/sh\n -rwx------"} {
			content, err := os.ReadFile(filepath.Join(dir, name))
			if info, _ := os.Stat(filepath.Join(dir, name)); err != nil || string(content)+" "+info.Mode().String() != want {
				t.Errorf("%s is %q (%v), want %q", name, content, err, want)
			}
		}
	}
	if _, err := os.Stat(store.InputFile(k.dir, input("damaged", "whole", "", false).Digest)); !os.IsNotExist(err) {
		t.Errorf("the damaged file is still there: %v", err)
	}
	if err := k.PlaceInputs(&agent.Program{Dir: "/data", Inputs: []jobmsg.File{data}}, "/data", nil); messages.KindOf(err) != messages.Invalid {
		t.Errorf("inputs into the directory of a user: %v", err)
	}
}

// TestAFullDiskIsAnError fills the disk of a store. Inputs and new jobs must fail with an error that says why, and
// succeed when there is room again.
func TestAFullDiskIsAnError(t *testing.T) {
	dir := mounted(t, "size=512k")
	k := open(t, dir)
	content := strings.Repeat("x", 200<<10)
	sum := sha256.Sum256([]byte(content))
	f := jobmsg.File{Name: "data", Size: int64(len(content)), Digest: hex.EncodeToString(sum[:])}
	put(t, store.InputFile(dir, f.Digest), content)
	fill := filepath.Join(dir, "fill")
	file, err := os.Create(fill)
	if err != nil {
		t.Fatal(err)
	}
	for piece := make([]byte, 4096); err == nil; {
		_, err = file.Write(piece)
	}
	file.Close()
	p := &agent.Program{Job: 1, Account: "ann", StageName: "main", Script: content[:100<<10], Inputs: []jobmsg.File{f}}
	j := k.Acquire(1, "ann")
	defer k.Release(j)
	if _, err := k.Program(j, p); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("a script on a full disk: %v", err)
	}
	task := filepath.Join(dir, "task")
	if err := os.MkdirAll(task, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := k.PlaceInputs(p, task, nil); messages.KindOf(err) != messages.Unavailable || !strings.Contains(err.Error(), "data: no space left") {
		t.Errorf("inputs on a full disk: %v", err)
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(task, "data")); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Program(j, p); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if err := k.PlaceInputs(p, task, nil); err != nil {
		t.Errorf("inputs with room again: %v", err)
	}
}

func mounted(t *testing.T, options string) (dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small disk")
	}
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skip("cannot mount: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// TestManyUseAStoreAtOnce starts and ends tasks of several jobs at the same time, while files are bounded, freed and
// removed.
func TestManyUseAStoreAtOnce(t *testing.T) {
	k := open(t, t.TempDir())
	var all sync.WaitGroup
	for worker := range 8 {
		user := worker % 4 // two workers use the same jobs
		all.Go(func() {
			for n := range 50 {
				id := messages.JobID(n%5*4 + user + 1) // each user has five jobs
				account := fmt.Sprintf("user%d", user)
				j := k.Acquire(id, account)
				if _, err := k.Program(j, &agent.Program{Job: id, Account: account, Script: "true\n"}); err != nil {
					t.Errorf("job %d: %v", id, err)
				}
				if err := j.Note(fmt.Sprintf("0.%d.1", n)); err != nil {
					t.Errorf("job %d: %v", id, err)
				}
				if !k.RanHere(attempt(id, uint32(n))) {
					t.Errorf("attempt %d of job %d, whose directory is in use, is lost", n, id)
				}
				k.NoteLeft(id, 1000)
				switch k.Release(j); n % 10 {
				case 3:
					k.Bound(500)
				case 5:
					k.Free(1, 0)
				case 7:
					k.CloseIdle()
				default:
					k.RemoveMoved()
				}
			}
		})
	}
	all.Wait()
	k.RemoveMoved()
	left, err := filepath.Glob(filepath.Join(k.dir, "jobs", "*", "*"))
	if err != nil || len(left) > 2 || k.IsRemoving() {
		t.Errorf("%v are left (%v), removing: %v", left, err, k.IsRemoving())
	}
}
