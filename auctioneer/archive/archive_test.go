package archive

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

func record(id messages.JobID, account messages.Name) *Record {
	return &Record{Summary: job.JobSummary{Job: id, Account: account, Submitted: messages.Time(id), Ended: messages.Time(10 * id)},
		Body: []byte(strings.Repeat(fmt.Sprint(id, " "), 30))}
}

func open(t *testing.T, c Config) *Archive {
	t.Helper()
	if c.Clock == nil {
		c.Clock = func() messages.Time { return 0 }
	}
	a, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// jobs returns the numbers of an account's jobs, in ascending order.
func jobs(t *testing.T, a *Archive, account messages.Name) (ids []messages.JobID, unreadable int) {
	t.Helper()
	unreadable, err := a.Scan(account, func(Extent) bool { return true }, func(messages.JobID) bool { return true }, func(j *job.JobSummary) error {
		ids = append(ids, j.Job)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ids)
	return ids, unreadable
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Records are in several files, some of them twice. Each job must be found once, also after a restart.
func TestRecordsAreFound(t *testing.T) {
	c := Config{Dir: t.TempDir(), SegmentBytes: 2000}
	a := open(t, c)
	for round := range 3 {
		for i := range 50 {
			id := messages.JobID(50 - i)
			a.Add(record(id, []messages.Name{"alice", "bob"}[id%2]))
		}
		for id := messages.JobID(1); id <= 50; id++ {
			r, err := a.Find(id)
			if want := record(id, []messages.Name{"alice", "bob"}[id%2]); err != nil || r.Summary.Account != want.Summary.Account || !bytes.Equal(r.Body, want.Body) {
				t.Fatalf("round %d, job %d: %+v, %v", round, id, r, err)
			}
		}
		if ids, bad := jobs(t, a, "bob"); len(ids) != 25 || ids[0] != 1 || bad != 0 {
			t.Fatalf("round %d: %v, %d are unreadable", round, ids, bad)
		}
		if ids, _ := jobs(t, a, ""); len(ids) != 50 {
			t.Fatalf("round %d: %v", round, ids)
		}
		if _, err := a.Find(51); messages.KindOf(err) != messages.NotFound {
			t.Errorf("job 51: %v", err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if round == 1 { // simulates a crash before the list was written
			if err := os.Remove(filepath.Join(c.Dir, contentsFile)); err != nil {
				t.Fatal(err)
			}
		}
		a = open(t, c)
	}
	if n := len(files(t, c.Dir)); n < 3 {
		t.Errorf("%d files", n)
	}
	if about := a.About(); about.Records != 50 || about.Complete != 0 {
		t.Errorf("%+v", about)
	}
}

// Files are removed by age and by size. The archive then says since when it is complete.
func TestOldFilesGo(t *testing.T) {
	now := messages.Time(0)
	a := open(t, Config{Dir: t.TempDir(), SegmentBytes: 1000, MostBytes: 5000, Retention: 3000, Clock: func() messages.Time { return now }})
	for id := messages.JobID(1); id <= 100; id++ {
		a.Add(record(id, "alice"))
	}
	about := a.About()
	if about.Bytes > 5000 || about.Records == 0 || about.Complete == 0 || about.Complete >= 1000 {
		t.Fatalf("%+v", about)
	}
	for id := messages.JobID(1); id <= 100; id++ {
		if has := a.Has(id); has != (messages.Time(10*id) > about.Complete) {
			t.Errorf("job %d is there: %v, and all are since %d", id, has, about.Complete)
		}
	}
	now = 10_000_000
	if err := a.Sync(); err != nil {
		t.Fatal(err)
	}
	if after := a.About(); after.Bytes > 1000 {
		t.Errorf("after their time: %+v", after)
	}
}

// Each byte of a file is flipped in turn. A record must never be returned with other content, and all other records
// must be found.
func TestDamageIsNamedAndSkipped(t *testing.T) {
	whole := t.TempDir()
	a := open(t, Config{Dir: whole})
	for id := messages.JobID(1); id <= 4; id++ {
		a.Add(record(id, "alice"))
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(files(t, whole)[0])
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(good); at += 3 {
		dir := t.TempDir()
		bad := bytes.Clone(good)
		bad[at] ^= 0x10
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(files(t, whole)[0])), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		a := open(t, Config{Dir: dir})
		found := 0
		for id := messages.JobID(1); id <= 4; id++ {
			r, err := a.Find(id)
			if err != nil {
				continue
			}
			if found++; !reflect.DeepEqual(r, *record(id, "alice")) {
				t.Fatalf("byte %d: job %d is %+v", at, id, r)
			}
		}
		if found < 3 {
			t.Errorf("byte %d: %d records are left", at, found)
		}
	}
}

// Files of a running archive are damaged, cut or removed. Only their records may be lost, and a copy from another
// replica must restore them.
func TestDamageBehindTheBack(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"zeroed": func(path string) error { return os.WriteFile(path, make([]byte, 900), 0o600) },
		"cut":    func(path string) error { return os.Truncate(path, 200) },
		"gone":   os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			here, there := Config{Dir: t.TempDir(), SegmentBytes: 1000}, Config{Dir: t.TempDir(), SegmentBytes: 1000}
			a, other := open(t, here), open(t, there)
			for id := messages.JobID(1); id <= 20; id++ {
				a.Add(record(id, "alice"))
				other.Add(record(id, "alice"))
			}
			if err := damage(files(t, here.Dir)[0]); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Find(2); err == nil {
				t.Fatal("a damaged record was served")
			}
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			a = open(t, here)
			if ids, _ := jobs(t, a, "alice"); len(ids) == 20 || len(ids) < 10 || a.About().Complete == 0 {
				t.Fatalf("%v are left; all since %v", ids, a.About().Complete)
			}
			copyAll(t, a, other)
			if ids, bad := jobs(t, a, "alice"); len(slices.Compact(ids)) != 20 {
				t.Errorf("%v after the copy, %d unreadable", ids, bad)
			}
			for id := messages.JobID(1); id <= 20; id++ {
				if r, err := a.Find(id); err != nil || !reflect.DeepEqual(r, *record(id, "alice")) {
					t.Errorf("job %d: %v", id, err)
				}
			}
		})
	}
}

// A file of the archive is damaged, cut or removed while it is open and nobody asks for its jobs. The next examination
// must find that its jobs are missing. A copy from another replica must restore them without a restart.
func TestExaminationFindsDamage(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"flipped": func(path string) error {
			b, err := os.ReadFile(path)
			b[len(b)/2] ^= 2
			return errors.Join(err, os.WriteFile(path, b, 0o600))
		},
		"zeroed": func(path string) error { return os.WriteFile(path, make([]byte, 900), 0o600) },
		"cut":    func(path string) error { return os.Truncate(path, 200) },
		"gone":   os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			a, other := open(t, Config{Dir: t.TempDir(), SegmentBytes: 1000}), open(t, Config{Dir: t.TempDir(), SegmentBytes: 1000})
			for id := messages.JobID(1); id <= 20; id++ {
				a.Add(record(id, "alice"))
				other.Add(record(id, "alice"))
			}
			on := func() bool { return true }
			if a.Examine(on) {
				t.Fatal("records of a good archive are lost")
			}
			if err := damage(files(t, a.Dir)[0]); err != nil {
				t.Fatal(err)
			}
			if !a.Examine(on) || a.Examine(on) {
				t.Fatal("the damage is not found, or found twice")
			}
			if a.About().Complete == 0 {
				t.Error("the archive does not say that it lacks records")
			}
			copyAll(t, a, other)
			for id := messages.JobID(1); id <= 20; id++ {
				if r, err := a.Find(id); err != nil || !reflect.DeepEqual(r, *record(id, "alice")) {
					t.Errorf("job %d: %v", id, err)
				}
			}
		})
	}
}

func copyAll(t *testing.T, to, from *Archive) {
	t.Helper()
	var file []byte
	for number := uint64(0); ; {
		of, size, data, err := from.Part(number, int64(len(file)), 64)
		if err != nil {
			t.Fatal(err)
		}
		if size == 0 {
			break
		}
		if file = append(file, data...); int64(len(file)) < size {
			number = of
			continue
		}
		if err := to.Merge(file); err != nil {
			t.Fatal(err)
		}
		number, file = of+1, nil
	}
	to.Completed(from.About().Complete)
}

// Records that cannot be written are left out and reported. The archive continues when the disk has free space again.
func TestAFullDisk(t *testing.T) {
	c := Config{Dir: filepath.Join(t.TempDir(), "archive"), SegmentBytes: 500}
	a := open(t, c)
	a.Add(record(1, "alice"))
	if err := os.RemoveAll(c.Dir); err != nil { // without its directory, the archive cannot create files
		t.Fatal(err)
	}
	for id := messages.JobID(2); id <= 10; id++ {
		a.Add(record(id, "alice"))
	}
	if about := a.About(); about.Complete < 100 {
		t.Errorf("%+v", about)
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	a.Add(record(11, "alice"))
	if r, err := a.Find(11); err != nil || r.Summary.Job != 11 {
		t.Errorf("%v", err)
	}
}

func TestANewerArchive(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "0000000001"+suffix), []byte("candor-jobs-9\nsomething"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: dir}); messages.KindOf(err) != messages.Conflict || !strings.Contains(err.Error(), "newer") {
		t.Errorf("%v", err)
	}
}

// Reads fail because too many files are open, or a single read fails with an input/output error. The archive must keep
// the record. It must return an error that says to ask again, or read a second time and return the record.
func TestAPassingErrorLosesNoRecord(t *testing.T) {
	defer func() { openFile = os.Open }()
	for name, code := range map[string]syscall.Errno{"too many open files": syscall.EMFILE, "an input/output error": syscall.EIO} {
		t.Run(name, func(t *testing.T) {
			a := open(t, Config{Dir: t.TempDir(), SegmentBytes: 1000})
			for id := messages.JobID(1); id <= 20; id++ {
				a.Add(record(id, "alice"))
			}
			for round := range 4 { // after the first round the positions of records are known
				failures := 1
				openFile = func(path string) (*os.File, error) {
					if failures--; failures >= 0 {
						return nil, &os.PathError{Op: "open", Path: path, Err: code}
					}
					return os.Open(path)
				}
				if _, err := a.Find(2); code == syscall.EMFILE && messages.KindOf(err) != messages.Unavailable || code == syscall.EIO && err != nil {
					t.Errorf("round %d: %v", round, err)
				}
				failures = 1
				if ids, bad := jobs(t, a, "alice"); len(ids) < 14 || len(ids) < 20 && bad != 1 {
					t.Errorf("round %d: %v, %d are unreadable", round, ids, bad)
				}
				failures = 1
				if a.Examine(func() bool { return true }) {
					t.Errorf("round %d: records are lost", round)
				}
				if ids, bad := jobs(t, a, "alice"); len(ids) != 20 || bad != 0 || a.About().Complete != 0 {
					t.Fatalf("round %d: later %v, %d are unreadable; all since %v", round, ids, bad, a.About().Complete)
				}
				if _, err := a.Find(2); err != nil {
					t.Fatalf("round %d: later %v", round, err)
				}
			}
		})
	}
}

func TestFilesAreSyncedUntilTheyAre(t *testing.T) {
	defer func() { syncFile = syncPath }()
	a := open(t, Config{Dir: t.TempDir(), SegmentBytes: 1000})
	for id := messages.JobID(1); id <= 20; id++ {
		a.Add(record(id, "alice"))
	}
	all := files(t, a.Dir)
	syncFile = func(path string) error { return &os.PathError{Op: "sync", Path: path, Err: syscall.EIO} }
	if a.Sync() == nil || len(all) < 3 {
		t.Fatalf("%d files, which could not be synced, are said to be", len(all))
	}
	synced := map[string]int{}
	syncFile = func(path string) error { synced[path]++; return nil }
	if err := a.Sync(); err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if synced[path] != 1 {
			t.Errorf("%s was synced %d times", path, synced[path])
		}
	}
	clear(synced)
	if err := a.Sync(); err != nil || synced[all[0]] > 0 {
		t.Errorf("%v; %s, which is synced, was synced again", err, all[0])
	}
}

// An archive copies records from another archive, but cannot write them. The archive must not claim to have these
// records.
func TestACopyThatCannotBeWrittenIsNoCopy(t *testing.T) {
	from, c := open(t, Config{Dir: t.TempDir()}), Config{Dir: filepath.Join(t.TempDir(), "archive")}
	from.Add(record(1, "alice"))
	_, _, file, err := from.Part(0, 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	to := open(t, c)
	if err := os.RemoveAll(c.Dir); err != nil {
		t.Fatal(err)
	}
	if to.Merge(file) == nil {
		t.Error("the records were not written, and are said to be")
	}
}
