package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

func (c *call) queueFields() map[byte]column {
	now := messages.TimeOf(c.Now())
	text := func(title string, of func(*row) string) column { return column{title: title, text: of} }
	fixed := func(title, value string) column { return text(title, func(*row) string { return value }) }
	limit := func(r *row) string {
		if r.detail == nil || len(r.detail.Spec.Stages) == 0 || r.detail.Spec.Stages[0].TimeLimit == 0 {
			return "UNLIMITED"
		}
		return clock(r.detail.Spec.Stages[0].TimeLimit)
	}
	stage := func(of func(*job.Stage) string) func(*row) string {
		return func(r *row) string {
			if r.detail == nil || len(r.detail.Spec.Stages) == 0 {
				return ""
			}
			return of(&r.detail.Spec.Stages[0])
		}
	}
	null := func(text string) string { return cmp.Or(text, "(null)") }
	return map[byte]column{
		'b': text("TRES_PER_NODE", stage(func(s *job.Stage) string {
			switch {
			case s.GPUs == 0:
				return "N/A"
			case s.GPUType != "":
				return fmt.Sprintf("gres/gpu:%s:%d", s.GPUType, s.GPUs)
			}
			return fmt.Sprintf("gres/gpu:%d", s.GPUs)
		})),
		'c': text("MIN_CPUS", func(r *row) string { return strconv.Itoa(r.cpus() / r.nodes()) }),
		'f': text("FEATURES", stage(func(s *job.Stage) string { return null(s.Constraint) })),
		'n': text("REQ_NODES", stage(func(s *job.Stage) string { return strings.Join(s.Nodes, ",") })),
		'x': text("EXC_NODES", stage(func(s *job.Stage) string { return strings.Join(s.Exclude, ",") })),
		'h': text("OVER_SUBSCRIBE", stage(func(s *job.Stage) string {
			if s.Exclusive {
				return "NO"
			}
			return "OK"
		})),
		'g': fixed("GROUP", "(null)"),
		'v': fixed("RESERVATION", "(null)"),
		'w': fixed("WCKEY", "(null)"),
		'y': fixed("NICE", "0"),
		'i': text("JOBID", (*row).id),
		'A': text("JOBID", func(r *row) string { return r.number().String() }),
		'F': text("ARRAY_JOB_ID", func(r *row) string { return r.array.String() }),
		'K': text("ARRAY_TASK_ID", func(r *row) string {
			if r.index == "" {
				return "N/A"
			}
			return r.index
		}),
		'j': text("NAME", func(r *row) string { return r.Name }),
		'u': text("USER", func(r *row) string { return r.Account }),
		'a': text("ACCOUNT", func(r *row) string { return r.Payer }),
		'P': text("PARTITION", func(r *row) string { return r.Market }),
		't': text("ST", func(r *row) string { return r.state.short }),
		'T': text("STATE", func(r *row) string { return r.state.long }),
		'M': text("TIME", func(r *row) string { return clock(r.elapsed(now)) }),
		'l': text("TIME_LIMIT", limit),
		'L': text("TIME_LEFT", func(r *row) string {
			if limit(r) == "UNLIMITED" {
				return "UNLIMITED"
			}
			return clock(max(0, r.detail.Spec.Stages[0].TimeLimit-r.elapsed(now)))
		}),
		'r': text("REASON", func(r *row) string { return r.why }),
		'R': text("NODELIST(REASON)", func(r *row) string {
			if r.state == pending {
				return "(" + r.why + ")"
			}
			return r.node
		}),
		'N': text("NODELIST", func(r *row) string { return r.node }),
		'B': text("EXEC_HOST", func(r *row) string { return r.host }),
		'D': text("NODES", func(r *row) string { return strconv.Itoa(r.nodes()) }),
		'C': text("CPUS", func(r *row) string { return strconv.Itoa(r.cpus()) }),
		'Q': fixed("PRIORITY", "0"),
		'p': fixed("PRIORITY", "0"),
		'q': text("QOS", (*row).qos),
		'm': text("MIN_MEMORY", stage(func(s *job.Stage) string { return strconv.FormatInt(max(s.Memory, 0)>>20, 10) + "M" })),
		'E': text("DEPENDENCY", func(r *row) string {
			if r.detail == nil {
				return "(null)"
			}
			return dependency(&r.detail.Spec, r.state)
		}),
		'k': text("COMMENT", func(r *row) string {
			if r.detail == nil || r.detail.Spec.Comment == "" {
				return "(null)"
			}
			return r.detail.Spec.Comment
		}),
		'Z': text("WORK_DIR", func(r *row) string {
			if r.detail == nil {
				return ""
			}
			return r.detail.Spec.Dir
		}),
		'V': text("SUBMIT_TIME", func(r *row) string { return c.instant(r.Submitted, "N/A") }),
		'o': text("COMMAND", stage(func(s *job.Stage) string { return null(jobfile.PathOf(s.Script)) })),
		'S': text("START_TIME", func(r *row) string { return c.instant(r.began, "N/A") }),
		'e': text("END_TIME", func(r *row) string { return c.instant(r.end(), "N/A") }),
	}
}

const (
	queueFormat = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
	// Candor predicts no start times: START_TIME is N/A.
	startFormat = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %R"
	longFormat  = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
)

// recently is how long squeue shows ended jobs, if the user asks for their states: Slurm's usual MinJobAge.
const recently = 5 * time.Minute

func squeue(ctx context.Context, c *call, args []string) error {
	f := c.flags
	format := f.StringP("format", "o", "", "")
	fields := f.StringP("Format", "O", "", "")
	wanted := f.StringP("states", "t", "", "")
	numbers := f.StringArrayP("jobs", "j", nil, "")
	names := f.StringSliceP("name", "n", nil, "")
	users := f.StringSliceP("user", "u", nil, "")
	markets := f.StringSliceP("partition", "p", nil, "")
	projects := f.StringSliceP("account", "A", nil, "")
	array := f.BoolP("array", "r", false, "")
	start := f.Bool("start", false, "")
	bare := f.BoolP("noheader", "h", false, "")
	long := f.BoolP("long", "l", false, "")
	me := f.Bool("me", false, "")
	notMe := f.Bool("notme", false, "")
	c.clusterFlags()
	c.textOnly()
	qos := f.StringSliceP("qos", "q", nil, "")
	order := f.StringP("sort", "S", "", "")
	nodes := f.StringP("nodelist", "w", "", "")
	c.ignore(nil, []string{"all/a", "array-unique", "verbose/v", "local", "federation", "priority/P", "hide", "only-job-state"})
	if _, done, err := c.parse(args); done || err != nil {
		return err
	}
	variables := [][2]string{{"SQUEUE_ACCOUNT", "account"}, {"SQUEUE_ARRAY", "array"}, {"SQUEUE_NAMES", "name"}, {"SQUEUE_PARTITION", "partition"}, {"SQUEUE_QOS", "qos"},
		{"SQUEUE_SORT", "sort"}, {"SQUEUE_STATES", "states"}, {"SQUEUE_USERS", "user"}}
	if *fields == "" && !*long && !*start {
		variables = append(variables, [2]string{"SQUEUE_FORMAT", "format"})
	}
	err := c.inputs(variables...)
	if err != nil {
		return err
	}
	q := query{names: *names, markets: *markets, projects: *projects, qos: *qos, active: true, elements: true, everybody: !*me}
	if q.on, err = nodesOf("nodelist", *nodes); err != nil {
		return err
	}
	if *start {
		q.states = []state{pending}
	}
	if *fields != "" {
		if *format, err = lettersOf(*fields); err != nil {
			return err
		}
	}
	if *start && *format == "" {
		*format = startFormat
	}
	if *long && *format == "" {
		*format = longFormat
	}
	if *format == "" {
		*format = queueFormat
	}
	if *wanted != "" {
		if q.states, err = named(*wanted); err != nil {
			return err
		}
		q.active = q.states != nil && !slices.ContainsFunc(q.states, state.ended)
	}
	if q.targets, err = targets(*numbers...); err != nil {
		return err
	}
	columns, err := letters(*format, c.queueFields())
	if err == nil {
		err = sorted(nil, *order, c.queueFields())
	}
	if err != nil {
		return err
	}
	used := letterOf(*format) + *order
	q.tasks = strings.ContainsAny(used, "NRB") || q.on != nil
	q.details = strings.ContainsAny(used, "lLkZEbfnxhmqeo")
	s, err := c.dial()
	if err != nil {
		return err
	}
	defer s.Bus.Close()
	if !q.active {
		q.since = messages.TimeOf(c.Now().Add(-recently))
	}
	if q.users = usersOf(*users, s.Account); *me {
		q.users = []string{s.Account}
	}
	rows, err := q.list(ctx, s)
	if err != nil {
		return err
	}
	if *notMe {
		rows = slices.DeleteFunc(rows, func(r row) bool { return r.Account == s.Account })
	}
	if len(q.targets) == 1 && len(rows) == 0 && *wanted == "" {
		return c.unknown(ctx, s, q.targets[0])
	}
	if q.active { // leave out the ended elements of an array that still runs
		rows = slices.DeleteFunc(rows, func(r row) bool { return r.state.ended() })
	}
	if *array {
		rows = apart(rows)
	}
	if err := sorted(rows, *order, c.queueFields()); err != nil {
		return err
	}
	return c.print(columns, rows, !*bare)
}

var queueNames = map[string]string{"jobid": "A", "jobarrayid": "i", "arrayjobid": "F", "arraytaskid": "K", "name": "j", "username": "u", "account": "a", "partition": "P",
	"statecompact": "t", "state": "T", "timeused": "M", "timelimit": "l", "timeleft": "L", "reason": "r", "reasonlist": "R", "nodelist": "N", "batchhost": "B", "numnodes": "D",
	"numcpus": "C", "prioritylong": "Q", "priority": "p", "qos": "q", "minmemory": "m", "mincpus": "c", "dependency": "E", "comment": "k", "workdir": "Z", "submittime": "V",
	"starttime": "S", "endtime": "e", "tres-per-node": "b", "feature": "f", "reqnodes": "n", "exc_nodes": "x", "oversubscribe": "h", "reservation": "v", "wckey": "w", "nice": "y", "command": "o"}

// lettersOf turns "JobID:8,State:.10" into a format with letters: "%8A%.10T". A field without a number gets 20 columns.
func lettersOf(list string) (format string, err error) {
	for field := range strings.SplitSeq(list, ",") {
		name, width, _ := strings.Cut(field, ":")
		letter := queueNames[strings.ToLower(name)]
		if letter == "" || strings.Trim(width, ".0123456789") != "" {
			return "", fmt.Errorf("Invalid job format specification: %s", field)
		}
		if width == "" || width == "." {
			width += "20"
		}
		format += "%" + width + letter
	}
	return format, nil
}

// The method unknown returns an error that says, in Slurm's words, that the job does not exist. It returns nil if the
// job ended recently, because Slurm still knows such a job.
func (c *call) unknown(ctx context.Context, s *cli.Session, t target) error {
	reply, err := ask[job.JobsReply](ctx, s, messages.VerbJobs, job.JobsRequest{Jobs: []messages.JobID{t.job}, Limit: 1})
	if err != nil || len(reply.Jobs) > 0 && reply.Jobs[0].Ended > messages.TimeOf(c.Now().Add(-recently)) {
		return err
	}
	return fmt.Errorf("slurm_load_jobs error: Invalid job id specified")
}

// usersOf replaces users on the command line by accounts of Candor. The argument `self` is the caller's account; it
// replaces the name of this process's user.
func usersOf(names []string, self messages.Name) (accounts []string) {
	for _, name := range names {
		if name == localUser() {
			name = self
		}
		accounts = append(accounts, name)
	}
	return accounts
}

func letterOf(format string) (found string) {
	columns := strings.Split(format, "%")
	for _, part := range columns[1:] {
		part = strings.TrimLeft(part, ".0123456789")
		if part != "" {
			found += part[:1]
		}
	}
	return found
}

// The function `apart` returns rows in which each waiting element of an array has its own row.
func apart(rows []row) (out []row) {
	for _, r := range rows {
		if !strings.HasPrefix(r.index, "[") {
			out = append(out, r)
			continue
		}
		for _, i := range r.parts {
			r.index = strconv.FormatInt(i, 10)
			out = append(out, r)
		}
	}
	return out
}
