package runner

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner/cell"
	"github.com/candor-grid/candor/nodeagent/runner/lane"
	"github.com/candor-grid/candor/nodeagent/runner/launch"
	"github.com/candor-grid/candor/nodeagent/runner/machine"
	"github.com/candor-grid/candor/nodeagent/runner/program"
	"github.com/candor-grid/candor/nodeagent/runner/room"
	"github.com/candor-grid/candor/nodeagent/runner/session"
	"github.com/candor-grid/candor/nodeagent/runner/store"
	"github.com/candor-grid/candor/nodeagent/runner/stream"
)

type process struct {
	runner *Processes
	task   Task
	done   func(agent.Finished)
	job    *store.Job
	cell   *cell.Cell       // nil until the task has a cell
	has    *machine.Portion // the task's part of the machine; nil means any free part
	room   *room.Room       // nil if the task runs in the namespaces of this process
	opened chan struct{}    // closed when the output files exist
	ended  chan struct{}    // closed when the task is removed from the runner
	// finished is the report of the task's end. Only the goroutine that works on the task at the moment may use it.
	finished agent.Finished

	mu        sync.Mutex
	files     lane.Files
	child     launch.Child            // the zero value until the task's process starts
	launch    *launch.Launch          // launch of the child; nil before the start
	late      *time.Timer             // timer that ends a start that takes too long
	guests    sync.WaitGroup          // other processes that are being started in the task
	joining   map[*launch.Launch]bool // launches of the guests
	note      int                     // position of the task's record in the handles
	over      bool                    // the child was reaped; another process may have its number
	ending    bool                    // the task was told to end
	asked     bool                    // the task's processes got SIGTERM
	grace     time.Duration           // the shortest grace period that the task was given
	why       agent.Outcome
	last      string // words of the last line when Stop ends the task; "" means no such line
	suspended bool   // the task must not run until it is resumed
	braked    bool   // the task is suspended while the runner measures which task fills the disk
	freezing  bool   // a goroutine moves the task's processes into the frozen group
	frozen    bool   // the task's processes are in the frozen group, or are being moved there
	halted    bool   // the task's processes were stopped by signals
	limit     limit
	early     limit       // timer of the signal that comes before the time limit
	kill      *time.Timer // timer that kills the task at the end of the grace period
	killAt    time.Time
	exceeds   string // the limit that the task exceeds
	measuring measuring
	peak      int64 // largest memory that the method check has seen, in bytes
	program   *program.Program
	dir       string         // the task's working directory
	stream    *stream.Stream // nil if the task is not interactive
	ours      []*os.File     // the runner's ends of the stream's files
}

// prompt reports whether everything that the task needs is ready, so that its start takes almost no time.
func (t *process) prompt() bool {
	p := t.task.Program
	return len(p.Inputs) == 0 && p.Interactive == nil && !t.runner.loose && t.runner.store.Prompt(t.task.Attempt.Task.Job, p)
}

// begin starts the task. The method finish is called when the task's first process has exited. The method leave is
// called when all processes of the task have ended.
func (t *process) begin() {
	t.job = t.runner.store.Acquire(t.task.Attempt.Task.Job, t.task.Program.Account)
	t.finished = agent.Finished{Attempt: t.task.Attempt, Started: t.runner.config.Clock()}
	program, err := t.runner.store.Program(t.job, t.task.Program)
	t.enterLane(t.runner.store.LanesFor(t.job, program))
	why := ""
	if err != nil {
		why = messages.Detail(err)
	} else {
		why = t.prepare(program)
	}
	if why != "" {
		t.refuse(why)
		t.leave()
	}
}

// prepare makes everything that the process needs, and starts the process. If that fails, it returns the reason.
func (t *process) prepare(p *program.Program) (why string) {
	t.tellFirst(p.As)
	dir, err := t.workingDir(p)
	if err != nil {
		return "its directory could not be made: " + messages.Detail(err)
	}
	if len(t.task.Program.Inputs) > 0 {
		if err := t.runner.store.PlaceInputs(t.task.Program, dir, p.As); err != nil {
			return "input " + messages.Detail(err)
		}
	}
	if t.has, err = t.runner.stock.Take(t.task.Program); err != nil {
		return messages.Detail(err)
	}
	var roomless error
	t.room, roomless = t.takeRoom(p)
	if t.cell, err = t.runner.cells.Take(t.limits(), t.room.Counted()); err != nil {
		return messages.Detail(err)
	}
	// If the task has a terminal, the terminal is opened in the room. The files are opened even if the room could not
	// be made: without them, the client of a stream would not get the error.
	files, theirs, err := t.openFiles(p)
	if err = cmp.Or(roomless, err); err == nil && !t.arm() {
		err = errors.New("stopped")
	}
	if err != nil {
		_ = launch.CloseAll(theirs)
		return messages.Detail(err)
	}
	t.runner.forks.Add(t.launch)
	t.files.Begin()
	t.runner.forge.Begin(t.cell, t.place(), p.IsRoot(), func(err error) {
		var c launch.Child
		if err == nil {
			c, err = t.fork(p, dir, files)
		}
		_ = launch.CloseAll(theirs)
		if err == nil {
			t.begun(p, dir, c)
		}
		if err != nil {
			t.runner.forks.Remove(t.launch)
			go t.fail(p, dir, err)
		}
	})
	return ""
}

// startWithin bounds the time from the creation of a task's process until this process executes the program. A task can
// delay a start by a kernel lease on the program's file: the kernel waits 45 s by default until such a lease ends.
const startWithin = time.Minute

// startGrace is how long a start may still take after the task is no longer wanted. Most starts end by themselves
// within this time.
const startGrace = time.Second

// giveUp ends a start that takes too long, or that is no longer wanted.
func (t *process) giveUp() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.child.PID == 0 && !t.over && t.launch != nil {
		t.launch.Kill()
	}
}

func (t *process) fail(p *program.Program, dir string, err error) {
	t.cell.Retire() // retired, because the cell may be the reason that no process could start
	t.refuse(p.Explain(dir, err))
	t.leave()
}

// leave is called when a task's process has ended. It ends the task's other processes, keeps the results, and reports
// the end.
func (t *process) leave() {
	if t.cell != nil {
		t.runner.cells.Leave(t.cell)
	}
	t.runner.stock.Give(t.has)
	if t.room != nil { // after the steps above, because the account's cells end with the room
		t.runner.rooms.Leave(t.room)
	}
	t.finishStream(&t.finished)
	if !t.leaveLane() {
		t.report()
		return
	}
	go func() { // in the background, because the directory may be large
		t.runner.settleDir(t.files.KeptDir(), &t.finished)
		t.report()
	}()
}

// report reports how the task ended, and removes the task.
func (t *process) report() {
	p := t.runner
	t.finished.Lost = t.files.Dropped()
	p.leave(t)
	p.endHidden()
	t.done(t.finished)
	if !p.store.Release(t.job) {
		p.tasks.Done()
		return
	}
	go func() {
		defer p.tasks.Done()
		p.store.RemoveMoved()
	}()
}

// refuse ends a task that has no process. If the task was stopped before its start, the outcome says so. Otherwise the
// outcome is Unstartable, and refuse writes the reason to the task's error output.
func (t *process) refuse(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := &t.finished
	f.Outcome, f.Detail, f.Ended = agent.Unstartable, why, t.runner.config.Clock()
	if t.ending {
		f.Outcome, f.Detail = t.why, "stopped before it started"
	} else if fd, err := t.files.Open(lane.Errors); err == nil {
		_, _ = unix.Write(fd, []byte("candor: this task could not be started: "+why+"\n"))
	}
	t.over = true
	if t.launch != nil {
		t.late.Stop()
		t.launch.Drop()
	}
}

func (t *process) enterLane(of *lane.Lanes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.files.Enter(of)
}

// leaveLane keeps the files that the task wrote, and reports whether it left files in its own directory.
func (t *process) leaveLane() (left bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.files.Leave(t.job.Note)
}

func (t *process) workingDir(p *program.Program) (string, error) {
	if p.Dir != "" {
		return p.Dir, nil
	}
	return t.files.WorkingDir(p.As)
}

// openFiles opens the files of the task's process: its stream, or an empty input and its output files. After the start,
// the caller must close the files in `theirs`.
func (t *process) openFiles(p *program.Program) (files []uintptr, theirs []*os.File, err error) {
	defer close(t.opened)
	if t.task.interactive() != nil {
		theirs, err := t.openStream(p.As)
		for _, f := range theirs {
			files = append(files, f.Fd())
		}
		return files, theirs, err
	}
	files = append(files, t.runner.null.Fd())
	for _, i := range []int{lane.Output, lane.Errors} {
		fd, err := t.files.Open(i)
		if err != nil {
			return nil, nil, messages.Errorf(messages.Unavailable, "output file: %v", err)
		}
		files = append(files, uintptr(fd))
	}
	return files, nil, nil
}

// takeRoom returns the room (a set of namespaces) in which the task runs. It returns nil if the task runs in the
// namespaces of this process.
func (t *process) takeRoom(p *program.Program) (*room.Room, error) {
	c, rooms := &t.runner.config, t.runner.rooms
	if rooms == nil {
		return nil, nil
	}
	key, show := string(t.task.Program.Account), filepath.Dir(t.job.Dir)
	if !program.PerAccount(c.User) {
		key, show = t.task.Attempt.Task.Job.String(), t.job.Dir
	}
	r, err := rooms.Take(key, p.As, []string{show})
	if err != nil || p.Dir == "" {
		return r, err
	}
	if err := rooms.Show(r, p.Dir); err != nil {
		rooms.Leave(r)
		return nil, err
	}
	return r, nil
}

// fork starts the process from a confined thread: this thread is in the task's room, and cannot see the node's files.
func (t *process) fork(p *program.Program, dir string, files []uintptr) (launch.Child, error) {
	i := t.task.interactive()
	sys := &syscall.SysProcAttr{Setsid: true, Credential: p.As, Setctty: i != nil && i.Terminal}
	t.cell.Attributes(sys)
	t.runner.forge.Bind(t.launch, t.cell, t.has.Affinity())
	path, argv := p.Path, p.Argv
	if t.task.holds() {
		path, argv = holding[0], holding
	}
	return t.launch.Spawn(path, argv, t.env(p, dir), dir, p.Umask, files, sys)
}

func (t *process) place() launch.Place {
	if t.room == nil {
		return nil
	}
	return t.room
}

func (t *process) env(p *program.Program, dir string) []string {
	return append(p.Env(&t.task.Grant, t.files.Alive(), dir), t.has.Variables(t.runner.cells.Holds(cell.Devices))...)
}

// limits returns the limits of the task. Its memory limit comes from the stage, or else from the class, or else from
// the node. It is at most the class's MostMemory. If the task has a part of the machine, it may use only the processors
// and devices of this part.
func (t *process) limits() cell.Limits {
	c, p := &t.runner.config, t.task.Program
	l := c.Limits
	if usual := c.Memory[p.Class]; usual > 0 {
		l.Memory = usual
	}
	switch {
	case p.Memory > 0:
		l.Memory = p.Memory
	case p.Memory == jobmsg.AllMemory:
		l.Memory = c.Machine.Memory
	case p.Shape != nil && p.Shape.Memory > 0:
		l.Memory = p.Shape.Memory
	}
	if most := c.MostMemory[p.Class]; most > 0 && (l.Memory == 0 || l.Memory > most) { // 0 means no limit
		l.Memory = most
	}
	if t.has != nil {
		l.Set, l.Devices = c.Machine.Bounds(t.has)
	}
	return l
}

// arm prepares the start of the task's process. It returns false if the task was stopped before.
func (t *process) arm() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ending {
		return false
	}
	t.launch, t.late = launch.New(), time.AfterFunc(startWithin, t.giveUp)
	return true
}

// begun records the child and sets the time limit of the task. If the task was stopped in the meantime, begun ends the
// child. The calling thread is confined and inside the task's room, where the node's files and processes are hidden.
func (t *process) begun(p *program.Program, dir string, c launch.Child) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finished.Started = t.runner.config.Clock()
	t.program, t.dir = p, dir
	t.late.Stop()
	t.child, t.note = c, t.runner.notes.Note(c.PID)
	t.limit.left = t.task.Program.TimeLimit.Std()
	t.limit.run(func() { t.end(agent.TimedOut, t.runner.config.Grace) })
	t.warn()
	if t.ending || t.toFreeze() {
		go t.obey()
	}
	t.runner.ends.Await(c, t.finish)
}

// obey carries out orders that came before the task had a process.
func (t *process) obey() {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over:
	case t.ending && t.last != "" && t.grace > 0: // the program may run already
		t.endWithLine(t.grace, t.last)
	case t.ending:
		t.ask(t.grace)
	case t.toFreeze():
		t.freeze()
	}
}

// finish collects the exited process and ends the task. If other processes of the task may be left, it ends the task in
// a separate goroutine, because it must first end these processes.
func (t *process) finish() {
	t.reap()
	if t.cell.Clean() && t.stream == nil && !t.runner.loose && !t.joined() {
		t.leave()
		return
	}
	go func() {
		t.guests.Wait() // guests are in the same cell, so they must have ended before the cell is used again
		t.runner.endOrphansOf(t)
		t.leave()
	}()
}

// Stop ends the task: SIGTERM now, and SIGKILL after the grace.
func (t *process) Stop(grace time.Duration) { t.end(agent.Stopped, grace) }

// Say sets the line `last`, which the runner adds to the task's output if Stop ends the task.
func (t *process) Say(last string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = last
}

// end ends the task. The argument `why` is the reason. If end is called several times, the first reason counts. The
// task is killed at the earliest time that one of the calls asks for.
func (t *process) end(why agent.Outcome, grace time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.ending
	if first {
		t.ending, t.why, t.grace = true, why, grace
		t.files.Untell()
	}
	t.grace = min(t.grace, grace)
	switch { // in other states, prepare or begun will see t.ending
	case first && why == agent.TimedOut && !t.over: // the limit runs only while the task has a process
		t.endWithLine(grace, fmt.Sprintf("DUE TO TIME LIMIT *** its time limit is %v", t.task.Program.TimeLimit))
	case first && t.last != "" && grace > 0 && t.child.PID != 0 && !t.over:
		t.endWithLine(grace, t.last)
	case t.child.PID != 0 && !t.over:
		t.ask(grace)
	case t.launch != nil && !t.over:
		time.AfterFunc(max(grace, startGrace), t.giveUp)
	}
}

// ask sends SIGTERM once to every process of the task, and SIGKILL when the time `grace` has passed. The caller holds
// t.mu.
func (t *process) ask(grace time.Duration) {
	if t.toFreeze() { // resumed, because a frozen process cannot handle the signal
		t.suspended, t.braked = false, false
		t.freeze()
	}
	if grace <= 0 {
		t.signal(unix.SIGKILL)
		return
	}
	if !t.asked {
		t.asked = true
		if w := t.task.Program.Signal; w != nil && t.why == agent.Stopped {
			t.alert(w)
		}
		t.signal(unix.SIGTERM, unix.SIGCONT) // SIGCONT lets a stopped process handle SIGTERM
	}
	t.killIn(grace)
}

// killIn kills the task after a grace period, unless the task will be killed earlier. The caller holds t.mu.
func (t *process) killIn(grace time.Duration) {
	at := time.Now().Add(grace)
	if t.kill != nil && !at.Before(t.killAt) {
		return
	}
	if t.kill != nil {
		t.kill.Stop()
	}
	t.killAt = at
	t.kill = time.AfterFunc(grace, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.over {
			t.signal(unix.SIGKILL)
		}
	})
}

// signal sends signals to every process of the task's session. The child must not have been reaped: another process may
// get its number. The caller holds t.mu.
func (t *process) signal(signals ...unix.Signal) {
	for _, s := range signals {
		unix.Kill(-t.child.PID, s)
	}
	session.Signal(t.child.PID, signals...)
}

// reap collects the status of the child, which has exited. Before that, it kills the other processes in the child's
// process group.
func (t *process) reap() {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := &t.finished
	unix.Kill(-t.child.PID, unix.SIGKILL)
	if t.ending {
		session.Signal(t.child.PID, unix.SIGKILL)
	}
	t.runner.notes.Forget(t.note) // forgotten now, because after the reaping another process may get the number
	status, usage := t.child.Reap()
	t.runner.forks.Remove(t.launch)
	if status.Signal() == unix.SIGKILL { // the task may have killed its own group, so the cell is not used again
		t.cell.Retire()
	}
	t.over = true
	for l := range t.joining {
		l.Kill()
	}
	t.limit.stop()
	t.early.stop()
	if t.kill != nil {
		t.kill.Stop()
	}
	f.Ended = t.runner.config.Clock()
	f.CPU = messages.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	f.MaxRSS = t.peak
	if most := usage.Maxrss << 10; t.runner.exceedsOwn(most) {
		f.MaxRSS = most
	}
	t.outcome(f, status)
}

func (t *process) outcome(f *agent.Finished, status unix.WaitStatus) {
	f.ExitCode = status.ExitStatus()
	if status.Signaled() {
		f.ExitCode = 128 + int(status.Signal())
		f.Detail = jobmsg.SignalDetail(unix.SignalName(status.Signal()))
	}
	switch {
	case t.ending && t.why == agent.TimedOut:
		f.Outcome, f.Detail = t.why, fmt.Sprintf("ended after %v by its time limit of %v", f.Ended.Sub(f.Started).Std().Round(time.Second/10), t.task.Program.TimeLimit)
	case t.ending && t.why.Limited():
		f.Outcome, f.Detail = t.why, t.exceeds
	case t.ending:
		f.Outcome = t.why
	case t.cell.OutOfMemory() && f.ExitCode == 0:
		f.MemoryKilled, f.Detail = true, fmt.Sprintf("lost a process to its memory limit of %d MiB; the task ended with exit code 0", t.limits().Memory>>20)
		if t.task.Program.OOM == jobmsg.FailOOM {
			f.Outcome, f.ExitCode = agent.OutOfMemory, 128+int(unix.SIGKILL) // 128+SIGKILL is the code of a killed process; 0 would look like success
			f.Detail += ", and counts as failed because of oom: fail"
		}
	case t.cell.OutOfMemory():
		f.Outcome, f.Detail = agent.OutOfMemory, fmt.Sprintf("ended by its memory limit of %d MiB", t.limits().Memory>>20)
		if f.MaxRSS >= 1<<20 {
			f.Detail += fmt.Sprintf("; its largest process had %d MiB", f.MaxRSS>>20)
		}
	default:
		f.Outcome = agent.Exited
	}
}

// exceedsOwn reports whether the peak memory of an ended process is larger than this process's peak. A child's peak
// also counts the time before the exec, when the child still has the memory of this process. So a smaller peak says
// nothing about the child's program.
func (p *Processes) exceedsOwn(peak int64) bool {
	if peak <= p.ownPeak.Load() {
		return false
	}
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) == nil {
		p.ownPeak.Store(usage.Maxrss << 10)
	}
	return peak > p.ownPeak.Load()
}
