package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobs"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// measure is a script that runs next to a task. It prints one line for each process of the task. The line has the
// session of the script itself, and then the step, the rank, the peak memory and the line of /proc/PID/stat of the
// process.
const measure = `cd /proc && read -r _ _ _ _ _ own _ <self/stat || exit
for f in $(grep -lzxF "CANDOR_LEASE=$CANDOR_LEASE" [0-9]*/environ 2>/dev/null); do
	p=${f%/environ}
	{ s=$(cat $p/stat) && m=$(grep VmHWM $p/status); } 2>/dev/null || continue
	echo "$own|$(grep -zxE '(CANDOR_STEP|SLURM_PROCID)=[0-9]+' $f 2>/dev/null | tr '\0' ' ')|$m|$s"
done`

// batch is the name of the step in which the script of a job runs.
const batch = "batch"

type used struct {
	cpu   map[string]time.Duration // processor time, by node and rank
	rss   map[string]int64         // peak memory of the largest process, in bytes
	nodes []string
}

// usedBy reads the lines that the script `measure` writes about the processes on a node, and adds their numbers to what
// the steps used. If the argument `withBatch` is false, it leaves out processes that belong to no step, because they
// only hold the node's slots.
func usedBy(steps map[string]*used, node, lines string, withBatch bool) {
	for line := range strings.Lines(lines) {
		parts := strings.SplitN(line, "|", 4)
		if len(parts) < 4 {
			continue
		}
		stat := strings.Fields(parts[3][strings.LastIndexByte(parts[3], ')')+1:])
		if len(stat) < 15 || stat[3] == parts[0] { // leave out processes of the script itself
			continue
		}
		step, rank := batch, ""
		for variable := range strings.FieldsSeq(parts[1]) {
			switch name, value, _ := strings.Cut(variable, "="); name {
			case agent.StepVariable:
				step = value
			case "SLURM_PROCID":
				rank = value
			}
		}
		if step == batch {
			rank = ""
		}
		if step == batch && !withBatch {
			continue
		}
		u := steps[step]
		if u == nil {
			u = &used{cpu: map[string]time.Duration{}, rss: map[string]int64{}}
			steps[step] = u
		}
		task, kibibytes := node+" "+rank, strings.Fields(parts[2])
		for _, text := range stat[11:15] { // processor time of the process itself, and of its ended children
			ticks, _ := strconv.ParseInt(text, 10, 64)
			u.cpu[task] += time.Duration(ticks) * time.Second / 100
		}
		if len(kibibytes) > 1 {
			n, _ := strconv.ParseInt(kibibytes[1], 10, 64)
			u.rss[task] = max(u.rss[task], n<<10)
		}
		if !slices.Contains(u.nodes, node) {
			u.nodes = append(u.nodes, node)
		}
	}
}

// usedFields are the fields of sstat. Fields that Candor does not measure are always empty.
func usedFields(of map[string]*used) []recordField {
	task := func(text func(u *used) string) func(*row) string {
		return func(r *row) string { return text(of[r.index]) }
	}
	kibibytes := func(n int64) string { return strconv.FormatInt(n>>10, 10) + "K" }
	sum := func(u *used) (cpu time.Duration, rss int64) {
		for name := range u.cpu {
			cpu, rss = cpu+u.cpu[name], rss+u.rss[name]
		}
		return cpu, rss
	}
	largest := func(u *used) (name string) {
		for each := range u.rss {
			if name == "" || u.rss[each] > u.rss[name] || u.rss[each] == u.rss[name] && each < name {
				name = each
			}
		}
		return name
	}
	fields := []recordField{
		{"JobID", 12, func(r *row) string { return r.index }},
		{"NTasks", 8, task(func(u *used) string { return strconv.Itoa(len(u.cpu)) })},
		{"AveCPU", 10, task(func(u *used) string {
			cpu, _ := sum(u)
			return longClock(messages.Duration(cpu) / messages.Duration(len(u.cpu)))
		})},
		{"MinCPU", 10, task(func(u *used) string {
			least := time.Duration(-1)
			for _, cpu := range u.cpu {
				if least < 0 || cpu < least {
					least = cpu
				}
			}
			return longClock(messages.Duration(least))
		})},
		{"AveRSS", 10, task(func(u *used) string {
			_, rss := sum(u)
			return kibibytes(rss / int64(len(u.cpu)))
		})},
		{"MaxRSS", 10, task(func(u *used) string { return kibibytes(u.rss[largest(u)]) })},
		{"MaxRSSNode", 10, task(func(u *used) string { node, _, _ := strings.Cut(largest(u), " "); return node })},
		{"MaxRSSTask", 10, task(func(u *used) string { _, rank, _ := strings.Cut(largest(u), " "); return rank })},
		{"Nodelist", 20, task(func(u *used) string { return strings.Join(u.nodes, ",") })},
	}
	for _, name := range []string{"AveCPUFreq", "AveDiskRead", "AveDiskWrite", "AvePages", "AveVMSize", "ConsumedEnergy", "MaxDiskRead", "MaxDiskWrite", "MaxPages", "MaxVMSize",
		"TRESUsageInAve", "TRESUsageInMax", "TRESUsageInTot"} {
		fields = append(fields, recordField{name, 10, func(*row) string { return "" }})
	}
	return fields
}

const usedFormat = "JobID,NTasks,AveCPU,MinCPU,AveRSS,MaxRSS,MaxRSSNode,Nodelist"

// sstat prints the resources that the steps of running jobs use. A script next to each task measures them.
func sstat(ctx context.Context, c *call, args []string) error {
	f := c.flags
	numbers := f.StringArrayP("jobs", "j", nil, "")
	every := f.BoolP("allsteps", "a", false, "")
	format := f.StringP("format", "o", usedFormat, "")
	f.StringVar(format, "fields", usedFormat, "")
	bare := f.BoolP("noheader", "n", false, "")
	parsable := f.BoolP("parsable", "p", false, "")
	parsable2 := f.BoolP("parsable2", "P", false, "")
	delimiter := f.String("delimiter", "|", "")
	list := f.BoolP("helpformat", "e", false, "")
	c.ignore(nil, []string{"verbose/v", "noconvert"})
	words, done, err := c.parse(args)
	if done || err != nil {
		return err
	}
	all := map[string]*used{}
	known := usedFields(all)
	if *list {
		for _, f := range known {
			fmt.Fprintln(c.Out, f.name)
		}
		return nil
	}
	columns, _, err := recordColumns(*format, known, *parsable || *parsable2, *delimiter, *parsable2)
	if words = fields(strings.Join(append(*numbers, words...), ",")); err == nil && len(words) == 0 {
		err = errors.New("You didn't supply me with any jobs to stat: sstat -j JOB")
	}
	if err != nil {
		return err
	}
	var s *cli.Session // nil means that no connection was needed yet
	var rows []row
	for _, word := range words {
		id, step, _ := strings.Cut(word, ".")
		var steps map[string]*used
		if c.isOwn(id) {
			steps, err = c.ownSteps(ctx)
		} else {
			if s == nil {
				if s, err = c.dial(); err != nil {
					return err
				}
				defer s.Bus.Close()
			}
			steps, err = c.stepsOf(ctx, s, id)
		}
		if err != nil {
			return err
		}
		names := chosenSteps(steps, step, *every)
		if len(names) == 0 {
			return fmt.Errorf("no steps running for job %s", word)
		}
		for _, name := range names {
			all[id+"."+name] = steps[name]
			rows = append(rows, row{index: id + "." + name})
		}
	}
	return c.printRecords(columns, rows, *bare, *parsable || *parsable2)
}

// chosenSteps returns the names of the steps that a user asks for. If the argument `one` is not "", it names the only
// chosen step. Otherwise, if the argument `every` is true, all steps are chosen. In all other cases, the steps that
// srun started are chosen. If there are none, the script's step is chosen.
func chosenSteps(steps map[string]*used, one string, every bool) (names []string) {
	for name := range steps {
		if one == name || one == "" && (every || name != batch || len(steps) == 1) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { // the step batch comes last
		i, err := strconv.Atoi(a)
		if err != nil {
			return 1
		}
		j, err := strconv.Atoi(b)
		if err != nil {
			return -1
		}
		return i - j
	})
	return names
}

// isOwn reports whether this command runs in the job with the number `id`, and this job has one node.
func (c *call) isOwn(id string) bool {
	return id == c.Getenv("SLURM_JOB_ID") && c.Getenv("CANDOR_LEASE") != "" && len(c.nodesOfJob()) == 1
}

// ownSteps measures the steps of the job in which this command runs. It asks this machine, and not the site.
func (c *call) ownSteps(ctx context.Context) (map[string]*used, error) {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", measure)
	cmd.Env, cmd.SysProcAttr = c.Environ(), &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.Output()
	steps := map[string]*used{}
	usedBy(steps, c.Getenv("CANDOR_NODE"), string(out), true)
	return steps, err
}

// stepsOf measures the steps of a job, or of an element of an array, on all its nodes.
func (c *call) stepsOf(ctx context.Context, s *cli.Session, id string) (steps map[string]*used, err error) {
	q := query{everybody: true, active: true, elements: true}
	if q.targets, err = targets(id); err != nil {
		return nil, err
	}
	found, err := q.list(ctx, s)
	if err != nil {
		return nil, err
	}
	steps = map[string]*used{}
	for i := range found {
		r := &found[i]
		if r.state != running {
			continue
		}
		tasks, err := runningOf(ctx, s, target{job: r.Job})
		if err != nil {
			return nil, err
		}
		for _, t := range tasks {
			if r.nodes() == 1 && r.index != "" && r.Array != nil && int(t.Task.Index) != r.at {
				continue
			}
			out, err := c.beside(ctx, s, &t, []string{"/bin/sh", "-c", measure})
			if kind := messages.KindOf(err); kind == messages.Ended || kind == messages.NotFound { // the task has ended in the meantime
				continue
			}
			if err != nil {
				return nil, err
			}
			usedBy(steps, t.Node, out, t.Task.Index == 0 || r.nodes() == 1)
		}
	}
	return steps, nil
}

const besideWithin = 10 * time.Second

// The method beside runs a command next to a task, and returns its output.
func (c *call) beside(ctx context.Context, s *cli.Session, t *jobmsg.TaskStatus, command []string) (string, error) {
	late := messages.Errorf(messages.Unavailable, "node %s does not answer: \"candor nodes\" shows the state of the node", t.Node)
	ctx, cancel := context.WithTimeoutCause(ctx, besideWithin, late)
	defer cancel()
	var out bytes.Buffer
	stream := jobs.StreamOf(c.App, s, t, false, &agent.StreamBegin{Command: command})
	stream.In, stream.Out, stream.Errs = strings.NewReader(""), &out, c.Err
	at, err := stream.Open(ctx)
	if err == nil {
		_, err = stream.Copy(ctx, at)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out.String(), err
}
