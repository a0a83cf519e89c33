package jobfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// A heterogeneous job of Slurm has several components, and each component has its own options. A line "#SBATCH hetjob",
// or a colon on the command line, begins the next component. Each component becomes a stage, and all stages start
// together. The script runs on the first node of the first component.

// addComponent returns the options of the next component of a heterogeneous job.
func (o *Options) addComponent() *Options {
	next := NewOptions(o.lookup)
	o.components = append(o.components, next)
	return next
}

func isHetjob(words []string) bool {
	return len(words) == 1 && slices.Contains(hetWords, words[0])
}

// Each of these words begins the next component of a heterogeneous job.
var hetWords = []string{"hetjob", "packjob"}

// ofComponent lists the options that can differ between the components of a heterogeneous job.
var ofComponent = []string{"ntasks", "nodes", "ntasks-per-node", "ntasks-per-gpu", "distribution", "slurm-nodelist", "nodelist", "gpus-in-all", "gpus-per-task", "cpus", "memory", "gpus", "disk",
	"exclusive", "constraint", "exclude", "licenses", "mem-per-cpu", "mem-per-gpu", "cpus-per-gpu", "mincpus", "class", "time", "slurm-partition", "slurm-gres", "slurm-hardware"}

// ofAll lists options of the whole job. Components may repeat them, but the first component's value counts.
var ofAll = []string{"name", "comment", "notify", "wait", "attempts", "signal"}

func (o *Options) overlayComponents(top *Options) error {
	for i, c := range top.components {
		if i == len(o.components) {
			o.components = append(o.components, NewOptions(top.lookup))
		}
		if err := o.components[i].Overlay(c); err != nil {
			return err
		}
	}
	return nil
}

// The job in the argument is the first component of a heterogeneous job. applyComponents makes the other components.
func (o *Options) applyComponents(job *Job) error {
	job.components = nil
	if len(o.components) > 0 && len(job.Spec.Stages) == 1 && job.Spec.Stages[0].Array != nil {
		return messages.Errorf(messages.Invalid, "--array: Slurm has no arrays of heterogeneous jobs: leave the array out, or submit a job for each index")
	}
	for i, of := range o.components {
		for _, s := range of.said {
			if !slices.Contains(ofComponent, s.flag) && !slices.Contains(ofAll, s.flag) && !slices.Contains(o.said, s) {
				return messages.Errorf(messages.Invalid, "component %d: --%s is an option of the whole job: give it before the first hetjob or colon", i+1, strings.TrimPrefix(s.flag, "slurm-"))
			}
		}
		c := &Job{Options: of, Spec: jobmsg.JobSpec{Stages: []jobmsg.Stage{{Name: fmt.Sprint("het", i+1), Command: []string{"true"}}}}}
		if err := of.Apply(c); err != nil {
			return messages.Errorf(messages.KindOf(err), "component %d: %s", i+1, messages.Detail(err))
		}
		c.Spec.Market = ""
		job.components = append(job.components, c)
	}
	return nil
}

// Components returns the components of a heterogeneous job after the first one, which is the job itself. Each has one
// stage.
func (j *Job) Components() []*Job { return j.components }

// JoinMarkets chooses one market in which all components can run. It is needed because each component can name
// partitions, and these can stand for different markets. The market of the first component is in Spec.Market.
func (j *Job) JoinMarkets(reply *market.MarketsReply) error {
	var table jobmsg.Labels
	if reply.Slurm != nil {
		table = reply.Slurm.Partitions
	}
	for i, c := range j.components {
		markets, err := c.toMarkets(table, reply)
		if err != nil {
			return err
		}
		in := func(name messages.Name) bool {
			return slices.ContainsFunc(markets, func(m Market) bool { return m.Market == name || m.Market == "" })
		}
		switch {
		case len(markets) == 0 || in(j.Spec.Market):
		case j.Spec.Market == "":
			j.Spec.Market = markets[0].Market
		default:
			return messages.Errorf(messages.Invalid, "component %d: --partition %s is market %s here, and the first component is in market %s: all components of a job must be in one market: leave --partition out everywhere, or name for all components a partition whose slots are large enough for each of them",
				i+1, c.Names.Partition, markets[0].Market, j.Spec.Market)
		}
	}
	return nil
}

// Assemble makes one job from the components of a heterogeneous job. Call it after all other changes to the job.
func (j *Job) Assemble() {
	if len(j.components) == 0 {
		return
	}
	j.Spec.Together = true
	first := j.Spec.Stages[0]
	stages := []jobmsg.Stage{first}
	for _, c := range j.components {
		s := c.Spec.Stages[0]
		s.TimeLimit, s.Attempts, s.Signal, s.OOM = cmp.Or(s.TimeLimit, first.TimeLimit), first.Attempts, first.Signal, first.OOM
		if s.Exclude == nil {
			s.Exclude = first.Exclude
		}
		stages = append(stages, s)
	}
	for i := range stages {
		s := &stages[i]
		s.Tasks, s.Gang, s.Allocation, s.OnFailure = max(s.Tasks, 1), true, true, ""
	}
	j.Spec.Stages, j.components = stages, nil
}

// HetGroup returns the end of the names of variables that describe one component.
func HetGroup(component int) string { return "_HET_GROUP_" + strconv.Itoa(component) }

func (j *Job) hetVariables() (values [][2]string) {
	if len(j.components) == 0 {
		return nil
	}
	values = append(values, [2]string{"SLURM_HET_SIZE", strconv.Itoa(1 + len(j.components))})
	from := 0
	for i, c := range append([]*Job{j}, j.components...) {
		n := len(c.allocation.perNodeCounts())
		cpus := strconv.Itoa(max(c.Spec.Stages[0].CPUs, 1))
		if i == 0 {
			cpus = "${CANDOR_CPUS:-1}"
		}
		values = append(values, [2]string{"SLURM_JOB_ID" + HetGroup(i), `"$CANDOR_JOB"`})
		for _, v := range slices.Concat(c.sizeVariables(nodesFrom(from, n), cpus), c.shapeVariables()) {
			if v[0] != "SLURM_JOB_GPUS" && strings.HasPrefix(v[0], "SLURM_") { // the devices of other nodes are not known here
				values = append(values, [2]string{v[0] + HetGroup(i), v[1]})
			}
		}
		from += n
	}
	return values
}

// nodesFrom returns a word for a shell script. The shell replaces the word by the names of n of the job's nodes. The
// argument `from` is the position of the first of these nodes, counted from 0.
func nodesFrom(from, n int) string {
	return fmt.Sprintf(`"$(echo "$CANDOR_NODES" | cut -d, -f%d-%d)"`, from+1, from+n)
}
