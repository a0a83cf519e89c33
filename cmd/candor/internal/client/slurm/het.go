package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
)

// component is a component of a heterogeneous job, or a whole job that has no components.
type component struct {
	group        int // number of the component
	first, nodes int // the component's nodes, as a range in the list of the job's nodes
	ranks        int // default number of ranks of a step
	cpus         int // default processors of a rank; 0 means that the job sets no number
	processors   int // processors of each node; 0 means slots have no shape
	gpus         int // GPUs of each node
}

// components returns the components of the job. A job that is not heterogeneous has one.
func (c *call) components() ([]component, error) {
	own := component{nodes: len(c.nodesOfJob()), ranks: max(c.number("SLURM_NTASKS"), 1), cpus: c.number("SRUN_CPUS_PER_TASK"), processors: c.number("CANDOR_CPUS"),
		gpus: len(deviceList(c.Getenv("CUDA_VISIBLE_DEVICES"), c.Getenv("ROCR_VISIBLE_DEVICES")))}
	size := c.number("SLURM_HET_SIZE")
	if size < 2 {
		return []component{own}, nil
	}
	var all []component
	first := 0
	for i := range size {
		of := func(name string) int { return c.number(name + jobfile.HetGroup(i)) }
		x := component{group: i, first: first, nodes: of("SLURM_JOB_NUM_NODES"), ranks: max(of("SLURM_NTASKS"), 1), cpus: of("SLURM_CPUS_PER_TASK"), processors: of("SLURM_CPUS_ON_NODE"), gpus: of("SLURM_GPUS_ON_NODE")}
		if own.processors == 0 {
			x.processors = 0
		}
		first += x.nodes
		all = append(all, x)
	}
	if first != own.nodes {
		return nil, fmt.Errorf("Unable to create step for job %s: variables SLURM_JOB_NUM_NODES%s and the like name %d nodes, and the job has %d", c.Getenv("CANDOR_JOB"), jobfile.HetGroup(0), first, own.nodes)
	}
	return all, nil
}

// groups returns the components that an option --het-group names, such as 0,2-3. If the option is "", it returns the
// component with the index `usual`.
func groups(text string, usual int, all []component) (chosen []component, err error) {
	if text == "" {
		text = strconv.Itoa(usual)
	}
	for part := range strings.SplitSeq(text, ",") {
		low, high, ranged := strings.Cut(part, "-")
		from, err := strconv.Atoi(low)
		to := from
		if ranged && err == nil {
			to, err = strconv.Atoi(high)
		}
		switch {
		case err != nil || from < 0 || to < from:
			return nil, fmt.Errorf("Invalid --het-group %q: write numbers of components, as in 0,2-3", text)
		case to >= len(all):
			return nil, fmt.Errorf("Invalid --het-group %q: the job has %d components, from 0 on", text, len(all))
		}
		for i := from; i <= to; i++ {
			if !slices.ContainsFunc(chosen, func(x component) bool { return x.group == i }) {
				chosen = append(chosen, all[i])
			}
		}
	}
	slices.SortFunc(chosen, func(a, b component) int { return a.group - b.group })
	return chosen, nil
}

// Colons divide a command line of srun into segments. Each segment has options of a step and its command.
type segment struct {
	*call
	w     *step
	words []string
}

// segments reads a command line of srun, which may have several segments. If a segment has no command, it gets the
// command of the next segment. The result `done` is true if an option only asked for information about srun.
func segments(c *call, args []string) (all []segment, done bool, err error) {
	for i := 0; len(args) > 0 || i == 0; i++ {
		s, rest := segment{call: c}, []string(nil)
		if at := slices.Index(args, ":"); at > 0 && at < len(args)-1 {
			args, rest = args[:at], args[at+1:]
		}
		if i > 0 {
			again := *c
			again.flags = pflag.NewFlagSet(c.name, pflag.ContinueOnError)
			s.call = &again
		}
		s.flags.SetInterspersed(false)
		s.w = stepFlags(s.flags)
		s.ignore(append(slices.Clone(srunOutside), srunNoted...), append([]string{"pty", "x11", "bcast"}, srunAlone...))
		if s.words, done, err = s.parse(args); done || err != nil {
			return nil, done, err
		}
		all, args = append(all, s), rest
	}
	for i := len(all) - 2; i >= 0; i-- {
		if len(all[i].words) == 0 {
			all[i].words = all[i+1].words
		}
	}
	return all, false, nil
}

// A step may run several commands, each on one component of a heterogeneous job. run is one of these commands.
type run struct {
	component
	*call
	w           *step
	path        string
	argv        []string
	env         []string // variables of all ranks of the run
	may         []int    // positions of the nodes that the run may use, in the list of the job's nodes
	share       int      // number of nodes that the run takes
	gpusOfRanks int      // GPUs that the run takes on each node; −1 means it reserves none
}

// A run is one command of a step with several commands. merge returns one step with the ranks of all runs. The ranks of
// a run come after the ranks of the run before it.
func merge(runs []*run) *step {
	if len(runs) == 1 {
		return runs[0].w
	}
	all := *runs[0].w
	all.ranks, all.places, all.placeAt = 0, nil, nil
	for i, r := range runs {
		for _, at := range r.w.placeAt {
			all.placeAt = append(all.placeAt, len(all.places)+at)
		}
		for _, p := range r.w.places {
			p.of, p.at, p.ranks = i, len(all.places), slices.Clone(p.ranks)
			for k := range p.ranks {
				p.ranks[k] += all.ranks
			}
			all.places = append(all.places, p)
		}
		all.ranks += r.w.ranks
	}
	return &all
}

// ownPlace returns the index of this task's node in the list of the job's nodes.
func (c *call) ownPlace(all []component) int {
	if len(all) == 1 {
		return slices.Index(c.nodesOfJob(), c.Getenv("CANDOR_NODE"))
	}
	own, err := c.ownAttempt()
	if err != nil || int(own.Task.Stage) >= len(all) {
		return -1
	}
	return all[own.Task.Stage].first + int(own.Task.Index)
}

// errSeveral refuses ranks of Open MPI on several components.
var errSeveral = errors.New("ranks of Open MPI are started by mpirun, which uses only the first component of a heterogeneous job: use --het-group=0, or a program of MPICH or another MPI that speaks PMI")
