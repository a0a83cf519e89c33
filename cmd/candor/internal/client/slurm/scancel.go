package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobfile"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobs"
	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// endings are the signals that cancel a job, as under Slurm. Any other signal is only sent to the tasks.
var endings = []string{"", "KILL"}

func scancel(ctx context.Context, c *call, args []string) error {
	f := c.flags
	name := f.StringSliceP("name", "n", nil, "")
	f.StringSliceVar(name, "jobname", nil, "")
	users := f.StringSliceP("user", "u", nil, "")
	markets := f.StringSliceP("partition", "p", nil, "")
	projects := f.StringSliceP("account", "A", nil, "")
	wanted := f.StringP("state", "t", "", "")
	sig := f.StringP("signal", "s", "", "")
	me := f.Bool("me", false, "")
	quiet := f.BoolP("quiet", "Q", false, "")
	batch := f.BoolP("batch", "b", false, "")
	full := f.BoolP("full", "f", false, "")
	c.clusterFlags()
	qos := f.StringSliceP("qos", "q", nil, "")
	f.StringP("reservation", "R", "", "")
	nodes := f.StringP("nodelist", "w", "", "")
	asks := f.BoolP("interactive", "i", false, "")
	c.ignore(nil, []string{"verbose/v", "ctld", "hurry/H"})
	words, done, err := c.parse(args)
	if done || err != nil {
		return err
	}
	if c.name == "scancel" { // qdel reads no variables
		byName := "name"
		if f.Changed("jobname") { // --jobname is another name of the option --name
			byName = "jobname"
		}
		if err := c.inputs([][2]string{{"SCANCEL_ACCOUNT", "account"}, {"SCANCEL_BATCH", "batch"}, {"SCANCEL_FULL", "full"}, {"SCANCEL_INTERACTIVE", "interactive"}, {"SCANCEL_NAME", byName},
			{"SCANCEL_PARTITION", "partition"}, {"SCANCEL_QOS", "qos"}, {"SCANCEL_STATE", "state"}, {"SCANCEL_USER", "user"}}...); err != nil {
			return err
		}
	}
	switch {
	case f.Changed("reservation"):
		return errors.New("--reservation: the site does not know which jobs name a reservation: select jobs with --partition or --name")
	case *asks && !terminal.IsTerminal(c.In):
		return errors.New("--interactive asks at a terminal, and the input is no terminal: leave the option out to cancel without a question")
	}
	signal := agent.StreamRequest{SignalFirst: *batch, SignalRest: !*batch && !*full}
	if *sig != "" {
		if signal.Signal, err = jobmsg.ParseSignal(*sig); err != nil {
			return fmt.Errorf("Unknown job signal: %s", *sig)
		}
	}
	q := query{names: *name, markets: *markets, projects: *projects, qos: *qos, active: true}
	if q.on, err = nodesOf("nodelist", *nodes); err != nil {
		return err
	}
	q.tasks = q.on != nil
	if q.states, err = named(*wanted); err != nil {
		return err
	}
	if i := slices.IndexFunc(q.states, state.ended); i >= 0 {
		return fmt.Errorf("Invalid job state specified: %s; valid: PENDING, RUNNING, SUSPENDED", q.states[i].long)
	}
	if q.targets, err = targets(words...); err != nil {
		return err
	}
	notStep := func(w string) bool {
		_, step, dotted := strings.Cut(w, ".")
		_, err := strconv.ParseUint(step, 10, 32)
		return dotted && err != nil
	}
	for _, word := range words {
		if strings.Trim(word, ", ") == "" || slices.ContainsFunc(fields(word), notStep) {
			return fmt.Errorf("Invalid job id specified: %q: name a job, elements of an array, or a step by its number, as in 7, 7_[1-3] and 7.0", word)
		}
	}
	filtered := q.names != nil || q.markets != nil || q.projects != nil || q.states != nil || q.qos != nil || q.on != nil || *users != nil || *me
	if (filtered || *asks || *batch || *full) && slices.ContainsFunc(q.targets, func(t target) bool { return t.step != "" }) {
		return errors.New("options that choose jobs or processes cannot be used with a step: leave them out")
	}
	if !filtered && len(q.targets) == 0 {
		return errors.New("No job identification provided")
	}
	s, err := c.dial()
	if err != nil {
		return err
	}
	defer s.Bus.Close()
	if q.users = usersOf(*users, s.Account); *me {
		q.users = []string{s.Account}
	}
	list, err := known(ctx, s, q.targets)
	if err != nil {
		return err
	}
	var failed error
	if filtered || *asks {
		q.elements = q.states != nil || q.on != nil
		q.everybody = !*me && (*users != nil || q.on != nil || len(list) > 0)
		rows, err := q.list(ctx, s)
		if err != nil {
			return err
		}
		if q.on != nil { // elements that have ended are not on these nodes any more
			rows = slices.DeleteFunc(rows, func(r row) bool { return r.state.ended() })
		}
		if q.on != nil && q.users == nil && len(q.targets) == 0 { // to cancel jobs of other users, an operator must name their accounts
			var others []messages.Name
			rows = slices.DeleteFunc(rows, func(r row) bool {
				other := r.Account != s.Account
				if other && !slices.Contains(others, r.Account) {
					others = append(others, r.Account)
				}
				return other
			})
			if others != nil && !*quiet {
				c.Tell(fmt.Sprintf("scancel: the jobs of %s on %s go on: name these accounts with --user to cancel their jobs", strings.Join(others, ","), *nodes))
			}
		}
		if list = q.chosen(rows); *asks {
			if list, err = c.agreed(list, rows); err != nil {
				return err
			}
		}
		missing, err := q.missing(ctx, s, rows)
		if err != nil {
			return err
		}
		for _, t := range missing {
			failed = errors.New("Invalid job id specified")
			if !*quiet {
				c.Tell(fmt.Sprintf("scancel: error: Kill job error on job id %v: %v", t.job, failed))
			}
		}
	}
	for _, t := range list {
		var err error
		switch {
		case t.step != "":
			err = c.cancelStep(ctx, s, t, signal.Signal)
		case slices.Contains(endings, signal.Signal):
			err = cancel(ctx, s, t)
		default:
			err = send(ctx, s, t, signal)
		}
		if messages.KindOf(err) == messages.Ended { // Slurm reports no error for a job that has ended
			err = nil
		}
		if messages.KindOf(err) == messages.Unknown && t.job.String() == c.Getenv("CANDOR_JOB") {
			err = nil // scancel ends its own job, and so may get no answer
		}
		if failed == nil {
			failed = err
		}
		if err != nil && !*quiet {
			c.Tell(fmt.Sprintf("scancel: error: Kill job error on job id %v: %s", t.job, messages.Detail(err)))
		}
	}
	if failed != nil {
		return status(1)
	}
	return nil
}

// agreed asks the user, for each target, whether to cancel it. It returns the targets for which the user answers yes.
// The argument `rows` has the jobs of the targets.
func (c *call) agreed(list []target, rows []row) (all []target, err error) {
	answers := bufio.NewReader(c.Input())
	for _, t := range list {
		of := rows[slices.IndexFunc(rows, func(r row) bool { return r.Job == t.job })]
		id := t.job.String()
		if t.indices != nil {
			id += "_[" + ranges(t.indices) + "]"
		}
		fmt.Fprintf(c.Err, "Cancel job_id=%s name=%s partition=%s [y/n]? ", id, oneLine(of.Name), of.Market)
		answer, err := answers.ReadString('\n')
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(strings.ToLower(answer), "y") {
			all = append(all, t)
		}
	}
	return all, nil
}

// missing returns the targets that are no jobs, or no arrays although the user named elements. The argument `rows` has
// the rows of the query.
func (q *query) missing(ctx context.Context, s *cli.Session, rows []row) (missing []target, err error) {
	r := jobmsg.JobsRequest{All: true, Limit: cli.MaxPage}
	for _, t := range q.targets {
		if !slices.ContainsFunc(rows, func(r row) bool { return t.job == r.Job || t.job == r.array }) {
			missing, r.Jobs = append(missing, t), append(r.Jobs, t.job)
		}
	}
	if missing == nil {
		return nil, nil
	}
	reply, err := cli.ListJobs(ctx, s, &r)
	return slices.DeleteFunc(missing, func(t target) bool {
		return reply.More || slices.ContainsFunc(reply.Jobs, func(j jobmsg.JobSummary) bool {
			_, _, element := jobfile.ElementOf(&j)
			return j.Job == t.job && (t.indices == nil || j.Array != nil || element)
		})
	}), err
}

func send(ctx context.Context, s *cli.Session, t target, signal agent.StreamRequest) error {
	running, err := runningOf(ctx, s, t)
	if err != nil {
		return err
	}
	n, err := jobs.SignalTasks(ctx, s, running, false, signal)
	if err == nil && n == 0 {
		err = messages.Errorf(messages.Conflict, "no task of the job runs")
	}
	return err
}

func runningOf(ctx context.Context, s *cli.Session, t target) (all []jobmsg.TaskStatus, err error) {
	for r := (jobmsg.TasksRequest{Job: t.job, Stage: new(int), States: []string{"Running"}, Limit: cli.MaxPage}); ; {
		reply, err := ask[jobmsg.TasksReply](ctx, s, messages.VerbTasks, r)
		if err != nil {
			return nil, err
		}
		for _, task := range reply.Tasks {
			if task.State == "Running" && t.has(task.Array) {
				all = append(all, task)
			}
		}
		if r.From = reply.Next; !reply.More || r.From == 0 {
			return all, nil
		}
	}
}

// has reports whether an element with this index belongs to the target.
func (t *target) has(index int64) bool {
	_, is := slices.BinarySearch(t.indices, index)
	return is || t.indices == nil
}

func (t *target) positions(job *jobmsg.JobDetail) (jobmsg.Array, error) {
	if len(job.Array) == 0 {
		return nil, messages.Errorf(messages.Invalid, "job %v is no array", t.job)
	}
	var indices jobmsg.Array
	for _, i := range t.indices {
		indices = indices.With(i)
	}
	return job.Array.Positions(indices)
}

// cancel cancels a job, or elements of an array. Each request names as many elements as one request may name.
func cancel(ctx context.Context, s *cli.Session, t target) error {
	r := jobmsg.CancelRequest{Job: t.job}
	if t.indices == nil {
		_, err := ask[jobmsg.CancelReply](ctx, s, messages.VerbCancel, r)
		return err
	}
	detail, err := ask[jobmsg.JobDetail](ctx, s, messages.VerbJob, jobmsg.JobRequest{Job: t.job})
	if err != nil {
		return err
	}
	positions, err := t.positions(&detail)
	if err != nil {
		return err
	}
	r.Stage = new(int)
	for r.Tasks = range slices.Chunk(positions, jobmsg.MaxRanges) {
		if _, failed := ask[jobmsg.CancelReply](ctx, s, messages.VerbCancel, r); err == nil {
			err = failed
		}
	}
	return err
}
