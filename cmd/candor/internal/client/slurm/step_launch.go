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

// graceOfStep is how long ranks that were asked to end may take.
const graceOfStep = 2 * time.Second

// pmiFD is the number of the file by which a rank asks for the others.
const pmiFD = 13

// ranks are the processes of a step.
type ranks struct {
	c    *call
	w    *step
	pmi  *pmi // nil: they do not learn of one another
	cmds []*exec.Cmd
	ends chan int // the rank that has ended

	ending bool // all were asked to end
	over   bool // by the ranks themselves: how the others end then says nothing
	inputs []io.WriteCloser
	copies sync.WaitGroup
	kills  *time.Timer
}

// launch starts the ranks and waits for them. The exit code is the highest of all.
func (c *call) launch(ctx context.Context, w *step, room *stepRoom, path string, words []string, limit time.Duration) error {
	env := c.stepEnvironment(w)
	if w.alone() {
		env = append(env, "SLURM_PROCID=0", "SLURM_LOCALID=0", "SLURM_GTIDS=0")
		if err := room.stay(); err != nil {
			return err
		}
		return c.become(w, path, words, append(env, deviceVariables(w.gpuIDs, 0, 1, false)...))
	}
	runtime.LockOSThread() // the kernel ends the ranks with the thread that started them
	defer runtime.UnlockOSThread()
	heard := make(chan os.Signal, 16)
	signal.Notify(heard, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT)
	defer signal.Stop(heard)
	s := &ranks{c: c, w: w, ends: make(chan int, w.ranks)}
	defer s.killAll()
	if w.ranks > 1 && w.mpi != "none" {
		s.pmi = newPMI(w.ranks, c.Getenv("CANDOR_JOB")+"."+strconv.Itoa(w.number))
	}
	for rank := range w.ranks {
		if err := s.start(rank, path, words, env); err != nil {
			return err
		}
	}
	s.feed()
	return s.wait(ctx, heard, limit)
}

// start starts one rank.
func (s *ranks) start(rank int, path string, words, env []string) error {
	cmd := exec.Command(path)
	cmd.Args, cmd.Dir = words, s.w.chdir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	n := strconv.Itoa(rank)
	cmd.Env = append(env[:len(env):len(env)], "SLURM_PROCID="+n, "SLURM_LOCALID="+n, "SLURM_GTIDS="+n)
	cmd.Env = append(cmd.Env, deviceVariables(s.w.gpuIDs, rank, s.w.ranks, s.w.gpusPerRank != "")...)
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
		cmd.ExtraFiles = make([]*os.File, pmiFD-2)
		cmd.ExtraFiles[pmiFD-3] = theirs
		cmd.Env = append(cmd.Env, "PMI_FD="+strconv.Itoa(pmiFD), "PMI_RANK="+n, "PMI_SIZE="+strconv.Itoa(s.w.ranks), "PMI_JOBID="+s.pmi.name)
	}
	out, err := s.output(rank, 1, &closes)
	if err != nil {
		return err
	}
	cmd.Stdout = out
	if cmd.Stderr, err = s.output(rank, 2, &closes); err != nil {
		return err
	}
	if s.w.in == "" || s.w.in == "all" || s.w.in == strconv.Itoa(rank) {
		theirs, ours, err := os.Pipe()
		if err != nil {
			return err
		}
		closes = append(closes, theirs)
		cmd.Stdin, s.inputs = theirs, append(s.inputs, ours)
	} else if _, err := strconv.Atoi(s.w.in); err != nil && s.w.in != "none" {
		file, err := os.Open(s.c.fill(s.w.in, s.w, rank))
		if err != nil {
			return err
		}
		closes = append(closes, file)
		cmd.Stdin = file
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(s.c.Err, "slurmstepd: error: execve(): %s: %v\n", path, err)
		return status(2)
	}
	s.cmds = append(s.cmds, cmd)
	go func() {
		_ = cmd.Wait()
		s.ends <- rank
	}()
	return nil
}

// output is where a rank's output goes: a file, where srun's own goes, or with labels to it.
func (s *ranks) output(rank, number int, closes *[]io.Closer) (*os.File, error) {
	pattern := s.w.out
	if number == 2 {
		pattern = cmp.Or(s.w.errs, s.w.out)
	}
	mode := s.w.mode
	if number == 2 && s.w.errs == "" {
		s.w.mode = "a" // what standard output has opened stays
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

// writing keeps the lines of ranks whole.
var writing sync.Mutex

// copyLines writes a label before each line.
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

// feed gives all ranks what srun reads.
func (s *ranks) feed() {
	if len(s.inputs) == 0 {
		return
	}
	go func() {
		piece := make([]byte, 32<<10)
		for {
			n, err := s.c.In.Read(piece)
			for _, to := range s.inputs {
				_, _ = to.Write(piece[:n])
			}
			if err != nil {
				for _, to := range s.inputs {
					_ = to.Close()
				}
				return
			}
		}
	}()
}

// wait waits for the end of all ranks, and passes signals on.
func (s *ranks) wait(ctx context.Context, heard chan os.Signal, limit time.Duration) error {
	var late, waits <-chan time.Time
	if limit > 0 {
		late = time.After(limit)
	}
	aborted := make(<-chan int)
	if s.pmi != nil {
		aborted = s.pmi.aborted
	}
	code := 0
	for left := s.w.ranks; left > 0; {
		select {
		case rank := <-s.ends:
			left--
			over := s.over
			if n := s.ended(rank); !over {
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
		case <-ctx.Done():
			ctx = context.Background()
			s.end()
		case <-late:
			s.say("error: *** STEP %s.%d CANCELLED DUE TO TIME LIMIT ***", s.c.Getenv("SLURM_JOB_ID"), s.w.number)
			s.end()
		case <-waits:
			s.say("error: the first task ended %s s ago; ending the others", s.w.wait)
			s.end()
		case n := <-aborted:
			code, aborted, s.over = max(code, n), nil, true
			s.end()
		}
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

// ended notes the end of a rank, and ends the others where they would wait for it.
func (s *ranks) ended(rank int) (code int) {
	node := s.c.Getenv("CANDOR_NODE")
	ws, _ := s.cmds[rank].ProcessState.Sys().(syscall.WaitStatus)
	code = ws.ExitStatus()
	if ws.Signaled() {
		code = 128 + int(ws.Signal())
		s.say("error: %s: task %d: %v", node, rank, ws.Signal())
	} else if code != 0 {
		s.say("error: %s: task %d: Exited with exit code %d", node, rank, code)
	}
	alone := s.pmi != nil && s.pmi.left(rank)
	if (code != 0 && s.w.kill || alone) && !s.ending {
		if alone {
			s.say("error: %s: task %d ended before MPI_Finalize: ending the others", node, rank)
			code, s.over = max(code, 1), true
		}
		s.end()
	}
	return code
}

// end asks all ranks to end, and kills them after a while.
func (s *ranks) end() {
	if s.ending {
		return
	}
	s.ending = true
	s.signal(syscall.SIGCONT)
	s.signal(syscall.SIGTERM)
	s.kills = time.AfterFunc(graceOfStep, func() { s.signal(syscall.SIGKILL) })
}

// signal signals the ranks and what they have started.
func (s *ranks) signal(sig syscall.Signal) {
	for _, cmd := range s.cmds {
		_ = syscall.Kill(-cmd.Process.Pid, sig)
	}
}

// killAll ends what the ranks may have left.
func (s *ranks) killAll() {
	if s.kills != nil {
		s.kills.Stop()
	}
	s.signal(syscall.SIGKILL)
}
