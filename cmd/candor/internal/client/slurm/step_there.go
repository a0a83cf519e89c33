package slurm

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/candor-grid/candor/messages/agent"
)

// ownVariables are the variables that have a different value on each node or in each attempt. A rank gets the values of
// its own node.
var ownVariables = []string{"CANDOR_NODE", "CANDOR_STAGE", "CANDOR_TASK", "CANDOR_CPUS", "CANDOR_MEMORY", "CANDOR_ATTEMPT", "CANDOR_LEASE", agent.StepsVariable, "CANDOR_GPUS", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HOSTNAME"}

// The function `away` starts ranks on this node for an srun on another node. It reports to srun how they end.
func away() int {
	in := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 64<<10))
	var plan awayPlan
	if err := in.Decode(&plan); err != nil {
		fmt.Fprintln(os.Stderr, "srun: error:", err)
		return 1
	}
	a := &awayRanks{plan: plan, w: plan.step(), to: json.NewEncoder(os.Stdout), pmi: map[int]*os.File{}, pids: map[int]int{}}
	return a.run(in)
}

func (plan *awayPlan) step() *step {
	w := &step{chdir: plan.Dir, ranks: plan.Total}
	if plan.Each {
		w.gpusPerRank = "1"
	}
	w.places = []place{{node: plan.Node, at: plan.At, count: len(plan.Ranks), ranks: plan.Ranks, gpus: plan.GPUs}}
	return w
}

// awayRanks are the ranks on this node of a step whose srun runs on another node.
type awayRanks struct {
	plan awayPlan
	w    *step

	mu     sync.Mutex
	to     *json.Encoder
	pmi    map[int]*os.File // connections of the PMI protocol, by rank
	inputs []*awayInput
	room   int         // number of bytes of input that all ranks have taken
	pids   map[int]int // by rank
}

// awayInput is the input that a rank has not yet read. A queue of its own lets the other ranks and the signals go on
// while the rank reads nothing.
type awayInput struct {
	*frameQueue
	to    *os.File
	taken int // number of bytes
}

// feed writes the input to a rank. For bytes that all ranks here have taken, it asks srun for more.
func (a *awayRanks) feed(in *awayInput) {
	pieces(in, func(b []byte) {
		_, _ = in.to.Write(b)
		a.mu.Lock()
		defer a.mu.Unlock()
		in.taken += len(b)
		least := in.taken
		for _, each := range a.inputs {
			least = min(least, each.taken)
		}
		if least > a.room {
			_ = a.to.Encode(frame{Room: least - a.room})
			a.room = least
		}
	})
	_ = in.to.Close()
}

func (a *awayRanks) say(f frame) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.to.Encode(f)
}

func (a *awayRanks) run(in *json.Decoder) int {
	env := slices.DeleteFunc(a.plan.Env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(ownVariables, name)
	})
	for _, name := range ownVariables {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	p := &a.w.places[0]
	var all sync.WaitGroup
	for _, rank := range p.ranks {
		if err := a.start(p, rank, env, &all); err != nil {
			code, line := execError(a.plan.Path, err)
			a.say(frame{Rank: rank, Err: []byte(line)})
			a.say(frame{Rank: rank, Over: true, Code: code})
		}
	}
	if len(a.inputs) > 0 {
		a.say(frame{Room: mostQueued})
	}
	for _, each := range a.inputs {
		go a.feed(each)
	}
	go a.obey(in)
	all.Wait()
	return 0
}

func (a *awayRanks) obey(in *json.Decoder) {
	for {
		var f frame
		if err := in.Decode(&f); err != nil {
			return
		}
		switch {
		case f.Signal > 0:
			for _, pid := range a.pids {
				_ = syscall.Kill(-pid, syscall.Signal(f.Signal))
			}
		case f.InOver:
			for _, to := range a.inputs {
				to.end()
			}
		case len(f.In) > 0:
			for _, to := range a.inputs {
				to.short(16 * mostQueued) // an srun of an earlier version sends more than there is room for
				to.add(f.In)
			}
		case len(f.PMI) > 0 && a.pmi[f.Rank] != nil:
			a.tell(f.Rank, f.PMI)
		}
	}
}

// tell passes bytes of PMI on to a rank. If the rank does not read, it gets no more bytes, because they would hold up the
// frames for the other ranks here. Its srun then ends the step. An srun of release v0.9.0 does not, so the rank is killed
// later.
func (a *awayRanks) tell(rank int, text []byte) {
	if writeSoon(a.pmi[rank], text) == nil {
		return
	}
	delete(a.pmi, rank)
	a.say(frame{Rank: rank, Deaf: true})
	pid := a.pids[rank]
	time.AfterFunc(2*graceOfStep, func() { _ = syscall.Kill(-pid, syscall.SIGKILL) })
}

func (a *awayRanks) start(p *place, rank int, env []string, all *sync.WaitGroup) error {
	cmd := a.w.command(p, rank, a.plan.Path, a.plan.Argv, env, os.Getenv)
	cmd.SysProcAttr.Pdeathsig = 0 // if srun is lost, the agent ends the session with its ranks
	var closes, ours []*os.File
	defer func() {
		for _, f := range closes {
			_ = f.Close()
		}
	}()
	if a.plan.PMI != "" {
		fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return os.NewSyscallError("socketpair", err)
		}
		_ = syscall.SetNonblock(fds[0], true)
		mine, theirs := os.NewFile(uintptr(fds[0]), "pmi"), os.NewFile(uintptr(fds[1]), "pmi")
		closes = append(closes, theirs)
		a.pmi[rank] = mine
		usePMI(cmd, theirs, rank, a.w.ranks, a.plan.PMI)
		go pieces(mine, func(b []byte) { a.say(frame{Rank: rank, PMI: b}) })
	}
	for i := range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		closes, ours = append(closes, w), append(ours, r)
		if i == 0 {
			cmd.Stdout = w
		} else {
			cmd.Stderr = w
		}
	}
	if a.plan.Hears[slices.Index(p.ranks, rank)] {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		closes = append(closes, r)
		cmd.Stdin, a.inputs = r, append(a.inputs, &awayInput{frameQueue: newFrameQueue(), to: w})
	}
	if err := startRank(cmd); err != nil {
		return err
	}
	a.pids[rank] = cmd.Process.Pid
	var reads sync.WaitGroup
	reads.Go(func() { pieces(ours[0], func(b []byte) { a.say(frame{Rank: rank, Out: b}) }) })
	reads.Go(func() { pieces(ours[1], func(b []byte) { a.say(frame{Rank: rank, Err: b}) }) })
	all.Go(func() {
		_ = cmd.Wait()
		reads.Wait()
		e := endOf(rank, cmd)
		a.say(frame{Rank: rank, Over: true, Code: e.code, Fatal: int(e.signal)})
	})
	return nil
}

// pieces calls a function for every piece of data until the input ends.
func pieces(from io.Reader, each func([]byte)) {
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			each(piece[:n])
		}
		if err != nil {
			return
		}
	}
}
