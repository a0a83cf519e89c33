package embedded

import (
	"path/filepath"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/cell"
	"github.com/candor-grid/candor/nodeagent/runner/dumps"
	"github.com/candor-grid/candor/nodeagent/runner/executor"
	numbers "github.com/candor-grid/candor/nodeagent/runner/users"
)

// usersFile says which account has which user number on a machine.
const usersFile = "users"

// contain decides how the tasks of this process's nodes are isolated from the site and from each other. If the options
// name no executor, this process runs the tasks itself, by default as its own user.
func (s *share) contain() error {
	t, o := &s.config.Tasks, &s.options
	s.tasks = runner.Config{
		Private: t.Private, Namespaces: t.Namespaces == namespacesAllow, Hide: []string{s.config.State}, Inside: executor.Inside(), Users: s.usersFile(),
		Limits: cell.Limits{Memory: t.MemoryMiB << 20, Pids: t.Processes, CPU: t.CPU}, DirLimit: t.DiskMiB << 20,
		KeptLimit: t.KeptMiB << 20, KeepFree: t.FreeMiB << 20,
	}
	s.tasks.Memory, s.tasks.MostMemory = s.config.memoryOf()
	for class := range s.config.offered() {
		s.tasks.MostMemory[class] += 0 // adding 0 makes an entry also for a class without a limit
	}
	s.tasks.OutputLimit, s.tasks.OutputTail, s.tasks.OutputLimits = t.OutputMiB<<20, t.OutputKeep == keepTail, t.outputs()
	if s.config.Keys != "" {
		s.tasks.Hide = append(s.tasks.Hide, s.config.Keys)
	}
	state := s.tasks.Hide
	if o.Runner != nil {
		return nil
	}
	if o.Only != nil && o.Only.Actor != messages.NodeAgent {
		return dumps.Refuse()
	}
	choice := t.User
	if choice == "" && len(o.Executor) == 0 && !t.Private {
		choice = runner.UserSelf
	}
	if err := s.tasks.Contain(choice, len(o.Executor) > 0); err != nil {
		return messages.Errorf(messages.KindOf(err), "tasks.user: %s", messages.Detail(err))
	}
	if len(o.Executor) > 0 { // this must happen before this process reads the site's keys
		if err := dumps.Refuse(); err != nil {
			return err
		}
	}
	if s.tasks.Apart {
		s.info.Hidden = state
	}
	if _, isRange := numbers.Parse(s.tasks.User); isRange {
		s.info.TaskUsers, s.info.UsersFile = s.tasks.User, s.tasks.Users
	}
	return nil
}

// TaskUser returns the system user that runs an account's tasks on this machine. It returns false if there is no range
// of users.
func (i *Info) TaskUser(account messages.Name) (uint32, bool, error) {
	r, isRange := numbers.Parse(i.TaskUsers)
	if !isRange || i.UsersFile == "" {
		return 0, false, nil
	}
	n, err := numbers.Open(i.UsersFile, r).Number(i.Site + "/" + account)
	return n, err == nil, err
}

// usersFile returns the path of the file with the users of tasks. All sites of this process share it, so that no two
// accounts get the same user.
func (s *share) usersFile() string {
	if s.options.usersFile != "" {
		return s.options.usersFile
	}
	return filepath.Join(s.config.State, usersFile)
}

func (c *Config) checkTasks(ps *Problems) {
	t := &c.Tasks
	if r, isRange := numbers.Parse(t.User); isRange {
		if err := r.Check(); err != nil {
			ps.addf("tasks.user", "%s", messages.Detail(err))
		} else if accounts := uint64(len(c.Accounts) + len(c.Operators)); r.Size() < accounts {
			ps.addf("tasks.user", "%v has %d user numbers, but there are %d accounts, and each account needs a number", r, r.Size(), accounts)
		}
	}
	if t.User == "root" || t.User == "0" {
		ps.addf("tasks.user", "tasks cannot run as root; name another user, or leave tasks.user out")
	}
	if t.Private && t.User == runner.UserSelf {
		ps.addf("tasks.private", "needs tasks that run as other users than the site; leave tasks.user out")
	}
	for _, n := range []struct {
		name  string
		value float64
	}{{"memory_mib", float64(t.MemoryMiB)}, {"processes", float64(t.Processes)}, {"cpu", t.CPU}, {"max_memory_mib", float64(t.MaxMemoryMiB)}, {"disk_mib", float64(t.DiskMiB)},
		{"kept_mib", float64(t.KeptMiB)}, {"free_mib", float64(t.FreeMiB)},
		{"output_mib", float64(t.OutputMiB)}} {
		if !(n.value >= 0) {
			ps.addf("tasks."+n.name, "%v is negative; leave the field out to set no limit", n.value)
		}
	}
	if t.MaxMemoryMiB > 0 && t.MemoryMiB > t.MaxMemoryMiB {
		ps.addf("tasks.memory_mib", "%d is above max_memory_mib, %d", t.MemoryMiB, t.MaxMemoryMiB)
	}
	for field, path := range map[string]string{"tasks.prolog": t.Prolog, "tasks.epilog": t.Epilog} {
		if path != "" && !filepath.IsAbs(path) {
			ps.addf(field, "%q must be the absolute path of a program, such as /etc/candor/prolog", clip(path))
		}
	}
	if t.OutputMiB > mostOutput {
		ps.addf("tasks.output_mib", "%d is above %d", t.OutputMiB, mostOutput)
	}
	if n := t.Namespaces; n != "" && n != namespacesRefuse && n != namespacesAllow {
		ps.addf("tasks.namespaces", "%q: must be %q or %q", clip(n), namespacesRefuse, namespacesAllow)
	}
	if k := t.OutputKeep; k != "" && k != keepEnds && k != keepTail {
		ps.addf("tasks.output_keep", "%q: must be %q, to keep the beginning and the end of the output, or %q, to keep only the end", clip(k), keepEnds, keepTail)
	}
	offered := c.offered()
	for class, m := range t.Classes {
		path := "tasks.classes." + class
		if !offered[class] && !c.sells(class) {
			ps.addf(path, "no node offers class %q%s", clip(class), didYouMean(class, sorted(offered)))
		}
		if m.MemoryMiB < 0 || m.MaxMemoryMiB < 0 || m.MaxMemoryMiB > 0 && m.MemoryMiB > m.MaxMemoryMiB {
			ps.addf(path, "memory_mib %d and max_memory_mib %d: must not be negative, and memory_mib must not be above max_memory_mib", m.MemoryMiB, m.MaxMemoryMiB)
		}
		if m.OutputMiB < 0 || m.OutputMiB > mostOutput {
			ps.addf(path+".output_mib", "%d: must be between 0 and %d; 0 stands for tasks.output_mib", m.OutputMiB, mostOutput)
		}
	}
}

// These values say which parts of an output are kept if it is longer than its limit.
const (
	keepEnds = "ends"
	keepTail = "tail"
	// mostOutput is the largest limit of an output, in MiB: one TiB.
	mostOutput = 1 << 20
)

// These are the values of the setting that says whether tasks may make user namespaces.
const (
	namespacesRefuse = "refuse"
	namespacesAllow  = "allow"
)

// outputs returns the limits of outputs in bytes, for the classes that have a separate limit.
func (t *Tasks) outputs() map[messages.Name]int64 {
	limits := map[messages.Name]int64{}
	for class, m := range t.Classes {
		if m.OutputMiB > 0 {
			limits[class] = m.OutputMiB << 20
		}
	}
	return limits
}

// memory returns the usual and the largest memory of a task of a class, in bytes; 0 means no limit. A stage that names
// no memory gets the usual memory. If a class has memory settings of its own, the settings for all classes do not apply
// to it. If only one of the two values is set, it is used for both.
func (t *Tasks) memory(class messages.Name) (usual, most int64) {
	m := TaskMemory{MemoryMiB: t.MemoryMiB, MaxMemoryMiB: t.MaxMemoryMiB}
	if own := t.Classes[class]; own.MemoryMiB > 0 || own.MaxMemoryMiB > 0 {
		m = own
	}
	if m.MaxMemoryMiB == 0 {
		m.MaxMemoryMiB = m.MemoryMiB
	}
	if m.MemoryMiB == 0 { // without a usual memory, only the maximum applies
		m.MemoryMiB = m.MaxMemoryMiB
	}
	return m.MemoryMiB << 20, m.MaxMemoryMiB << 20
}

// memoryOf returns the usual and the largest memory of a task, for each class that a node offers.
func (c *Config) memoryOf() (usual, most map[messages.Name]int64) {
	usual, most = map[messages.Name]int64{}, map[messages.Name]int64{}
	for class := range c.offered() {
		if u, m := c.Tasks.memory(class); m > 0 {
			usual[class], most[class] = u, m
		}
	}
	return usual, most
}
