package jobfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// allocation has the requests of a script that starts several ranks (processes) with srun or mpirun. Each task gets the
// resources for all ranks of its node.
type allocation struct {
	nodes, ranks, perNode int // 0 means that the script does not set it
	most                  int // largest number of nodes; 0 means the same as nodes
	perGPU                int // ranks for each GPU; 0 means that the script does not set it
	listed                int // number of nodes in the job's list of nodes; 0 means there is no list
	labelled              int // number of nodes that must have the label of --constraint; 0 means all
	gpusPerRank           int
	inAll                 gpus // GPUs of all nodes together
	cpusPerRank           int  // set after all options are read; 0 means that the script does not set it
	distribution          string
}

func (o *Options) allocationOptions() {
	o.hidden("ntasks", func(job *Job, text string) (err error) {
		job.allocation.ranks, err = count1(text)
		return err
	})
	o.hidden("ntasks-per-node", func(job *Job, text string) (err error) {
		job.allocation.perNode, err = count1(text)
		return err
	})
	o.hidden("nodes", func(job *Job, text string) (err error) {
		least, most, ranges := strings.Cut(text, "-")
		job.allocation.most = 0
		if job.allocation.nodes, err = count1(least); err == nil && ranges {
			job.allocation.most, err = count1(most)
		}
		return err
	})
	o.hidden("distribution", func(job *Job, text string) error {
		job.allocation.distribution = text
		_, err := ParseDistribution(text)
		return err
	})
	o.hidden("slurm-nodelist", func(job *Job, text string) (err error) {
		job.Spec.Stages[0].Nodes, err = parseNodes(text)
		job.allocation.listed = len(job.Spec.Stages[0].Nodes)
		return err
	})
	o.hidden("ntasks-per-gpu", func(job *Job, text string) (err error) {
		job.allocation.perGPU, err = count1(text)
		return err
	})
	o.hidden("gpus-in-all", func(job *Job, text string) (err error) {
		job.allocation.inAll.number, job.allocation.inAll.kind, err = parseGPUs(text)
		return err
	})
	o.hidden("gpus-per-task", func(job *Job, text string) error {
		n, kind, err := parseGPUs(text)
		job.allocation.gpusPerRank, job.Spec.Stages[0].GPUType = n, cmp.Or(kind, job.Spec.Stages[0].GPUType)
		return err
	})
}

// count returns the default number of ranks of a step, and the number of nodes that they use.
func (a *allocation) count() (ranks, nodes int) {
	ranks, nodes = a.ranks, max(a.nodes, 1)
	switch {
	case ranks == 0:
		ranks = nodes * max(a.perNode, 1)
	case a.perNode > 0:
		nodes = max(nodes, (ranks-1)/a.perNode+1)
	}
	return ranks, nodes
}

// Ranks returns the default number of ranks for a step of the job's script.
func (job *Job) Ranks() int {
	ranks, _ := job.allocation.count()
	return ranks
}

// finishAllocation completes the description of an allocation. The allocation has one task for each node, and each task
// gets the resources that the ranks on its node need together.
func (job *Job) finishAllocation() error {
	s, a := &job.Spec.Stages[0], &job.allocation
	if err := cmp.Or(job.listedNodes(), job.ranksOfGPUs()); err != nil {
		return err
	}
	ranks, nodes := a.count()
	a.cpusPerRank = s.CPUs
	nodes = min(nodes, ranks) // sbatch reduces the number in the same way, and warns
	here := (ranks-1)/nodes + 1
	if a.labelled != 0 && a.labelled != nodes {
		return messages.Errorf(messages.Invalid, "--constraint: asks for a label on only some of the %d nodes, which is not possible here: write the label without *, or submit a heterogeneous job", nodes)
	}
	if err := job.divideGPUs(nodes); err != nil {
		return err
	}
	switch {
	case here > jobmsg.MaxCPUs/max(s.CPUs, 1):
		return messages.Errorf(messages.TooLarge, "--ntasks: %d tasks of %d processors are more than any node has; use --nodes", here, max(s.CPUs, 1))
	case a.gpusPerRank > 0 && s.GPUs > 0 && s.GPUs != a.gpusPerRank*here:
		return messages.Errorf(messages.Invalid, "--gpus-per-task=%d: %d tasks on a node need %d GPUs, but another option asks for %d: leave one of the two out", a.gpusPerRank, here, a.gpusPerRank*here, s.GPUs)
	case a.gpusPerRank > 0:
		s.GPUs = a.gpusPerRank * here
	}
	if ranks > 1 && job.relative.cpusPerGPU == 0 {
		s.CPUs = max(s.CPUs, 1) * here
	}
	if nodes > 1 {
		if job.alike {
			return messages.Errorf(messages.Invalid, "--constraint: brackets ask that all %d nodes have the same label of the list, which is not possible here: name one label, or write parentheses if the nodes may differ", nodes)
		}
		if s.Array != nil {
			if err := job.splitArray(); err != nil {
				return err
			}
		}
		if s.Tasks > 1 {
			return messages.Errorf(messages.Invalid, "--nodes=%d: a job on several nodes has one task on each of them: leave --tasks out", nodes)
		}
		s.Tasks, s.Gang, s.Allocation, s.OnFailure = nodes, true, true, ""
	}
	return nil
}

// If the option --nodelist names several nodes, listedNodes makes the job use all of them, as sbatch does. It refuses a
// list that contradicts the number of nodes.
func (job *Job) listedNodes() error {
	a := &job.allocation
	switch ranks, nodes := a.count(); {
	case a.listed < 2:
	case a.nodes == 0 && (a.ranks == 0 || ranks >= a.listed) && nodes <= a.listed:
		a.nodes = a.listed
	case nodes != a.listed || ranks < nodes:
		return messages.Errorf(messages.Invalid, "--nodelist: the list has %d nodes, but the job runs on %d: list as many nodes as the job runs on", a.listed, min(ranks, nodes))
	}
	return nil
}

// ranksOfGPUs computes the number of ranks from the number of GPUs, or the other way round.
func (job *Job) ranksOfGPUs() error {
	a := &job.allocation
	all := max(a.inAll.number, job.Spec.Stages[0].GPUs*max(a.nodes, 1))
	switch {
	case a.perGPU == 0:
	case all == 0 && a.ranks > 0 && a.ranks%a.perGPU == 0:
		a.inAll.number = a.ranks / a.perGPU
	case all == 0:
		return messages.Errorf(messages.Invalid, "--ntasks-per-gpu=%d: also give the number of GPUs with --gpus", a.perGPU)
	case a.ranks == 0 && all <= jobmsg.MaxCPUs/a.perGPU:
		a.ranks = all * a.perGPU
	case a.ranks != all*a.perGPU:
		return messages.Errorf(messages.Invalid, "--ntasks-per-gpu=%d: %d GPUs have %d tasks, but --ntasks asks for %d: leave --ntasks out", a.perGPU, all, all*a.perGPU, a.ranks)
	}
	return nil
}

func (job *Job) divideGPUs(nodes int) error {
	s, all := &job.Spec.Stages[0], job.allocation.inAll
	switch {
	case all.number == 0:
		return nil
	case s.GPUs > 0 && s.GPUs*nodes != all.number, s.GPUType != "" && all.kind != "" && s.GPUType != all.kind:
		return messages.Errorf(messages.Invalid, "--gpus=%d: another option asks for another number or type of GPUs (%d on each of %d nodes): leave one of the two options out", all.number, s.GPUs, nodes)
	case all.number%nodes != 0:
		return messages.Errorf(messages.Invalid, "--gpus=%d: cannot be divided evenly among %d nodes: use --gpus-per-node", all.number, nodes)
	}
	s.GPUs, s.GPUType = all.number/nodes, cmp.Or(s.GPUType, all.kind)
	return nil
}

func (a *allocation) perNodeCounts() []int {
	ranks, nodes := a.count()
	nodes = min(nodes, ranks)
	counts := make([]int, nodes)
	for i := range counts {
		if counts[i] = ranks / nodes; i < ranks%nodes {
			counts[i]++
		}
	}
	return counts
}

func (job *Job) allocationVariables() [][2]string {
	nodes := len(job.allocation.perNodeCounts())
	list := `"$CANDOR_NODE"`
	if len(job.components) > 0 {
		list = nodesFrom(0, nodes)
	} else if nodes > 1 {
		list = `"${CANDOR_NODELIST:-$CANDOR_NODE}"`
	}
	values := append(job.sizeVariables(list, "${CANDOR_CPUS:-1}"), [][2]string{{"SLURM_NODEID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_GTIDS", "0"}}...)
	if text := job.allocation.distribution; text != "" { // srun reads this variable
		values = append(values, [2]string{"SLURM_DISTRIBUTION", Quote(text)})
	}
	return values
}

// sizeVariables returns variables with the numbers of nodes, ranks and processors. The argument `list` has the nodes,
// and `cpus` has the processors of each node, as text for a shell.
func (job *Job) sizeVariables(list, cpus string) [][2]string {
	counts := job.allocation.perNodeCounts()
	ranks, nodes := strconv.Itoa(job.Ranks()), strconv.Itoa(len(counts))
	per, all := ranks, `"`+cpus+`"`
	if len(counts) > 1 {
		per, all = Quote(PerNode(counts)), fmt.Sprintf(`"%s(x%d)"`, cpus, len(counts))
	}
	values := [][2]string{
		{"SLURM_JOB_NODELIST", list}, {"SLURM_NODELIST", list}, {"SLURM_JOB_NUM_NODES", nodes}, {"SLURM_NNODES", nodes},
		{"SLURM_NTASKS", ranks}, {"SLURM_NPROCS", ranks}, {"SLURM_TASKS_PER_NODE", per},
		{"SLURM_CPUS_ON_NODE", `"` + cpus + `"`}, {"SLURM_JOB_CPUS_PER_NODE", all},
	}
	if n := job.allocation.perNode; n > 0 {
		values = append(values, [2]string{"SLURM_NTASKS_PER_NODE", strconv.Itoa(n)})
	}
	return values
}

// RanksOf returns the number of ranks that [Job.AddPrelude] wrote into a script, or 0 if it finds none.
func RanksOf(script string) (ranks int) {
	if _, rest, is := strings.Cut(script, " SLURM_NTASKS="); is {
		number, _, _ := strings.Cut(rest, " ")
		ranks, _ = strconv.Atoi(number)
	}
	return ranks
}

// freeThreads returns a shell command that unsets variables such as OMP_NUM_THREADS, if the kernel limits the script to
// its processors. Then a program may use all processors of the script. The site sets these variables to the number of a
// task's processors. The result is "" in three cases: the script has one rank, the script is of another system, or the
// job sets the variables itself.
func (job *Job) freeThreads() string {
	if job.Ranks() == 1 || job.system != "" {
		return ""
	}
	names := slices.DeleteFunc(slices.Clone(ThreadVariables), func(name string) bool {
		_, set := findVariable(job.Spec.Env, name)
		return set
	})
	if len(names) == 0 {
		return ""
	}
	return `[ "$(OMP_NUM_THREADS= nproc 2>/dev/null)" != "$CANDOR_CPUS" ] || unset ` + strings.Join(names, " ")
}

// ThreadVariables tell programs how many threads to start. The site sets them to the number of processors of a task.
var ThreadVariables = []string{"OMP_NUM_THREADS", "GOMAXPROCS"}

var rankFlags = map[string]string{"ntasks": "ntasks", "ntasks-per-node": "ntasks-per-node", "tasks-per-node": "ntasks-per-node", "nodes": "nodes",
	"ntasks-per-gpu": "ntasks-per-gpu"}
