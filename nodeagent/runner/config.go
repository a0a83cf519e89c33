package runner

import (
	"cmp"
	"path/filepath"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/proxy"
	"github.com/candor-grid/candor/nodeagent/runner/access"
	"github.com/candor-grid/candor/nodeagent/runner/cell"
	"github.com/candor-grid/candor/nodeagent/runner/users"
)

// Config configures [Processes]. The zero value of an optional field means
// its default.
type Config struct {
	Site messages.Name
	Node messages.Name
	// Dir is the state directory, made if need be.
	Dir string
	// Grace is the time from SIGTERM to SIGKILL at a task's time limit; default 5 s.
	Grace time.Duration
	// OutputLimit bounds what is kept of each output of a task, in bytes; default 64 MiB.
	// Of what is more, the first and the last half of the limit are kept, rounded up to
	// blocks, and the task goes on. A file may hold more for as long as CheckEvery.
	OutputLimit int64
	// OutputLimits are the limits of classes that have their own.
	OutputLimits map[messages.Name]int64
	// OutputTail keeps only the end of an output above the limit.
	OutputTail bool
	// DirLimit bounds what a task may keep in a working directory of its own, in
	// bytes, as package tree counts them; beyond it the task is ended, and what it kept
	// is removed. Default 10 GiB. The directory is looked at every CheckEvery, less often if
	// that takes long, and at the end. The temporary directories that the tasks of an
	// account share have the same limit; beyond it, all who share them are ended.
	DirLimit int64
	// KeptLimit bounds what the ended tasks of an account keep here, their directories and outputs
	// together, in bytes; beyond it the oldest is removed. Default: a tenth of the disk of Dir, at
	// least 256 MiB.
	KeptLimit int64
	// KeepFree is how much tasks leave free on the disk of Dir, in bytes; default: a twentieth of
	// the disk, between 512 MiB and 8 GiB.
	KeepFree int64
	// CheckEvery is how often the output and memory of running tasks are
	// looked at; default 500 ms.
	CheckEvery time.Duration
	// KeepJobs is how many jobs that have no task running keep their
	// directories, the latest first; default 1000.
	KeepJobs int
	// Limits bounds each task, where the node can; Memory where its stage says
	// nothing. Where it says nothing of processes, tasks with more than
	// [cell.DefaultPids] are ended.
	Limits cell.Limits
	// Memory is what a task of a class has, in bytes, where its stage says nothing, in
	// place of Limits; MostMemory is the most that a task gets, whatever else says more or nothing; 0: no bound.
	Memory, MostMemory map[messages.Name]int64
	// User is the user that tasks run as: a name, "account" for the user named as the
	// job's account, or a range such as "100000-165535", of which each account has one
	// number; needs root, in the first user namespace or one of its own. Default: the
	// user of this process.
	User string
	// Users is the file that keeps which account has which number of a range, the
	// same one for all nodes of a machine; default: users in Dir.
	Users string
	// Apart gives the tasks of an account, or of a job where accounts have no users
	// of their own, namespaces: they see their own processes, shared memory and
	// temporary directories, and nothing of the directories of Hide but what is
	// theirs; default of Hide: Dir. It needs Inside, the command that calls [Inside],
	// and what it takes to make namespaces: where that is missing, tasks start
	// without, and the node lacks [messages.AbilityApart].
	Apart bool
	// Private is Apart, with no network but a loopback. Where that cannot be, the
	// runner cannot be made. It needs a User.
	Private bool
	Hide    []string
	Inside  []string
	// Namespaces lets tasks make user namespaces, and in these namespaces of mounts, processes and host
	// names, as programs that run containers do. A task has capabilities there, over what it made. No
	// namespaces of networks and IPC can be made.
	Namespaces bool
	// Mapped is the user namespace in which the process that runs the tasks of an
	// unprivileged node has the rights to contain them: with this user alone ("self"),
	// or with its subordinate users too ("range"). Empty: it has no namespace of its own.
	Mapped string
	// Alone says that this process starts nothing but tasks, so that processes of ended
	// parents that the kernel gives it are of its tasks.
	Alone bool
	// Machine is what the tasks that have shapes divide among them.
	Machine Machine
	// Proxy makes the tokens by which tasks ask their site (package proxy); nil: they cannot.
	Proxy proxy.Key
	// NoCells does without control groups where there are some.
	NoCells bool
	// Clock is the time that is reported; nil: the wall clock. Limits and
	// graces always pass in real time.
	Clock func() messages.Time `json:"-"`

	numbers *users.Registry // where User is a range
	noExec  bool            // see [NoExec]
}

// What [Config.Mapped] may be.
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
		return messages.Errorf(messages.Invalid, "runner: Apart and Private need Inside, the command that sets the namespaces up")
	case c.Private && c.User == "" && c.Mapped == "":
		return messages.Errorf(messages.Invalid, "runner: Private needs a User: a task is not contained by what its own user may change")
	case c.Mapped != "" && c.Mapped != MappedSelf && c.Mapped != MappedRange:
		return messages.Errorf(messages.Invalid, "runner: Mapped %q: must be %q, %q or empty", c.Mapped, MappedSelf, MappedRange)
	}
	if err := validUser(c.User); err != nil {
		return err
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

// withoutLinks are directories by their paths without links. A link is no hiding place: whoever
// names the directory that it leads to would find all that is there.
func withoutLinks(dirs []string) []string {
	real := make([]string, len(dirs))
	for i, dir := range dirs {
		real[i] = access.Real(dir)
	}
	return real
}

// mostOutput is the largest limit of an output, in bytes.
func (c *Config) mostOutput() int64 {
	most := c.OutputLimit
	for _, l := range c.OutputLimits {
		most = max(most, l)
	}
	return most
}

// outputLimit is how much is kept of each output of a task of a class, in bytes.
func (c *Config) outputLimit(class messages.Name) int64 {
	if own := c.OutputLimits[class]; own > 0 {
		return own
	}
	return c.OutputLimit
}
