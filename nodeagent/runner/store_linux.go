package runner

import (
	"bufio"
	"cmp"
	"container/list"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/tree"
)

// store keeps the directories of jobs: it makes one when the first task of a
// job comes, and removes the oldest ones without a running task beyond a
// bound.
type store struct {
	config *Config
	dir    string // <state directory>/jobs
	shares bool   // jobs of a user share lanes

	mu    sync.Mutex
	jobs  map[messages.JobID]*job
	users map[uint32]*lanes // by the user's number
	idle  *list.List        // of *job, without a running task, longest idle first
	left  int               // jobs whose last task has ended since files were closed
	moved []string          // directories out of the way, which are to be removed
}

type job struct {
	id     messages.JobID
	dir    string
	active int           // running tasks; guarded by store.mu
	idle   *list.Element // in store.idle; guarded by store.mu

	mu       sync.Mutex    // held while the directory or a program is made
	account  messages.Name // whose the job is; "" until a task came in this run
	lanes    lanes
	programs map[uint32]*program // by stage
	notes    *os.File            // see note; nil while it is not open
}

// removedPrefix marks a directory that is to be removed, or is being removed.
const removedPrefix = ".removed-"

// openStore takes stock of the directories that are there, and finishes the
// removals that an earlier run left undone.
func openStore(c *Config) (*store, error) {
	s := &store{config: c, dir: jobsDir(c.Dir), jobs: map[messages.JobID]*job{}, users: map[uint32]*lanes{}, idle: list.New()}
	if err := c.makeDir(s.dir); err != nil {
		return nil, messages.Errorf(messages.Unavailable, "state directory: %v", err)
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, messages.Errorf(messages.Unavailable, "state directory: %v", err)
	}
	for _, found := range s.known(entries) {
		j := s.add(found)
		j.idle = s.idle.PushBack(j)
	}
	s.surplus()
	s.removeMoved()
	return s, nil
}

// known returns the jobs that have a directory, longest unchanged first.
func (s *store) known(entries []fs.DirEntry) []messages.JobID {
	changed := map[messages.JobID]int64{}
	var ids []messages.JobID
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), removedPrefix) {
			s.moved = append(s.moved, filepath.Join(s.dir, e.Name()))
			continue
		}
		id, err := strconv.ParseUint(e.Name(), 10, 64)
		info, infoErr := e.Info()
		if err == nil && infoErr == nil && e.IsDir() {
			ids = append(ids, messages.JobID(id))
			changed[messages.JobID(id)] = info.ModTime().UnixNano()
		}
	}
	slices.SortFunc(ids, func(a, b messages.JobID) int {
		return cmp.Or(cmp.Compare(changed[a], changed[b]), cmp.Compare(a, b))
	})
	return ids
}

func (s *store) add(id messages.JobID) *job {
	j := &job{id: id, dir: filepath.Join(s.dir, id.String()), programs: map[uint32]*program{}}
	j.lanes.dir = j.dir
	s.jobs[id] = j
	return j
}

// acquire keeps a job's directory from being removed until release.
func (s *store) acquire(id messages.JobID) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[id]
	if j == nil {
		j = s.add(id)
	}
	if j.idle != nil {
		s.idle.Remove(j.idle)
		j.idle = nil
	}
	j.active++
	return j
}

// release lets a job's directory go, and reports whether there is something beyond the bound
// to be removed.
func (s *store) release(j *job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.active--; j.active == 0 {
		j.idle = s.idle.PushBack(j)
		if s.left++; s.left >= mostLeft {
			s.close()
		}
		s.surplus()
	}
	return len(s.moved) > 0
}

// mostLeft bounds the jobs without a running task that have open files.
const mostLeft = 64

// rest closes what is open of what no task uses. A start that follows soon finds it open.
func (s *store) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
}

// close is rest. s.mu is held.
func (s *store) close() {
	s.left = 0
	for _, k := range s.users {
		k.rest()
	}
	for e := s.idle.Front(); e != nil; e = e.Next() {
		e.Value.(*job).rest()
	}
}

// surplus forgets the jobs beyond the bound and moves their directories out
// of the way. s.mu is held.
func (s *store) surplus() {
	for s.idle.Len() > s.config.KeepJobs {
		j := s.idle.Remove(s.idle.Front()).(*job)
		j.idle = nil
		j.rest()
		delete(s.jobs, j.id)
		s.move(j.dir)
	}
}

// move gives a directory a name under which it can be removed without the lock. s.mu is held.
func (s *store) move(dir string) {
	to := filepath.Join(s.dir, removedPrefix+strconv.FormatInt(time.Now().UnixNano(), 36)+"-"+filepath.Base(dir))
	if os.Rename(dir, to) == nil {
		s.moved = append(s.moved, to)
	}
}

// discard has a directory removed, at the latest when the job is released.
func (s *store) discard(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.move(dir)
}

// removeMoved removes what was moved out of the way. What cannot be removed is tried again
// the next time.
func (s *store) removeMoved() {
	s.mu.Lock()
	dirs := s.moved
	s.moved = nil
	s.mu.Unlock()
	for _, dir := range dirs {
		if tree.Remove(dir) == nil {
			continue
		}
		s.mu.Lock()
		s.moved = append(s.moved, dir)
		s.mu.Unlock()
	}
}

// program makes the job's directory and works the program out, once. A
// failure is not remembered: what was missing may be there next time.
func (s *store) program(j *job, p *messages.Program) (*program, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.account != p.Account {
		j.forget()
		if err := j.makeDir(s.config, p.Account); err != nil {
			return nil, messages.Errorf(messages.Unavailable, "state directory: %v", err)
		}
		j.account = p.Account
	}
	if known := j.programs[p.Stage]; known != nil {
		return known, nil
	}
	made, err := s.config.newProgram(p, j.dir)
	if err == nil {
		j.programs[p.Stage] = made
	}
	return made, err
}

// prompt reports whether a program is worked out, and a lane for its next task open.
func (s *store) prompt(id messages.JobID, p *messages.Program) bool {
	s.mu.Lock()
	j := s.jobs[id]
	s.mu.Unlock()
	if j == nil || !j.mu.TryLock() {
		return false
	}
	made := j.programs[p.Stage]
	own := j.account == p.Account
	j.mu.Unlock()
	return own && made != nil && s.lanesFor(j, made).ready()
}

// forget has a job have nothing of another account's job that had its number, before the site
// was set back. j.mu is held.
func (j *job) forget() {
	j.account = ""
	clear(j.programs)
	j.lanes.forget()
	if j.notes != nil {
		_ = j.notes.Close()
		j.notes = nil
	}
}

// makeDir makes the directory of a job and notes its owner. One that is there
// and belongs to another account is of another job of the same number, from an
// earlier life of the site: its files are nobody's now.
func (j *job) makeDir(c *Config, account messages.Name) error {
	err := os.Mkdir(j.dir, privateDirs)
	if err == nil && c.User != "" {
		err = os.Chmod(j.dir, throughDirs)
	}
	if err != nil {
		if owner, err := readOwner(j.dir); err == nil && owner == account {
			return nil
		}
		if err := tree.Remove(j.dir); err != nil {
			return err
		}
		if err := c.makeDir(j.dir); err != nil {
			return err
		}
	}
	return j.write(account)
}

// ownerFile is what is noted of a job, each on a line of its own: the account, and then the
// attempts that left no output.
const ownerFile = "owner"

// silentFile has these attempts in a directory of an earlier release.
const silentFile = "silent"

// write notes something. j.mu is held.
func (j *job) write(text string) (err error) {
	if j.notes == nil {
		fd, err := openFile(filepath.Join(j.dir, ownerFile), unix.O_CREAT|unix.O_WRONLY|unix.O_APPEND)
		if err != nil {
			return err
		}
		j.notes = os.NewFile(uintptr(fd), ownerFile)
	}
	_, err = j.notes.WriteString(text)
	return err
}

// note notes an attempt that left no output.
func (j *job) note(name string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.write("\n" + name)
}

// rest lets go of what is only held open while tasks run.
func (j *job) rest() {
	j.lanes.rest()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.notes != nil {
		_ = j.notes.Close()
		j.notes = nil
	}
}

// eachNote calls f with what is noted in a file, until f returns false.
func eachNote(path string, f func(line string) bool) error {
	file, err := openToRead(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() && f(lines.Text()) {
	}
	return lines.Err()
}

// readOwner reads whose a job's directory is.
func readOwner(dir string) (owner messages.Name, err error) {
	err = eachNote(filepath.Join(dir, ownerFile), func(line string) bool {
		owner = line
		return false
	})
	return owner, err
}

// wasSilent reports whether an attempt ran here and left no output at all.
func (s *store) wasSilent(a messages.Attempt) (was bool) {
	name := filepath.Base(s.base(a))
	for _, file := range [...]string{ownerFile, silentFile} {
		_ = eachNote(filepath.Join(s.dir, a.Task.Job.String(), file), func(line string) bool {
			was = was || line == name
			return !was
		})
	}
	return was
}

// makeDir makes a directory that nobody else can look into; where tasks run as
// other users, they can pass through it to what is theirs.
func (c *Config) makeDir(dir string) error {
	if err := os.MkdirAll(dir, privateDirs); err != nil || c.User == "" {
		return err
	}
	return errors.Join(os.Chmod(c.Dir, throughDirs), os.Chmod(dir, throughDirs))
}

// base is where the files of an attempt begin.
func (s *store) base(a messages.Attempt) string { return baseOf(s.dir, a) }

// baseOf is where the files of an attempt begin, below the directory of all jobs.
func baseOf(jobs string, a messages.Attempt) string {
	b := make([]byte, 0, len(jobs)+48)
	b = append(b, jobs...)
	b = append(b, '/')
	b = strconv.AppendUint(b, uint64(a.Task.Job), 10)
	b = append(b, '/')
	b = strconv.AppendUint(b, uint64(a.Task.Stage), 10)
	b = append(b, '.')
	b = strconv.AppendUint(b, uint64(a.Task.Index), 10)
	b = append(b, '.')
	return string(strconv.AppendUint(b, uint64(a.Number), 10))
}

// owner reads who a job belongs to.
func (s *store) owner(id messages.JobID) (messages.Name, error) {
	owner, err := readOwner(filepath.Join(s.dir, id.String()))
	if err != nil || owner == "" {
		return "", NoOutput(id)
	}
	return owner, nil
}
