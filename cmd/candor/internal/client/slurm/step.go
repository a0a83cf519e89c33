package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/messages/agent"
)

// step is one call of srun within a job: ranks that run one command, on processors and GPUs of the job.
type step struct {
	ranks, perNode, cpus int // 0 means that the user did not set it
	nodes                string
	// If exact is set, the step takes only the processors of its ranks. If overlap is set, it takes none. Otherwise it
	// takes all processors of the job.
	exact, overlap      bool
	over                bool // the step may have more ranks than processors
	label, kill         bool
	out, errs, in, mode string
	export, chdir, mpi  string
	on, off, job        string // nodes that the step must have, nodes that it must not have, and its job
	limit, wait         string
	soon                string // number of seconds that it may wait for free processors; "" means any time
	gpus, gres          string // GPUs and generic resources of each node
	total               string // GPUs of all nodes together
	gpusPerRank         string
	multi               bool // the command is a file with programs for the ranks
	relative            int  // index of the first node that it may use, in the job's list of nodes
	dealt               string
	group               string               // the components of a heterogeneous job on which the step runs
	deals               jobfile.Distribution // how its ranks are divided over its nodes; parsed from dealt

	number  int // number of the step in its job
	devices int // GPUs of all nodes together; 0 means that each node has the same number
	places  []place
	placeAt []int // by rank: index of the place on which it runs
}

// place is the part of a step that runs on one node.
type place struct {
	of    int // index of the place's run
	node  string
	index int // index of the node in the job's list of nodes
	at    int // index of the node in the step's list of nodes
	count int // the number of ranks
	ranks []int
	gpus  []int // nil means that the ranks see all GPUs of the job
}

func stepFlags(f *pflag.FlagSet) *step {
	w := &step{}
	f.IntVarP(&w.ranks, "ntasks", "n", 0, "")
	f.IntVar(&w.perNode, "ntasks-per-node", 0, "")
	f.IntVar(&w.perNode, "tasks-per-node", 0, "")
	f.IntVarP(&w.cpus, "cpus-per-task", "c", 0, "")
	f.StringVarP(&w.nodes, "nodes", "N", "", "")
	f.BoolVar(&w.exact, "exact", false, "")
	optionalFlag(f, &w.exact, "exclusive", "")
	optionalFlag(f, &w.overlap, "overlap", "")
	optionalFlag(f, &w.overlap, "external-launcher", "")
	f.BoolVarP(&w.over, "overcommit", "O", false, "")
	f.BoolVarP(&w.label, "label", "l", false, "")
	optionalFlag(f, &w.kill, "kill-on-bad-exit", "K")
	f.BoolP("=1", "1", false, "")                                                                // the option -K1; its long name is not meant to be typed
	f.BoolFuncP("=0", "0", "", func(string) error { return f.Set("kill-on-bad-exit", "false") }) // the option -K0
	f.StringVarP(&w.out, "output", "o", "", "")
	f.StringVarP(&w.errs, "error", "e", "", "")
	f.StringVarP(&w.in, "input", "i", "", "")
	f.StringVar(&w.mode, "open-mode", "", "")
	f.StringVar(&w.export, "export", "", "")
	f.StringVarP(&w.chdir, "chdir", "D", "", "")
	f.StringVar(&w.mpi, "mpi", "", "")
	f.StringVarP(&w.on, "nodelist", "w", "", "")
	f.StringVarP(&w.off, "exclude", "x", "", "")
	f.StringVar(&w.job, "jobid", "", "")
	f.StringVarP(&w.limit, "time", "t", "", "")
	f.StringVarP(&w.wait, "wait", "W", "", "")
	f.StringVarP(&w.soon, "immediate", "I", "", "")
	f.Lookup("immediate").NoOptDefVal = "1"
	f.StringVarP(&w.total, "gpus", "G", "", "")
	f.StringVar(&w.gres, "gres", "", "")
	f.StringVar(&w.gpus, "gpus-per-node", "", "")
	f.StringVar(&w.gpusPerRank, "gpus-per-task", "", "")
	f.BoolVar(&w.multi, "multi-prog", false, "")
	f.IntVarP(&w.relative, "relative", "r", 0, "")
	f.StringVarP(&w.dealt, "distribution", "m", "", "")
	f.StringVar(&w.group, "het-group", "", "")
	f.StringVar(&w.group, "pack-group", "", "")
	return w
}

func (c *call) tooMany() error {
	return fmt.Errorf("Unable to create step for job %s: More processors requested than permitted", c.Getenv("CANDOR_JOB"))
}

func (c *call) number(name string) int {
	n, err := strconv.Atoi(c.Getenv(name))
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// nodesOfJob returns the nodes of the job: only this node, or all nodes of an allocation.
func (c *call) nodesOfJob() []string {
	if list := c.Getenv("CANDOR_NODES"); list != "" {
		return strings.Split(list, ",")
	}
	return []string{c.Getenv("CANDOR_NODE")}
}

// chosen returns the nodes of a component that a step may use, as indices in the job's list of nodes.
func (c *call) chosen(w *step, of component) (may []int, err error) {
	all := c.nodesOfJob()[of.first:][:of.nodes]
	none := fmt.Errorf("Unable to create step for job %s: Requested node configuration is not available: the job has %s", c.Getenv("CANDOR_JOB"), strings.Join(all, ","))
	on, err := nodesOf("nodelist", w.on)
	if err != nil {
		return nil, err
	}
	off, err := nodesOf("exclude", w.off)
	if err != nil {
		return nil, err
	}
	for _, n := range on {
		if !slices.Contains(all, n) {
			return nil, none
		}
	}
	for i, n := range all {
		if i >= w.relative && (len(on) == 0 || slices.Contains(on, n)) && !slices.Contains(off, n) {
			may = append(may, of.first+i)
		}
	}
	if len(may) == 0 {
		return nil, none
	}
	return may, nil
}

// plan sets the options that the step does not specify. It computes them from the resources of `of`, which is a
// component of a heterogeneous job, or the whole job. It refuses a step that asks for more than these resources. The
// result `may` lists the nodes that the step may use, and the result `nodes` is how many of them it needs.
func (c *call) plan(w *step, of component) (may []int, nodes int, err error) {
	least, _, _ := strings.Cut(w.nodes, "-")
	nodes, err = strconv.Atoi(cmp.Or(least, "0"))
	if strings.HasPrefix(w.mpi, pmix+"_v") { // a version of PMIx, such as pmix_v4
		w.mpi = pmix
	}
	switch {
	case err != nil || nodes < 0 || w.ranks < 0 || w.cpus < 0 || w.perNode < 0 || w.relative < 0:
		return nil, 0, errors.New("invalid number of nodes, tasks or processors")
	case nodes > of.nodes:
		return nil, 0, fmt.Errorf("Unable to create step for job %s: Requested node configuration is not available", c.Getenv("CANDOR_JOB"))
	case w.job != "" && w.job != c.Getenv("SLURM_JOB_ID") && w.job != c.Getenv("CANDOR_JOB"):
		return nil, 0, fmt.Errorf("--jobid: use candor exec %s -- COMMAND outside of a job", w.job)
	case w.mpi != "" && !slices.Contains(stepMPI, w.mpi):
		return nil, 0, fmt.Errorf("--mpi=%s is not possible here: use %s, or mpirun without srun", w.mpi, strings.Join(stepMPI, " or "))
	}
	if may, err = c.chosen(w, of); err != nil {
		return nil, 0, err
	}
	job, processors := of.ranks, of.processors
	if w.on != "" && nodes == 0 {
		nodes = len(may)
	}
	if w.ranks == 0 {
		w.ranks = job
		if w.perNode > 0 {
			w.ranks = cmp.Or(nodes, len(may)) * w.perNode
		}
	}
	if nodes == 0 {
		nodes = min(len(may), w.ranks)
		if w.perNode > 0 {
			nodes = min(nodes, (w.ranks-1)/w.perNode+1)
		}
	}
	nodes = min(nodes, w.ranks) // Slurm also does this, and warns
	w.cpus = cmp.Or(w.cpus, of.cpus)
	most := (w.ranks-1)/nodes + 1 // the largest number of ranks on one node
	switch each := max(w.cpus, 1); {
	case nodes > len(may):
		return nil, 0, c.tooMany()
	case w.over:
	case processors > 0 && (most > processors || each > processors/most), processors == 0 && w.ranks > job:
		return nil, 0, c.tooMany()
	}
	return may, nodes, nil
}

// stepMPI are the ways in which ranks find one another. The first one is the default.
var stepMPI = []string{"pmi1", "pmi2", "none", pmix}

// step runs the ranks of one or several commands as one step. It returns the highest exit code of the ranks. Options
// that hold for the whole step are taken from the first command.
func (c *call) step(ctx context.Context, all []segment) error {
	of, err := c.components()
	if err != nil {
		return err
	}
	limit, err := stepLimit(all[0].w.limit)
	if err != nil {
		return err
	}
	var runs []*run
	for i, s := range all {
		chosen, err := groups(s.w.group, i, of)
		if err != nil {
			return err
		}
		for _, one := range chosen {
			w := *s.w
			if i > 0 {
				w.mpi = all[0].w.mpi
			}
			r := &run{component: one, call: s.call, w: &w}
			if err := r.prepare(s.words); err != nil {
				return err
			}
			runs = append(runs, r)
		}
	}
	for _, r := range runs {
		if w := r.w; w.mpi == pmix || w.mpi == "" && ofOpenMPI(r.path) {
			switch mpirun := launcher(); {
			case mpirun != "" && (len(runs) > 1 || r.first > 0):
				return errSeveral
			case mpirun != "":
				return r.byMPIRun(w, mpirun, r.path, r.argv, r.may, r.share)
			case w.mpi == pmix:
				return errors.New("--mpi=pmix needs mpirun of Open MPI, and PATH has none: load its module, or leave --mpi out")
			}
		}
		if err := r.reserve(); err != nil {
			return err
		}
	}
	room, err := c.take(ctx, runs)
	if err != nil {
		return err
	}
	defer room.Close()
	return c.launch(ctx, runs, room, c.ownPlace(of), limit)
}

func (r *run) prepare(words []string) (err error) {
	w := r.w
	if r.may, r.share, err = r.plan(w, r.component); err != nil {
		return err
	}
	w.exact = w.exact || r.flags.Changed("cpus-per-task") || r.flags.Changed("threads-per-core") // Slurm also does this, since version 22.05
	if w.deals, err = r.distribution(w); err != nil {
		return fmt.Errorf("--distribution: %w", err)
	}
	if w.multi {
		text, err := os.ReadFile(words[0])
		if err == nil {
			words, err = programs(string(text), w.ranks)
		}
		if err != nil {
			return err
		}
	}
	if r.path, err = lookPath(words[0], w.chdir); err != nil {
		return r.cannotRun(words[0], err)
	}
	r.argv = words
	return nil
}

// cannotRun writes in Slurm's words why a program cannot be run, and returns its exit code.
func (c *call) cannotRun(program string, err error) error {
	code, line := execError(program, err)
	_, _ = io.WriteString(c.Err, line)
	return status(code)
}

// execError returns the exit code and the message of a rank that cannot be started. If its program cannot be run, the
// code is the number of the system's error, as under Slurm: 2 if there is no such file, 13 if the user may not run it.
func execError(program string, err error) (code int, line string) {
	number, isNumber := errors.AsType[syscall.Errno](err)
	_, looked := errors.AsType[*exec.Error](err)
	failed, _ := errors.AsType[*fs.PathError](err)
	switch {
	case !looked && err != error(number) && (failed == nil || failed.Op != "fork/exec"):
		return 1, fmt.Sprintf("slurmstepd: error: %v\n", err)
	case errors.Is(err, fs.ErrPermission), number == syscall.EISDIR: // the kernel also refuses directories so
		number = syscall.EACCES
	case !isNumber:
		number = syscall.ENOENT
	}
	text := number.Error()
	return int(number), fmt.Sprintf("slurmstepd: error: execve(): %s: %s%s\n", program, strings.ToUpper(text[:1]), text[1:])
}

// startRank starts a rank. If the rank cannot have its working directory, the error says so. The error of the kernel
// would look as if the program were the reason.
func startRank(cmd *exec.Cmd) error {
	err := cmd.Start()
	if err != nil && cmd.Dir != "" {
		const search = 1 // the mode X_OK of the system call access
		if failed := syscall.Access(cmd.Dir+"/.", search); failed != nil {
			return fmt.Errorf("the directory of the step: %w", &fs.PathError{Op: "chdir", Path: cmd.Dir, Err: failed})
		}
	}
	return err
}

func (r *run) reserve() (err error) {
	if w := r.w; w.gpus == "" && w.gres == "" && w.total == "" && w.mpi != "none" { // MPI launchers use "none"; their ranks need all GPUs
		name := "SLURM_GPUS_PER_TASK"
		if r.group > 0 {
			name += jobfile.HetGroup(r.group)
		}
		w.gpusPerRank = cmp.Or(w.gpusPerRank, r.Getenv(name))
	}
	r.gpusOfRanks, err = r.w.devicesOf(r.gpus, r.share)
	return err
}

// lookPath finds a program as a shell would find it if `dir` were its working directory.
func lookPath(word, dir string) (string, error) {
	if dir != "" && strings.Contains(word, "/") && !strings.HasPrefix(word, "/") {
		word = dir + "/" + word
	}
	path, err := exec.LookPath(word)
	if errors.Is(err, exec.ErrDot) {
		err = nil
	}
	return path, err
}

// stepLimit reads the time limit of a step. 0 means that only the job's limit applies.
func stepLimit(text string) (time.Duration, error) {
	if text == "" || text == "0" {
		return 0, nil
	}
	limit, err := jobfile.ParseTime(text)
	return limit.Std(), err
}

func deviceList(lists ...string) []string {
	for _, list := range lists {
		if list != "" {
			return strings.Split(list, ",")
		}
	}
	return nil
}

// devicesOf returns how many GPUs a step reserves on a node. The job has `has` GPUs on each node, and the step runs on
// `nodes` nodes. If the step reserves different numbers on the nodes, the result is the largest one. 0 means that the
// step has no GPU. −1 means that the step reserves no GPU, but sees all GPUs of the job.
func (w *step) devicesOf(has, nodes int) (int, error) {
	text := w.gpus
	if text == "" && w.gres != "" {
		var err error
		if text, err = jobfile.GPUsOfGres(w.gres); err != nil {
			return 0, err
		}
	}
	if w.gpusPerRank != "" {
		text = w.gpusPerRank
	}
	together := text == ""
	if together {
		text = w.total
	}
	switch text {
	case "":
		return -1, nil
	case "none":
		return 0, nil
	}
	text = text[strings.LastIndexByte(text, ':')+1:]
	n, err := strconv.Atoi(text)
	if err != nil { // the text is only a type of GPU, without a number
		n, err = 1, nil
	}
	if w.gpusPerRank != "" {
		n *= (w.ranks-1)/max(nodes, 1) + 1
	}
	if together && n >= 0 && n <= has*nodes {
		w.devices, n = n, (n+nodes-1)/nodes
	}
	if n < 0 || n > has {
		return 0, fmt.Errorf("Invalid generic resource (gres) specification: the job has %d GPUs, and the step asks for %d", has, n)
	}
	return n, err
}

// stepEnvironment returns the environment that all ranks of a run have in common. Variables that differ between nodes
// or ranks are not in it.
func (c *run) stepEnvironment(w *step) []string {
	env := exported(c.Environ(), c.w.export)
	ranks, nodes, number := strconv.Itoa(w.ranks), strconv.Itoa(len(w.places)), strconv.Itoa(w.number)
	var names []string
	var counts []int
	for _, p := range w.places {
		names, counts = append(names, p.node), append(counts, p.count)
	}
	list := jobfile.PerNode(counts)
	env = append(env, "SLURM_STEP_ID="+number, "SLURM_STEPID="+number, "SLURM_STEP_NODELIST="+strings.Join(names, ","), "SLURM_STEP_NUM_NODES="+nodes, "SLURM_STEP_NUM_TASKS="+ranks,
		"SLURM_STEP_TASKS_PER_NODE="+list, "SLURM_NTASKS="+ranks, "SLURM_NPROCS="+ranks, "SLURM_TASKS_PER_NODE="+list, "SLURM_NNODES="+nodes,
		"SLURM_DISTRIBUTION="+cmp.Or(w.dealt, "block"), "SLURM_LAUNCH_NODE_IPADDR=127.0.0.1", agent.StepVariable+"="+number)
	if w.deals.Plane > 0 {
		env = append(env, "SLURM_DISTRIBUTION=plane", "SLURM_DIST_PLANESIZE="+strconv.Itoa(w.deals.Plane))
	}
	if c.w.cpus > 0 {
		env = append(env, "SLURM_CPUS_PER_TASK="+strconv.Itoa(c.w.cpus))
	}
	return append(env, c.threads()...)
}

// threads returns environment variables that make each rank start as many threads as it has processors. If the script
// has set a number of threads, threads does not change it. With an MPI launcher, it changes no value of the script.
func (c *run) threads() (env []string) {
	w, job := c.w, c.ranks
	if c.processors == 0 || w.mpi == "none" {
		return nil
	}
	ranks := (job-1)/c.nodes + 1 // largest number of ranks of one node
	for i := range w.places {
		ranks = max(ranks, w.places[i].count)
	}
	for _, name := range jobfile.ThreadVariables {
		if value := c.Getenv(name); value == "" && job > 1 || value == c.Getenv("CANDOR_CPUS") {
			env = append(env, name+"="+strconv.Itoa(cmp.Or(w.cpus, max(c.processors/ranks, 1))))
		}
	}
	return env
}

func (w *step) ofRank(p *place, rank int) []string {
	ids := make([]string, p.count)
	for i := range ids {
		ids[i] = strconv.Itoa(p.ranks[i])
	}
	return []string{"SLURM_PROCID=" + strconv.Itoa(rank), "SLURM_LOCALID=" + strconv.Itoa(slices.Index(p.ranks, rank)), "SLURM_NODEID=" + strconv.Itoa(p.at), "SLURMD_NODENAME=" + p.node, "SLURM_GTIDS=" + strings.Join(ids, ",")}
}

func (w *step) placeOf(rank int) *place {
	return &w.places[w.placeAt[rank]]
}

// exported returns the part of an environment that the option --export passes on.
func exported(env []string, list string) (out []string) {
	if list == "" || list == "ALL" {
		return slices.Clone(env)
	}
	words := strings.Split(list, ",")
	all := slices.Contains(words, "ALL")
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if all || slices.Contains(words, name) || strings.HasPrefix(name, "SLURM_") || strings.HasPrefix(name, "CANDOR_") {
			out = append(out, v)
		}
	}
	for _, word := range words {
		if strings.Contains(word, "=") {
			out = append(out, word)
		}
	}
	return out
}

// filePattern matches a pattern in srun's file names, such as %3t: a letter and the number of digits.
var filePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`%(\d{0,2})([%jJAatnsNxu])`) })

// fill replaces the patterns in a file's name by the values of a rank. A pattern may have a width: %3t stands for a
// rank of at least three digits, with leading zeros.
func (c *call) fill(pattern string, w *step, rank int) string {
	job := cmp.Or(c.Getenv("SLURM_JOB_ID"), c.Getenv("CANDOR_JOB"))
	values := map[string]string{"%": "%", "j": job, "J": job + "." + strconv.Itoa(w.number), "A": cmp.Or(c.Getenv("SLURM_ARRAY_JOB_ID"), c.Getenv("CANDOR_JOB")), "a": c.Getenv("CANDOR_ARRAY_INDEX"),
		"t": strconv.Itoa(rank), "n": strconv.Itoa(w.placeAt[rank]), "s": strconv.Itoa(w.number), "N": w.placeOf(rank).node, "x": c.Getenv("CANDOR_JOB_NAME"), "u": localUser()}
	return filePattern().ReplaceAllStringFunc(pattern, func(found string) string {
		parts := filePattern().FindStringSubmatch(found)
		value := values[parts[2]]
		number, err := strconv.ParseUint(value, 10, 64)
		if width, _ := strconv.Atoi(parts[1]); width > 0 && err == nil {
			return fmt.Sprintf("%0*d", width, number)
		}
		return value
	})
}

// open opens the file for a rank's output. It returns nil for srun's own output.
func (c *call) open(pattern string, w *step, rank int) (*os.File, error) {
	switch only, err := strconv.Atoi(pattern); {
	case pattern == "" || pattern == "all" || err == nil && only == rank:
		return nil, nil
	case pattern == "none" || err == nil:
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND // several ranks may use the same file
	name := c.fill(pattern, w, rank)
	if !strings.HasPrefix(w.mode, "a") && (rank == 0 || name != c.fill(pattern, w, 0)) {
		flags |= os.O_TRUNC
	}
	if dir := w.chdir; dir != "" && !strings.HasPrefix(name, "/") {
		name = dir + "/" + name
	}
	return os.OpenFile(name, flags, 0o666)
}

// alone reports whether a step has only one process, which runs on this node. The process can then take the place of
// srun's process.
func (w *step) alone(own int) bool {
	return w.ranks == 1 && w.places[0].index == own && !w.label && w.limit == "" && (w.in == "" || w.in == "all" || w.in == "0")
}

// become replaces srun's process by the step's only rank, so that the rank gets srun's signals.
func (c *call) become(w *step, path string, words, env []string) error {
	if w.chdir != "" {
		if err := os.Chdir(w.chdir); err != nil {
			return err
		}
	}
	out, err := c.open(w.out, w, 0)
	if err != nil {
		return err
	}
	errs, err := c.open(w.errs, w, 0)
	if err != nil {
		return err
	}
	if errs == nil && w.errs == "" {
		errs = out
	}
	for number, file := range []*os.File{1: out, 2: errs} {
		if file != nil {
			if err := syscall.Dup3(int(file.Fd()), number, 0); err != nil {
				return err
			}
		}
	}
	return c.cannotRun(path, syscall.Exec(path, words, (&exec.Cmd{Env: env}).Environ())) // Environ removes repeated variables
}
