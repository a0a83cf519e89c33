package store

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
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner/access"
	"github.com/candor-grid/candor/nodeagent/runner/lane"
	"github.com/candor-grid/candor/nodeagent/runner/program"
	"github.com/candor-grid/candor/nodeagent/runner/tree"
)

// Config configures a store. A field that the runner's configuration also has means the same in both configurations.
type Config struct {
	Dir        string // the state directory; created if needed
	KeepJobs   int
	Users      bool  // tasks run as other users than this process
	MostOutput int64 // the largest limit of an output, in bytes
	OutputTail bool
	// Runs reports whether an attempt runs. The store removes no files of attempts that run.
	Runs func(messages.Attempt) bool
	// Closing reports whether the runner is closing. Measurements and removals must then end soon.
	Closing func() bool
}

// Store keeps the directories of jobs. It makes a directory when the first task of a job comes. If there are more
// directories than a limit, it removes the oldest directories without a running task.
type Store struct {
	config   Config
	programs program.Config
	dir      string // <state directory>/jobs
	shares   bool   // all jobs of an account use the same lanes

	mu       sync.Mutex
	jobs     map[messages.JobID]*Job
	accounts map[messages.Name]*lane.Lanes // lanes of accounts, if shares is set
	idle     *list.List                    // jobs without running tasks, longest idle first
	changed  map[messages.Name]bool        // accounts with a task that ran since their last measurement
	held     map[messages.Attempt]bool
	left     int      // jobs whose last task has ended and whose files may still be open
	moved    []string // renamed directories that must be removed
	removing int      // number of directories that are being removed
}

type Job struct {
	id      messages.JobID
	account messages.Name
	Dir     string
	active  int           // number of running tasks; guarded by store.mu
	kept    int64         // bytes that the account's ended tasks kept at the last measurement; guarded by store.mu
	idle    *list.Element // element of store.idle; guarded by store.mu

	mu       sync.Mutex // locked while the job's directory or a program is made
	made     bool       // the job's directory exists
	lanes    lane.Lanes
	programs map[uint32]*program.Program // programs by stage
	notes    *os.File                    // the file silentFile; nil while it is not open
}

// removedPrefix is the prefix of directories that are being removed, or will be.
const removedPrefix = ".removed-"

// Open lists the directories of jobs that exist, and finishes the removals that an earlier run left.
func Open(c Config) (*Store, error) {
	s := &Store{config: c, dir: jobsDir(c.Dir), jobs: map[messages.JobID]*Job{}, accounts: map[messages.Name]*lane.Lanes{}, idle: list.New(),
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

type found struct {
	id      messages.JobID
	account messages.Name
	changed int64
}

// known returns the jobs whose directories exist. The first one is the job whose directory has not changed for the
// longest time.
func (s *Store) known(entries []fs.DirEntry) (all []found) {
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), removedPrefix) {
			s.moved = append(s.moved, filepath.Join(s.dir, e.Name()))
			continue
		}
		of, _ := os.ReadDir(filepath.Join(s.dir, e.Name())) // empty if the entry is not a directory
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

func (s *Store) add(id messages.JobID, account messages.Name) *Job {
	j := &Job{id: id, account: account, Dir: jobDir(s.dir, account, id), programs: map[uint32]*program.Program{}}
	j.lanes.Dir = j.Dir
	s.jobs[id] = j
	return j
}

// Acquire returns a job, whose directory stays until the caller calls Release.
func (s *Store) Acquire(id messages.JobID, account messages.Name) *Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[id]
	if j != nil && j.account != account { // an earlier site gave this job number to another account
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

// Hold keeps an attempt's files from being removed until LetGo is called.
func (s *Store) Hold(a messages.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[a] = true
}

func (s *Store) LetGo(a messages.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, a)
}

func (s *Store) isHeld(a messages.Attempt) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[a]
}

// takeChanged returns the accounts with a task that runs, or that ran since the last call.
func (s *Store) takeChanged() []messages.Name {
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

// accountsThatKeep returns the accounts that keep this number of bytes or more, the largest first.
func (s *Store) accountsThatKeep(least int64) []messages.Name {
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

// jobsOf returns the jobs of an account. The first are the jobs without a running task, beginning with the job that has
// been idle for longest. The other jobs follow.
func (s *Store) jobsOf(account messages.Name) (all []*Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.idle.Front(); e != nil; e = e.Next() {
		if j := e.Value.(*Job); j.account == account {
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

func (s *Store) noteKept(j *Job, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.kept = bytes
}

// NoteLeft adds bytes that an ended task of a job left to the job's kept bytes. The next measurement replaces this
// number.
func (s *Store) NoteLeft(id messages.JobID, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs[id]; j != nil {
		j.kept += bytes
	}
}

func (s *Store) noteRemoved(j *Job, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.kept = max(0, j.kept-bytes)
}

// dropIdle removes a job, except if one of its tasks runs or may have outputs that are not stored yet. It returns how
// many bytes the job kept.
func (s *Store) dropIdle(j *Job) int64 {
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

// drop removes a job from the store. If the job has no running task, drop renames its directory for removal at once.
// Otherwise this happens when the last task has ended. The caller holds s.mu.
func (s *Store) drop(j *Job) {
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
	s.move(j.Dir)
}

// Release is called when a task that used a job's directory has ended. It reports whether there are directories that
// must be removed.
func (s *Store) Release(j *Job) bool {
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

// mostLeft bounds how many jobs without a running task have open files.
const mostLeft = 64

// Files stay open for some time after their task has ended, so that a task that starts soon finds them open. CloseIdle
// closes all open files that no task uses.
func (s *Store) CloseIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
}

// close does the work of CloseIdle. The caller holds s.mu.
func (s *Store) close() {
	s.left = 0
	for _, k := range s.accounts {
		k.CloseFiles()
	}
	for e := s.idle.Front(); e != nil; e = e.Next() {
		e.Value.(*Job).closeFiles()
	}
}

// The store keeps the directories of at most KeepJobs idle jobs. If there are more, surplus drops the jobs that have
// been idle for the longest time. It renames their directories, so that these can be removed later. The caller holds
// s.mu.
func (s *Store) surplus() {
	for s.idle.Len() > s.config.KeepJobs {
		s.drop(s.idle.Front().Value.(*Job))
	}
}

// move renames a directory, so that it can be removed without the lock. The caller holds s.mu.
func (s *Store) move(dir string) {
	to := filepath.Join(s.dir, removedPrefix+strconv.FormatInt(time.Now().UnixNano(), 36)+"-"+filepath.Base(dir))
	if os.Rename(dir, to) == nil {
		s.moved = append(s.moved, to)
	}
}

// Discard removes a directory in the background, at the latest when the job is released.
func (s *Store) Discard(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.move(dir)
}

// RemoveMoved removes the directories that were renamed in order to be removed. If the removal of one of them fails,
// the next call tries it again.
func (s *Store) RemoveMoved() {
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

// IsRemoving reports whether any directory is being removed, or will be.
func (s *Store) IsRemoving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removing > 0 || len(s.moved) > 0
}

// Program makes the job's directory and computes the program. If it is called again for the same stage, it returns the
// same program. If it has returned an error, the next call computes the program again: a file that was missing may
// exist then.
func (s *Store) Program(j *Job, p *agent.Program) (*program.Program, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if known := j.programs[p.Stage]; known != nil {
		return known, nil
	}
	who, err := s.programs.Identity(p)
	if err != nil {
		return nil, err
	}
	if !j.made {
		if err := s.makeDir(j, who.As); err != nil {
			return nil, messages.Errorf(messages.Unavailable, "state directory: %v", err)
		}
		j.made = true
	}
	made, err := s.programs.New(p, who, j.Dir)
	if err == nil {
		j.programs[p.Stage] = made
	}
	return made, err
}

// Prompt reports whether the next task can start at once. This needs two things: the program of its stage has been
// prepared, and a lane is free whose files are open already. (A lane has the output files and the directory of one task
// after another.)
func (s *Store) Prompt(id messages.JobID, p *agent.Program) bool {
	s.mu.Lock()
	j := s.jobs[id]
	s.mu.Unlock()
	if j == nil || j.account != p.Account || !j.mu.TryLock() {
		return false
	}
	made := j.programs[p.Stage]
	j.mu.Unlock()
	return made != nil && s.LanesFor(j, made).Ready()
}

// LanesFor returns the lanes that all jobs of the account share, or only the lanes of the job. Jobs share lanes if no
// other account has the account's user, and if no process survives its task: such a process could write to the output
// of the next task.
func (s *Store) LanesFor(j *Job, p *program.Program) *lane.Lanes {
	if p == nil || p.As == nil || !s.shares {
		return &j.lanes
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.accounts[j.account]
	if k == nil {
		k = &lane.Lanes{Dir: filepath.Dir(j.Dir)}
		s.accounts[j.account] = k
	}
	return k
}

// makeDir makes the directory of a job in its account's directory, if it does not exist.
func (s *Store) makeDir(j *Job, as *syscall.Credential) error {
	if strings.HasPrefix(j.account, ".") || strings.Contains(j.account, "/") {
		return messages.Errorf(messages.Invalid, "account %q: must not begin with a dot, or have a slash", j.account)
	}
	err := os.Mkdir(j.Dir, access.PrivateDirs)
	if errors.Is(err, fs.ErrNotExist) {
		if err = s.config.makeAccountDir(filepath.Dir(j.Dir), as); err == nil {
			err = os.Mkdir(j.Dir, access.PrivateDirs)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil && as != nil {
		err = os.Chmod(j.Dir, access.ThroughDirs)
	}
	return err
}

// makeAccountDir makes the directory of an account, which only the account's user can enter. In a room, tasks see only
// the directory of their own account. Without rooms, the directory's group keeps other accounts out.
func (c *Config) makeAccountDir(dir string, as *syscall.Credential) error {
	err := os.Mkdir(dir, access.PrivateDirs)
	if err == nil && as != nil {
		err = errors.Join(os.Chown(dir, -1, int(as.Gid)), os.Chmod(dir, access.GroupDirs))
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// silentFile is the name of the file that lists the attempts without output, one on each line.
const silentFile = "silent"

// Note adds an attempt that left no output to the list in silentFile.
func (j *Job) Note(name string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.notes == nil {
		fd, err := lane.OpenFile(filepath.Join(j.Dir, silentFile), unix.O_CREAT|unix.O_WRONLY|unix.O_APPEND)
		if err != nil {
			return err
		}
		j.notes = os.NewFile(uintptr(fd), silentFile)
	}
	_, err := j.notes.WriteString(name + "\n")
	return err
}

// closeFiles closes the files that only running tasks need.
func (j *Job) closeFiles() {
	j.lanes.CloseFiles()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.notes != nil {
		_ = j.notes.Close()
		j.notes = nil
	}
}

// A file lists the attempts that ran on this node and left no output. wasSilent reports whether one attempt is in the
// file. The argument `base` is the common beginning of the paths of this attempt's files.
func wasSilent(base string) bool {
	file, err := lane.OpenToRead(filepath.Join(filepath.Dir(base), silentFile))
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

// RanHere is called if the output of an attempt was not found. It reports whether the attempt ran on this node. There
// are two signs of this: another file of the attempt exists here, or the attempt is in the list of attempts without
// output.
func (s *Store) RanHere(a messages.Attempt) bool {
	base := s.base(a)
	if base == "" {
		return false
	}
	for _, ending := range lane.Endings {
		if _, err := os.Stat(base + ending); err == nil {
			return true
		}
	}
	return wasSilent(base)
}

// OpenOutput opens an output of an ended attempt for reading.
func (s *Store) OpenOutput(a messages.Attempt, i int) (*os.File, error) {
	base := s.base(a)
	if base == "" {
		return nil, os.ErrNotExist
	}
	return lane.OpenToRead(base + lane.Endings[i])
}

// makeDir makes a directory that other users cannot list. If tasks run as other users, these users may pass through the
// directory to their own files.
func (c *Config) makeDir(dir string) error {
	if err := os.MkdirAll(dir, access.PrivateDirs); err != nil || !c.Users {
		return err
	}
	return errors.Join(os.Chmod(c.Dir, access.ThroughDirs), os.Chmod(dir, access.ThroughDirs))
}

// base returns the common beginning of the paths of an attempt's files, or "" if the job is unknown.
func (s *Store) base(a messages.Attempt) string {
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

// unnamed is the name of the directory for jobs without an account. No account can have this name.
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

// Owner returns the account that owns a job. The result `known` is false if the job never ran here, or its files were
// removed.
func (s *Store) Owner(id messages.JobID) (account messages.Name, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs[id]; j != nil && j.account != "" {
		return j.account, true
	}
	return "", false
}

// Files returns the files of an attempt that is about to start. The argument `limit` is how many bytes are kept of each
// output.
func (s *Store) Files(account messages.Name, a messages.Attempt, limit int64) lane.Files {
	return lane.NewFiles(baseOf(s.dir, account, a), limit, s.config.OutputTail)
}

// Use sets the configuration with which programs are made. A lane is a set of output files that one task after another
// uses. If `shares` is true, all jobs of an account use the same lanes.
func (s *Store) Use(programs program.Config, shares bool) { s.programs, s.shares = programs, shares }
