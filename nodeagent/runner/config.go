package runner

import (
	"cmp"
	"path/filepath"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/proxy"
	"github.com/candor-grid/candor/nodeagent/runner/access"
	"github.com/candor-grid/candor/nodeagent/runner/cell"
	"github.com/candor-grid/candor/nodeagent/runner/machine"
	"github.com/candor-grid/candor/nodeagent/runner/users"
)

// Config configures [Processes]. The zero value of an optional field means
// its default.
type Config struct {
	Site messages.Name
	Node messages.Name
	// Dir is the state directory. It is created if needed.
	Dir string
	// Grace is the time from SIGTERM to SIGKILL at a task's time limit; default 5 s.
	Grace time.Duration
	// OutputLimit bounds how much of each output of a task is kept, in bytes; default 64 MiB. If an output is longer,
	// only its beginning and its end are kept. Each of them has half of the limit, rounded up to blocks. Between two
	// checks (CheckEvery), a file may be larger.
	OutputLimit int64
	// OutputLimits has, for some classes, a limit that replaces OutputLimit.
	OutputLimits map[messages.Name]int64
	// OutputTail keeps only the end of an output above the limit.
	OutputTail bool
	// DirLimit is the most that a task may keep in its own working directory, in bytes; package tree says how bytes are
	// counted. The default is 10 GiB. A task that exceeds the limit is ended, and its files in the directory are
	// removed. The directory is measured at intervals of CheckEvery or longer, and at the end of the task. The
	// temporary directories that the tasks of an account share have the same limit. If these directories exceed it, all
	// tasks that share them are ended.
	DirLimit int64
	// KeptLimit is the maximum number of bytes that the runner keeps of an account's ended tasks: their directories and
	// their outputs together. If there are more, the oldest output is removed first. The default is a tenth of the disk
	// of Dir, at least 256 MiB.
	KeptLimit int64
	// KeepFree is how much tasks leave free on the disk of Dir, in bytes; the default is a twentieth of the disk,
	// between 512 MiB and 8 GiB.
	KeepFree int64
	// CheckEvery is the time between two checks of the output and memory of running tasks; default 500 ms.
	CheckEvery time.Duration
	// KeepJobs is the number of job directories that are kept for jobs without running tasks; default 1000. If there
	// are more, the jobs that have been idle for the longest time lose their directories.
	KeepJobs int
	// Limits bounds each task, if the node can enforce it. Limits.Memory applies if the stage gives no limit. If Pids
	// is 0, tasks with more than [cell.DefaultPids] processes are ended.
	Limits cell.Limits
	// Memory is the memory limit of a task of a class, in bytes, if the task's stage gives no limit. For such a class,
	// Memory counts instead of Limits.Memory. MostMemory is the largest memory limit that a task of a class can get; 0
	// means no bound.
	Memory, MostMemory map[messages.Name]int64
	// User is the user that tasks run as: a name, "account" for the user with the name of the job's account, or a range
	// such as "100000-165535" with one number for each account. The runner must then be root, in the first user
	// namespace or in one of its own. The default is the user of this process.
	User string
	// Users is the file with the user number of each account. The default is the file named users in Dir. All nodes of
	// a machine use the same file.
	Users string
	// Apart gives the tasks of each account their own namespaces. If accounts have no users of their own, the tasks of
	// each job get their own namespaces. The tasks in the same namespaces see only their own processes, shared memory
	// and temporary directories. In the directories of Hide (default: Dir), they see only their own files. Apart needs
	// Inside, the command that calls [room.Inside], and the permission to make namespaces. Without them, tasks start
	// without namespaces, and the node lacks [agent.AbilityApart].
	Apart bool
	// Private includes everything that Apart does. In addition, tasks get a network that has only a loopback. If that
	// is impossible, [NewProcesses] fails. Private needs a User.
	Private bool
	Hide    []string
	Inside  []string
	// Namespaces lets tasks make user namespaces. In these, a task can also make namespaces of mounts, processes and
	// host names, but not of networks and IPC. Programs that run containers need this. A task has capabilities in the
	// namespaces that it makes.
	Namespaces bool
	// Mapped is the user namespace of the process that runs the tasks of an unprivileged node. In this namespace, the
	// process has the rights to separate tasks. The namespace has only this user ("self"), or also the user's
	// subordinate users ("range"). Empty means no namespace.
	Mapped string
	// Alone says that this process starts only tasks, so each orphan that the kernel gives to this process belongs to one
	// of its tasks.
	Alone bool
	// Machine is the part of this machine that is divided among the tasks. A class of slots may have a unit, which says
	// what one slot contains. Only tasks of such a class get a part of Machine.
	Machine machine.Machine
	// Proxy makes the tokens with which tasks send requests to their site; see package proxy. If it is nil, tasks
	// cannot send any.
	Proxy proxy.Key
	// NoCells says not to use control groups, even if there are some.
	NoCells bool
	// Clock returns the times that appear in reports; nil means the wall clock. Time limits and grace times do not use
	// Clock: they always use real time.
	Clock func() messages.Time `json:"-"`
}

// These are the possible values of [Config.Mapped].
const (
	MappedSelf  = "self"
	MappedRange = "range"
)

// Defaults of [Config].
const (
	DefaultGrace       = 5 * time.Second
	DefaultOutputLimit = 64 << 20
	DefaultDirLimit    = 10 << 30
	DefaultCheckEvery  = 500 * time.Millisecond
	DefaultKeepJobs    = 1000
)

// Validate checks the configuration and fills in the defaults.
func (c *Config) Validate() error {
	switch {
	case c.Site == "" || c.Node == "":
		return messages.Errorf(messages.Invalid, "runner: Site and Node must be set")
	case c.Dir == "":
		return messages.Errorf(messages.Invalid, "runner: Dir must name the state directory")
	case c.Grace < 0 || c.CheckEvery < 0 || c.OutputLimit < 0 || c.DirLimit < 0 || c.KeptLimit < 0 || c.KeepFree < 0 || c.KeepJobs < 0:
		return messages.Errorf(messages.Invalid, "runner: Grace, CheckEvery, OutputLimit, DirLimit, KeptLimit, KeepFree and KeepJobs must not be negative")
	case c.Limits.Memory < 0 || c.Limits.Pids < 0 || !(c.Limits.CPU >= 0):
		return messages.Errorf(messages.Invalid, "runner: Limits must not be negative")
	}
	c.Apart = c.Apart || c.Private
	switch {
	case c.Apart && len(c.Inside) == 0:
		return messages.Errorf(messages.Invalid, "runner: the fields Apart and Private need the field Inside, the command that sets the namespaces up")
	case c.Private && c.User == "" && c.Mapped == "":
		return messages.Errorf(messages.Invalid, "runner: the field Private needs the field User or Mapped: a task that runs as the site's user could undo its own containment")
	case c.Mapped != "" && c.Mapped != MappedSelf && c.Mapped != MappedRange:
		return messages.Errorf(messages.Invalid, "runner: Mapped %q: must be %q, %q or empty", c.Mapped, MappedSelf, MappedRange)
	}
	if r, isRange := users.Parse(c.User); isRange {
		if err := r.Check(); err != nil {
			return messages.Errorf(messages.Invalid, "runner: User %s", messages.Detail(err))
		}
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return messages.Errorf(messages.Invalid, "runner: Dir %q: %v", c.Dir, err)
	}
	c.Dir = access.Real(dir)
	c.fill()
	return nil
}

func (c *Config) fill() {
	c.Users = cmp.Or(c.Users, filepath.Join(c.Dir, "users"))
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	c.OutputLimit = cmp.Or(c.OutputLimit, DefaultOutputLimit)
	c.DirLimit = cmp.Or(c.DirLimit, DefaultDirLimit)
	c.CheckEvery = cmp.Or(c.CheckEvery, DefaultCheckEvery)
	c.KeepJobs = cmp.Or(c.KeepJobs, DefaultKeepJobs)
	if c.Clock == nil {
		c.Clock = wallClock
	}
	if len(c.Hide) == 0 {
		c.Hide = []string{c.Dir}
	}
	c.Hide = withoutLinks(c.Hide)
}

// withoutLinks replaces each directory in the list by its path without symbolic links. Only the paths in this list are
// hidden from tasks. If the list had a symbolic link, a task could reach the directory by its real path.
func withoutLinks(dirs []string) []string {
	real := make([]string, len(dirs))
	for i, dir := range dirs {
		real[i] = access.Real(dir)
	}
	return real
}

func (c *Config) mostOutput() int64 {
	most := c.OutputLimit
	for _, l := range c.OutputLimits {
		most = max(most, l)
	}
	return most
}

// outputLimit returns how much is kept of each output of a task of a class, in bytes.
func (c *Config) outputLimit(class messages.Name) int64 {
	if own := c.OutputLimits[class]; own > 0 {
		return own
	}
	return c.OutputLimit
}

// shared returns the limit of the shared memory of a room, in bytes; 0 means no bound. The limit is as large as the
// memory limit of one task. It does not grow with the number of tasks, because shared memory stays when its task has
// ended.
func (c *Config) shared() int64 {
	most := c.Limits.Memory
	for _, m := range c.MostMemory {
		if m == 0 {
			return 0
		}
		most = max(most, m)
	}
	return most
}
