package runner

import (
	"bufio"
	"cmp"
	"container/list"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
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
	shares bool   // jobs of an account share lanes

	mu       sync.Mutex
	jobs     map[messages.JobID]*job
	accounts map[messages.Name]*lanes // used if jobs of an account share lanes
	idle     *list.List               // *job without running tasks, longest idle first
	changed  map[messages.Name]bool   // accounts with tasks that ran since their last measurement
	held     map[messages.Attempt]bool
	left     int      // jobs whose last task has ended since files were closed
	moved    []string // moved directories that must be removed
	removing int      // directories that are being removed
}

type job struct {
	id      messages.JobID
	account messages.Name
	dir     string
	active  int           // running tasks; guarded by store.mu
	kept    int64         // bytes that ended tasks keep, when that was measured; guarded by store.mu
	idle    *list.Element // element of store.idle; guarded by store.mu

	mu       sync.Mutex // held while the directory or a program is made
	made     bool       // the directory is there
	lanes    lanes
	programs map[uint32]*program // by stage
	notes    *os.File            // see note; nil while it is not open
}

// removedPrefix marks a directory that is being removed, or will be.
const removedPrefix = ".removed-"

// openStore takes stock of the directories that are there, and finishes the
// removals that an earlier run left undone.
func openStore(c *Config) (*store, error) {
	s := &store{config: c, dir: jobsDir(c.Dir), jobs: map[messages.JobID]*job{}, accounts: map[messages.Name]*lanes{}, idle: list.New(),
		changed: map[messages.Name]bool{}, held: map[messages.Attempt]bool{}}
	if err := c.makeDir(s.dir); err != nil {
		return nil, messages.Errorf(messages.Unavailable, "state directory: %v", err)
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, messages.Errorf(messages.Unavailable, "state directory: %v", err)
	}
	for _, found := range s.known(entries) {
		s.drop(s.jobs[found.id])
		j := s.add(found.id, found.account)
		j.idle = s.idle.PushBack(j)
		s.changed[j.account] = true
	}
	s.surplus()
	return s, nil
}

// found is a job that has a directory.
type found struct {
	id      messages.JobID
	account messages.Name
	changed int64
}

// known returns the jobs that have a directory, longest unchanged first.
func (s *store) known(entries []fs.DirEntry) (all []found) {
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), removedPrefix) {
			s.moved = append(s.moved, filepath.Join(s.dir, e.Name()))
			continue
		}
		of, _ := os.ReadDir(filepath.Join(s.dir, e.Name())) // empty if it is not a directory
		for _, job := range of {
			id, err := strconv.ParseUint(job.Name(), 10, 64)
			info, infoErr := job.Info()
			if err == nil && infoErr == nil && job.IsDir() {
				all = append(all, found{messages.JobID(id), accountOf(e.Name()), info.ModTime().UnixNano()})
			}
		}
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.changed, b.changed), cmp.Compare(a.id, b.id), cmp.Compare(a.account, b.account))
	})
	return all
}

func (s *store) add(id messages.JobID, account messages.Name) *job {
	j := &job{id: id, account: account, dir: jobDir(s.dir, account, id), programs: map[uint32]*program{}}
	j.lanes.dir = j.dir
	s.jobs[id] = j
	return j
}

// acquire keeps a job's directory from being removed until release.
func (s *store) acquire(id messages.JobID, account messages.Name) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[id]
	if j != nil && j.account != account { // the number was used by an earlier site, whose files belong to nobody now
		s.drop(j)
		j = nil
	}
	if j == nil {
		j = s.add(id, account)
	}
	if j.idle != nil {
		s.idle.Remove(j.idle)
		j.idle = nil
	}
	j.active++
	s.changed[account] = true
	return j
}

// hold keeps an attempt's files from being removed until letGo.
func (s *store) hold(a messages.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[a] = true
}

func (s *store) letGo(a messages.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, a)
}

func (s *store) isHeld(a messages.Attempt) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[a]
}

// takeChanged returns the accounts with tasks that run, or ran since the last call.
func (s *store) takeChanged() []messages.Name {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Sorted(maps.Keys(s.changed))
	clear(s.changed)
	for _, j := range s.jobs {
		if j.active > 0 {
			s.changed[j.account] = true
		}
	}
	return all
}

// accountsThatKeep returns the accounts that keep no less than least bytes, the account with the most bytes first.
func (s *store) accountsThatKeep(least int64) []messages.Name {
	s.mu.Lock()
	defer s.mu.Unlock()
	sums := map[messages.Name]int64{}
	for _, j := range s.jobs {
		sums[j.account] += j.kept
	}
	maps.DeleteFunc(sums, func(_ messages.Name, sum int64) bool { return sum < least })
	return slices.SortedFunc(maps.Keys(sums), func(a, b messages.Name) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b))
	})
}

// jobsOf returns the jobs of an account: first those without a running task, the longest idle
// first.
func (s *store) jobsOf(account messages.Name) (all []*job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.idle.Front(); e != nil; e = e.Next() {
		if j := e.Value.(*job); j.account == account {
			all = append(all, j)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.jobs)) {
		if j := s.jobs[id]; j.account == account && j.idle == nil {
			all = append(all, j)
		}
	}
	return all
}

// noteKept records the bytes that the ended tasks of a job keep.
func (s *store) noteKept(j *job, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.kept = bytes
}

// noteLeft notes that a task of a job has left more bytes, which will be measured later.
func (s *store) noteLeft(id messages.JobID, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs[id]; j != nil {
		j.kept += bytes
	}
}

// noteRemoved notes that bytes of such files were removed.
func (s *store) noteRemoved(j *job, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.kept = max(0, j.kept-bytes)
}

// dropIdle removes a job unless a task of it runs or has outputs that may not be stored yet, and returns how
// much that kept.
func (s *store) dropIdle(j *job) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs[j.id] != j || j.idle == nil || j.kept == 0 {
		return 0
	}
	for a := range s.held {
		if a.Task.Job == j.id {
			return 0
		}
	}
	s.drop(j)
	return j.kept
}

// drop forgets a job and moves its directory out of the way, at the latest when its last task has
// ended. s.mu is held.
func (s *store) drop(j *job) {
	if j == nil {
		return
	}
	delete(s.jobs, j.id)
	if j.active > 0 {
		return
	}
	if j.idle != nil {
		s.idle.Remove(j.idle)
		j.idle = nil
	}
	j.closeFiles()
	s.move(j.dir)
}

// release lets a job's directory go, and reports whether there is something beyond the bound
// to be removed.
func (s *store) release(j *job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch j.active--; {
	case j.active > 0:
	case s.jobs[j.id] != j:
		s.drop(j)
	default:
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

// closeIdle closes open files that no task uses. A start that follows soon still finds them open.
func (s *store) closeIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
}

// close does the work of closeIdle. The caller holds s.mu.
func (s *store) close() {
	s.left = 0
	for _, k := range s.accounts {
		k.closeFiles()
	}
	for e := s.idle.Front(); e != nil; e = e.Next() {
		e.Value.(*job).closeFiles()
	}
}

// surplus forgets the jobs beyond the bound and moves their directories out
// of the way. s.mu is held.
func (s *store) surplus() {
	for s.idle.Len() > s.config.KeepJobs {
		s.drop(s.idle.Front().Value.(*job))
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

// removeMoved removes directories that were moved aside. If it fails for one, it tries again the
// next time.
func (s *store) removeMoved() {
	s.mu.Lock()
	dirs := s.moved
	s.moved, s.removing = nil, s.removing+len(dirs)
	s.mu.Unlock()
	for _, dir := range dirs {
		failed := tree.Remove(dir) != nil
		s.mu.Lock()
		if s.removing--; failed {
			s.moved = append(s.moved, dir)
		}
		s.mu.Unlock()
	}
}

// isRemoving reports whether directories are being removed, or will be.
func (s *store) isRemoving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removing > 0 || len(s.moved) > 0
}

// program makes the job's directory and computes the program, once. A failure is not remembered:
// something that was missing may be there next time.
func (s *store) program(j *job, p *messages.Program) (*program, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if known := j.programs[p.Stage]; known != nil {
		return known, nil
	}
	who, err := s.config.identity(p)
	if err != nil {
		return nil, err
	}
	if !j.made {
		if err := s.makeDir(j, who.as); err != nil {
			return nil, messages.Errorf(messages.Unavailable, "state directory: %v", err)
		}
		j.made = true
	}
	made, err := s.config.newProgram(p, who, j.dir)
	if err == nil {
		j.programs[p.Stage] = made
	}
	return made, err
}

// prompt reports whether a program is already computed, and a lane for its next task is open, so that the task can start at
// once.
func (s *store) prompt(id messages.JobID, p *messages.Program) bool {
	s.mu.Lock()
	j := s.jobs[id]
	s.mu.Unlock()
	if j == nil || j.account != p.Account || !j.mu.TryLock() {
		return false
	}
	made := j.programs[p.Stage]
	j.mu.Unlock()
	return made != nil && s.lanesFor(j, made).ready()
}

// makeDir makes the directory of a job in its account's directory, unless it exists.
func (s *store) makeDir(j *job, as *syscall.Credential) error {
	if strings.HasPrefix(j.account, ".") || strings.Contains(j.account, "/") {
		return messages.Errorf(messages.Invalid, "account %q: must not begin with a dot, or have a slash", j.account)
	}
	err := os.Mkdir(j.dir, privateDirs)
	if errors.Is(err, fs.ErrNotExist) {
		if err = s.config.makeAccountDir(filepath.Dir(j.dir), as); err == nil {
			err = os.Mkdir(j.dir, privateDirs)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil && as != nil {
		err = os.Chmod(j.dir, throughDirs)
	}
	return err
}

// makeAccountDir makes the directory of an account, which only the account's user can enter. Rooms
// show only that directory; without rooms, the directory's group has the same effect.
func (c *Config) makeAccountDir(dir string, as *syscall.Credential) error {
	err := os.Mkdir(dir, privateDirs)
	if err == nil && as != nil {
		err = errors.Join(os.Chown(dir, -1, int(as.Gid)), os.Chmod(dir, groupDirs))
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// silentFile lists the attempts without output, one on each line.
const silentFile = "silent"

// note notes an attempt that left no output.
func (j *job) note(name string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.notes == nil {
		fd, err := openFile(filepath.Join(j.dir, silentFile), unix.O_CREAT|unix.O_WRONLY|unix.O_APPEND)
		if err != nil {
			return err
		}
		j.notes = os.NewFile(uintptr(fd), silentFile)
	}
	_, err := j.notes.WriteString(name + "\n")
	return err
}

// closeFiles closes what is open only while tasks run.
func (j *job) closeFiles() {
	j.lanes.closeFiles()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.notes != nil {
		_ = j.notes.Close()
		j.notes = nil
	}
}

// wasSilent reports whether an attempt, whose files begin at base, ran here and left no output at all.
func wasSilent(base string) bool {
	file, err := openToRead(filepath.Join(filepath.Dir(base), silentFile))
	if err != nil {
		return false
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if lines.Text() == filepath.Base(base) {
			return true
		}
	}
	return false
}

// makeDir makes a directory that nobody else can list. If tasks run as other users, they may pass
// through it to their own files.
func (c *Config) makeDir(dir string) error {
	if err := os.MkdirAll(dir, privateDirs); err != nil || c.User == "" {
		return err
	}
	return errors.Join(os.Chmod(c.Dir, throughDirs), os.Chmod(dir, throughDirs))
}

// base returns the common beginning of the paths of an attempt's files; "": the job is not known.
func (s *store) base(a messages.Attempt) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[a.Task.Job]
	if j == nil {
		return ""
	}
	return baseOf(s.dir, j.account, a)
}

// jobDir returns the directory of a job, below the directory of all jobs.
func jobDir(jobs string, account messages.Name, id messages.JobID) string {
	return filepath.Join(jobs, dirOf(account), id.String())
}

// unnamed is the directory of jobs of nobody, which no account is called.
const unnamed = "-"

func dirOf(account messages.Name) string { return cmp.Or(account, unnamed) }

// accountOf returns the account that owns a directory.
func accountOf(dir string) messages.Name {
	if dir == unnamed {
		return ""
	}
	return dir
}

// baseOf returns the common beginning of the paths of an attempt's files, below the directory of
// all jobs.
func baseOf(jobs string, account messages.Name, a messages.Attempt) string {
	account = dirOf(account)
	b := make([]byte, 0, len(jobs)+len(account)+48)
	b = append(b, jobs...)
	b = append(b, '/')
	b = append(b, account...)
	b = append(b, '/')
	b = strconv.AppendUint(b, uint64(a.Task.Job), 10)
	b = append(b, '/')
	b = strconv.AppendUint(b, uint64(a.Task.Stage), 10)
	b = append(b, '.')
	b = strconv.AppendUint(b, uint64(a.Task.Index), 10)
	b = append(b, '.')
	return string(strconv.AppendUint(b, uint64(a.Number), 10))
}

// owner returns the account that owns a job.
func (s *store) owner(id messages.JobID) (messages.Name, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs[id]; j != nil && j.account != "" {
		return j.account, nil
	}
	return "", NoOutput(id)
}
