package jobfile

import (
	"fmt"
	"strconv"
	"strings"
)

// foreignVariables returns a shell command that sets the variables of PBS or Grid Engine, and writes the file of nodes.
func (j *Job) foreignVariables(user string) string {
	counts, stage := j.allocation.perNodeCounts(), &j.Spec.Stages[0]
	ranks, each := j.Ranks(), strconv.Itoa(counts[0])
	cpus := max(j.allocation.cpusPerRank, 1)
	if ranks == 1 {
		cpus = max(stage.CPUs, 1)
	}
	index, dir, host, home := `"`+j.index()+`"`, Quote(j.Spec.Dir), Quote(j.Host), Quote(j.home)
	if j.Spec.Dir == "" {
		dir = `"$PWD"`
	}
	if j.system == gridEngine {
		values := [][2]string{{"JOB_ID", `"$CANDOR_JOB"`}, {"JOB_NAME", `"$CANDOR_JOB_NAME"`}, {"SGE_O_WORKDIR", dir}, {"SGE_O_LOGNAME", Quote(user)}, {"SGE_O_HOST", host}, {"SGE_O_HOME", home}, {"TMP", `"${TMPDIR:-/tmp}"`},
			{"QUEUE", `"$CANDOR_MARKET"`}, {"NSLOTS", strconv.Itoa(ranks * cpus)}, {"NHOSTS", strconv.Itoa(len(counts))}, {"SGE_TASK_ID", "undefined"}}
		if a := j.indices(); a != nil {
			values[len(values)-1][1] = index
			values = append(values, [2]string{"SGE_TASK_FIRST", strconv.FormatInt(a.At(0), 10)}, [2]string{"SGE_TASK_LAST", strconv.FormatInt(a.At(a.Count()-1), 10)},
				[2]string{"SGE_TASK_STEPSIZE", strconv.FormatInt(a[0].Step, 10)})
		}
		if j.parallel != "" {
			values = append(values, [2]string{"PE", Quote(j.parallel)})
		}
		return exportOf(values) + nodeFile("PE_HOSTFILE", `echo "$candor_node `+strconv.Itoa(counts[0]*cpus)+` $CANDOR_MARKET@$candor_node UNDEFINED"`)
	}
	values := [][2]string{{"PBS_JOBID", `"` + j.jobNumber() + `"`}, {"PBS_JOBNAME", `"$CANDOR_JOB_NAME"`}, {"PBS_O_WORKDIR", dir}, {"PBS_O_LOGNAME", Quote(user)}, {"PBS_O_HOST", host}, {"PBS_O_HOME", home},
		{"PBS_QUEUE", `"$CANDOR_MARKET"`}, {"PBS_O_QUEUE", `"$CANDOR_MARKET"`}, {"PBS_ENVIRONMENT", "PBS_BATCH"}, {"PBS_NP", strconv.Itoa(ranks)}, {"PBS_NUM_NODES", strconv.Itoa(len(counts))},
		{"PBS_NUM_PPN", each}, {"NCPUS", strconv.Itoa(cpus)}}
	if j.indices() != nil {
		values = append(values, [2]string{"PBS_ARRAYID", index}, [2]string{"PBS_ARRAY_INDEX", index}, [2]string{"PBS_ARRAY_ID", `"` + j.arrayNumber() + `"`})
	}
	return exportOf(values) + nodeFile("PBS_NODEFILE", fmt.Sprintf(`candor_rank=0; while [ $candor_rank -lt %s ]; do echo "$candor_node"; candor_rank=$((candor_rank + 1)); done`, each))
}

func exportOf(values [][2]string) string {
	var b strings.Builder
	b.WriteString("export")
	for _, v := range values {
		b.WriteString(" " + v[0] + "=" + v[1])
	}
	return b.String()
}

// nodeFile returns a shell command that writes lines for each node to a file, and names the file in a variable.
func nodeFile(variable, line string) string {
	return fmt.Sprintf(`; export %s="$(mktemp)"; for candor_node in $(echo "${CANDOR_NODES:-$CANDOR_NODE}" | tr , ' '); do %s; done >"$%s"; unset candor_node candor_rank`, variable, line, variable)
}
