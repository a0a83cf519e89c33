package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/messages/agent"
)

// pmix is the value of --mpi for programs of Open MPI. srun does not speak their protocol: mpirun starts their ranks.
const pmix = "pmix"

// ofOpenMPI reports whether a program is linked to the library of Open MPI. srun cannot start ranks of Open MPI itself.
func ofOpenMPI(path string) bool {
	file, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	libraries, _ := file.ImportedLibraries()
	return slices.ContainsFunc(libraries, func(name string) bool { return name == "libmpi.so.40" || name == "libmpi.so.20" })
}

// launcher returns the path of Open MPI's mpirun, or "" if the step's PATH has none.
func launcher() string {
	for _, name := range []string{"mpirun", "mpirun.openmpi"} { // Debian also has the second name, because several kinds of mpirun may be installed
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if said, _ := exec.Command(path, "--version").Output(); bytes.Contains(said, []byte("Open MPI")) || bytes.Contains(said, []byte("PRRTE")) {
			return path
		}
	}
	return ""
}

// byMPIRun replaces srun by mpirun, which starts the ranks. The step runs on some of the nodes that the list `may` has.
// The argument `nodes` says on how many.
func (c *run) byMPIRun(w *step, mpirun, path string, words []string, may []int, nodes int) error {
	for _, one := range []struct {
		option string
		given  bool
	}{{"--label", w.label}, {"--gpus-per-task", w.gpusPerRank != ""}, {"--output with %t, %n or %N", slices.ContainsFunc(filePattern().FindAllStringSubmatch(w.out+" "+w.errs, -1), func(parts []string) bool { return strings.Contains("tnN", parts[2]) })},
		{"--distribution=plane", w.deals.Plane > 0}, {"--input", w.in != "" && w.in != "none" && w.in != "0"}} {
		if one.given {
			return fmt.Errorf("%s is not possible for ranks of Open MPI, which mpirun starts: leave it out, or call mpirun", one.option)
		}
	}
	limit, err := stepLimit(w.limit)
	if err != nil {
		return err
	}
	all, ids := c.nodesOfJob(), ""
	if here := c.Getenv("CANDOR_NODE"); all[may[0]] != here {
		return fmt.Errorf("ranks of Open MPI begin on node %s, where mpirun is: leave out --nodelist, --exclude and --relative, or call mpirun with --host", here)
	}
	var names []string
	var counts []int
	for k := range nodes {
		p := place{node: all[may[k]], index: may[k], count: w.shareOf(k, nodes)}
		w.places, names, counts = append(w.places, p), append(names, p.node), append(counts, p.count)
		ids += fmt.Sprintf("%s) SLURM_NODEID=%d;; ", p.node, k)
	}
	list := strings.Join(names, ",")
	env := slices.DeleteFunc(c.stepEnvironment(w), func(v string) bool { // with a step's variables, ranks would look for srun's PMIx, and mpirun would get the signals of ranks
		return strings.HasPrefix(v, "SLURM_STEP") || strings.HasPrefix(v, agent.StepVariable+"=")
	})
	if n, err := w.devicesOf(c.gpus, nodes); n == 0 && err == nil {
		env = append(env, "CUDA_VISIBLE_DEVICES=", "ROCR_VISIBLE_DEVICES=")
	}
	env = append(env, "SLURM_NODELIST="+list, "SLURM_JOB_NODELIST="+list, "SLURM_JOB_NUM_NODES="+strconv.Itoa(nodes), "OMPI_MCA_rmaps_base_oversubscribe=1")
	// mpirun starts one daemon on each node, and the daemon gives all ranks on the node the same variables. So each
	// rank must set the variables about itself.
	size := fmt.Sprintf("SLURM_NTASKS=%d SLURM_NPROCS=%[1]d SLURM_STEP_NUM_TASKS=%[1]d SLURM_TASKS_PER_NODE='%s' SLURM_STEP_TASKS_PER_NODE='%[2]s'", w.ranks, jobfile.PerNode(counts))
	rank := "case $CANDOR_NODE in " + ids + "esac; export " + size + " SLURM_NODEID SLURM_PROCID=$OMPI_COMM_WORLD_RANK SLURM_LOCALID=$OMPI_COMM_WORLD_LOCAL_RANK SLURMD_NODENAME=$CANDOR_NODE " + agent.StepVariable + "=" + strconv.Itoa(w.number) + "; exec \"$0\" \"$@\""
	args := []string{"mpirun", "-n", strconv.Itoa(w.ranks), "--bind-to", "none"}
	if w.deals.Cyclic {
		args = append(args, "--map-by", "node")
	}
	if os.Getuid() == 0 {
		args = append(args, "--allow-run-as-root")
	}
	if limit > 0 {
		args = append(args, "--timeout", strconv.Itoa(int(limit.Seconds())))
	}
	if w.in == "none" {
		args = append(args, "--stdin", "none")
	}
	args = append(append(args, "/bin/sh", "-c", rank, path), words[1:]...)
	return c.become(w, mpirun, args, env)
}
