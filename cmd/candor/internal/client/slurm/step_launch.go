package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// graceOfStep is the time between the signal that asks ranks to end and SIGKILL.
const graceOfStep = 2 * time.Second

// pmiFD is the file descriptor over which an MPI rank talks to srun in PMI-1 (process management interface).
const pmiFD = 13

type ranks struct {
	c    *call
	w    *step // the whole step
	runs []*run
	pmi  *pmi // nil means the ranks cannot find one another
	ends chan rankEnd

	local   []*exec.Cmd
	remote  []*remote
	outputs []rankOutput // outputs of ranks on other nodes, by rank
	ending  bool         // all ranks were asked to end
	over    bool         // the ranks themselves ended the step: the exit codes of the remaining ranks do not count
	inputs  []io.WriteCloser
	copies  sync.WaitGroup
	kills   *time.Timer
}

type rankEnd struct {
	rank, code int
	signal     syscall.Signal // 0 means it exited by itself
	lost       string         // why its node does not answer; "" means it answers
}

// rankOutput are the files for the output of a rank on another node.
type rankOutput struct{ out, errs *os.File }

// launch starts the ranks and waits for them. The error that it returns has the highest exit code of the ranks. The
// argument `own` is this node's index in the job's list of nodes.
func (c *call) launch(ctx context.Context, runs []*run, room *stepRoom, own int, limit time.Duration) error {
	w := merge(runs)
	for _, r := range runs {
		r.env = r.stepEnvironment(w)
	}
	s := &ranks{c: c, w: w, runs: runs, ends: make(chan rankEnd, w.ranks)}
	if w.alone(own) {
		p, first := &w.places[0], runs[0]
		if err := room.stay(); err != nil {
			return err
		}
		return c.become(w, first.path, first.argv, append(append(first.env, w.ofRank(p, 0)...), w.deviceVariables(p, 0, c.Getenv)...))
	}
	runtime.LockOSThread() // the kernel kills the ranks when the thread that started them ends
	defer runtime.UnlockOSThread()
	heard := make(chan os.Signal, 16)
	signal.Notify(heard, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT)
	defer signal.Stop(heard)
	defer s.killAll()
	if w.ranks > 1 && w.mpi != "none" {
		s.pmi = newPMI(w.placeAt, c.Getenv("CANDOR_JOB")+"."+strconv.Itoa(w.number))
	}
	s.outputs = make([]rankOutput, w.ranks)
	for i := range w.places {
		p := &w.places[i]
		if p.index != own {
			if err := s.startAway(ctx, p); err != nil {
				return err
			}
			continue
		}
		for _, rank := range p.ranks {
			if err := s.start(p, rank); err != nil {
				return err
			}
		}
	}
	s.feed()
	return s.wait(ctx, heard, limit)
}

func (w *step) command(p *place, rank int, path string, argv, env []string, environ func(string) string) *exec.Cmd {
	cmd := exec.Command(path)
	cmd.Args, cmd.Dir = argv, w.chdir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Env = append(env[:len(env):len(env)], w.ofRank(p, rank)...)
	cmd.Env = append(cmd.Env, w.deviceVariables(p, rank, environ)...)
	return cmd
}

func usePMI(cmd *exec.Cmd, theirs *os.File, rank, ranks int, name string) {
	cmd.ExtraFiles = make([]*os.File, pmiFD-2)
	cmd.ExtraFiles[pmiFD-3] = theirs
	cmd.Env = append(cmd.Env, "PMI_FD="+strconv.Itoa(pmiFD), "PMI_RANK="+strconv.Itoa(rank), "PMI_SIZE="+strconv.Itoa(ranks), "PMI_JOBID="+name)
}

func endOf(rank int, cmd *exec.Cmd) rankEnd {
	ws, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return rankEnd{rank: rank, code: 128 + int(ws.Signal()), signal: ws.Signal()}
	}
	return rankEnd{rank: rank, code: ws.ExitStatus()}
}

func (s *ranks) start(p *place, rank int) error {
	of := s.runs[p.of]
	cmd := of.w.command(p, rank, of.path, of.argv, of.env, s.c.Getenv)
	var closes []io.Closer
	defer func() {
		for _, f := range closes {
			_ = f.Close()
		}
	}()
	if s.pmi != nil {
		theirs, err := s.pmi.join(rank)
		if err != nil {
			return err
		}
		closes = append(closes, theirs)
		usePMI(cmd, theirs, rank, s.w.ranks, s.pmi.name)
	}
	out, err := s.output(rank, 1, &closes)
	if err != nil {
		return err
	}
	errs, err := s.output(rank, 2, &closes)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = out, errs
	if s.w.hears(rank) {
		theirs, ours, err := os.Pipe()
		if err != nil {
			return err
		}
		closes = append(closes, theirs)
		cmd.Stdin, s.inputs = theirs, append(s.inputs, ours)
	} else if file, err := s.inputFile(rank); err != nil {
		return err
	} else if file != nil {
		closes = append(closes, file)
		cmd.Stdin = file
	}
	if err := startRank(cmd); err != nil {
		return s.c.cannotRun(of.path, err)
	}
	s.local = append(s.local, cmd)
	go func() {
		_ = cmd.Wait()
		s.ends <- endOf(rank, cmd)
	}()
	return nil
}

// hears reports whether a rank reads srun's standard input.
func (w *step) hears(rank int) bool {
	return w.in == "" || w.in == "all" || w.in == strconv.Itoa(rank)
}

// inputFile opens the file that a rank reads as standard input. It returns nil if there is none.
func (s *ranks) inputFile(rank int) (*os.File, error) {
	if _, err := strconv.Atoi(s.w.in); err == nil || s.w.in == "none" || s.w.hears(rank) {
		return nil, nil
	}
	return os.Open(s.c.fill(s.w.in, s.w, rank))
}

// output returns the file to which a rank writes. This is a file of the rank's own, or srun's output, or a pipe. From
// the pipe, each line is copied to srun's output with the rank's number before it.
func (s *ranks) output(rank, number int, closes *[]io.Closer) (*os.File, error) {
	pattern := s.w.out
	if number == 2 {
		pattern = cmp.Or(s.w.errs, s.w.out)
	}
	mode := s.w.mode
	if number == 2 && s.w.errs == "" {
		s.w.mode = "a" // append, because the second open must not empty the file of standard output
	}
	file, err := s.c.open(pattern, s.w, rank)
	s.w.mode = mode
	if err != nil || file != nil {
		*closes = append(*closes, file)
		return file, err
	}
	to, own := s.c.Out, os.Stdout
	if number == 2 {
		to, own = s.c.Err, os.Stderr
	}
	if !s.w.label && s.c.In == io.Reader(os.Stdin) {
		return own, nil
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	*closes = append(*closes, theirs)
	label := ""
	if s.w.label {
		label = fmt.Sprintf("%*d: ", len(strconv.Itoa(s.w.ranks-1)), rank)
	}
	s.copies.Go(func() {
		defer ours.Close()
		copyLines(to, ours, label)
	})
	return theirs, nil
}

// The lock `writing` is held while lines are written, so that the lines of different ranks do not mix.
var writing sync.Mutex

func copyLines(to io.Writer, from io.Reader, label string) {
	var rest []byte
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		rest = append(rest, piece[:n]...)
		writing.Lock()
		for {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 && err != nil && len(rest) > 0 {
				i, rest = len(rest), append(rest, '\n')
			}
			if i < 0 {
				break
			}
			_, _ = to.Write(append([]byte(label), rest[:i+1]...))
			rest = rest[i+1:]
		}
		writing.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *ranks) feed() {
	if len(s.inputs) > 0 {
		go copyToAll(s.inputs, s.c.In)
	}
}

func copyToAll(all []io.WriteCloser, from io.Reader) {
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		for _, to := range all {
			_, _ = to.Write(piece[:n])
		}
		if err != nil {
			for _, to := range all {
				_ = to.Close()
			}
			return
		}
	}
}

// wait waits until all ranks have ended. If this process gets a signal meanwhile, wait sends it to the ranks.
func (s *ranks) wait(ctx context.Context, heard chan os.Signal, limit time.Duration) error {
	var late, waits <-chan time.Time
	if limit > 0 {
		late = time.After(limit)
	}
	var aborted <-chan pmiAbort
	if s.pmi != nil {
		aborted = s.pmi.aborted
	}
	code, interrupted := 0, ctx.Done()
	for left := s.w.ranks; left > 0; {
		select {
		case e := <-s.ends:
			left--
			over := s.over
			if n := s.ended(e); !over {
				code = max(code, n)
			}
			if n, err := strconv.Atoi(s.w.wait); err == nil && n > 0 && waits == nil {
				waits = time.After(time.Duration(n) * time.Second)
			}
		case sig := <-heard:
			if sig == syscall.SIGTERM || sig == syscall.SIGINT || sig == syscall.SIGQUIT {
				s.end()
				continue
			}
			s.signal(sig.(syscall.Signal))
		case <-interrupted:
			interrupted = nil
			s.end()
		case <-late:
			s.say("error: *** STEP %s.%d CANCELLED DUE TO TIME LIMIT ***", s.c.Getenv("SLURM_JOB_ID"), s.w.number)
			s.end()
		case <-waits:
			s.say("error: the first task ended %s s ago; ending the others", s.w.wait)
			s.end()
		case a := <-aborted:
			if a.why != "" {
				s.say("error: %s: task %d %s: ending all tasks of the step", s.w.placeOf(a.rank).node, a.rank, a.why)
			}
			code, aborted, s.over = max(code, a.code), nil, true
			s.end()
		}
	}
	for _, o := range s.outputs {
		o.close()
	}
	s.copies.Wait()
	if code != 0 {
		return status(code)
	}
	return nil
}

func (s *ranks) say(format string, args ...any) {
	fmt.Fprintf(s.c.Err, "srun: "+format+"\n", args...)
}

// ended records the end of a rank. In three cases, it also ends the other ranks of the step. First, the rank was lost.
// Second, the rank ended without finishing PMI (the protocol of MPI's ranks); the others would otherwise wait for it
// for ever. Third, the rank failed, and the step has --kill-on-bad-exit.
func (s *ranks) ended(e rankEnd) (code int) {
	node := s.w.placeOf(e.rank).node
	switch {
	case e.lost != "":
		s.say("error: %s: task %d: %s", node, e.rank, e.lost)
	case e.signal != 0:
		s.say("error: %s: task %d: %v", node, e.rank, e.signal)
	case e.code != 0:
		s.say("error: %s: task %d: Exited with exit code %d", node, e.rank, e.code)
	}
	code = e.code
	alone := s.pmi != nil && s.pmi.left(e.rank)
	if (code != 0 && s.w.kill || alone || e.lost != "") && !s.ending {
		if alone {
			s.say("error: %s: task %d ended before MPI_Finalize: ending the others", node, e.rank)
			code, s.over = max(code, 1), true
		}
		s.end()
	}
	return code
}

// end asks all ranks to end, and kills them after graceOfStep.
func (s *ranks) end() {
	if s.ending {
		return
	}
	s.ending = true
	s.signal(syscall.SIGCONT)
	s.signal(syscall.SIGTERM)
	for _, r := range s.remote {
		r.giveUp() // giveUp has no effect on ranks that have begun
	}
	s.kills = time.AfterFunc(graceOfStep, func() { s.signal(syscall.SIGKILL) })
}

func (s *ranks) signal(sig syscall.Signal) {
	for _, cmd := range s.local {
		_ = syscall.Kill(-cmd.Process.Pid, sig)
	}
	for _, r := range s.remote {
		r.send(frame{Signal: int(sig)})
	}
}

func (s *ranks) killAll() {
	if s.kills != nil {
		s.kills.Stop()
	}
	s.signal(syscall.SIGKILL)
	for _, r := range s.remote {
		r.close()
	}
}
