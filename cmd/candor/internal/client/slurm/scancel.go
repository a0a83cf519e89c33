package slurm

//lint:file-ignore ST1005 errors are in the words of Slurm's commands, which programs look for

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// endings are the signals that scancel sends to end a job. Candor ends jobs in one way:
// SIGTERM, and SIGKILL after a grace.
var endings = []string{"", "TERM", "KILL", "INT", "15", "9", "2", "SIGTERM", "SIGKILL", "SIGINT"}

// scancel cancels jobs, and elements of arrays.
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
	c.ignore([]string{"clusters/M", "cluster", "qos/q", "reservation/R"}, []string{"batch/b", "full/f", "interactive/i", "verbose/v", "ctld", "hurry/H"})
	words, done, err := c.parse(args)
	if done || err != nil {
		return err
	}
	if !slices.Contains(endings, strings.ToUpper(*sig)) {
		return fmt.Errorf("signal %s: Candor sends no signals to jobs but those that end them", *sig)
	}
	q := query{names: *name, markets: *markets, projects: *projects, active: true}
	var bad string
	if *wanted != "" {
		if q.states, bad = named(*wanted); bad != "" {
			return fmt.Errorf("Invalid job state specified: %s", bad)
		}
	}
	if q.targets, err = targets(words...); err != nil {
		return err
	}
	if i := slices.IndexFunc(words, func(w string) bool { return strings.Trim(w, ", ") == "" || strings.Contains(w, ".") }); i >= 0 {
		return fmt.Errorf("Invalid job id specified: %q: name a job, or elements of an array; jobs have no steps", words[i])
	}
	filtered := q.names != nil || q.markets != nil || q.projects != nil || q.states != nil || *users != nil || *me
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
	list := q.targets
	if filtered {
		rows, err := q.list(ctx, c, s)
		if err != nil {
			return err
		}
		list = nil
		for _, r := range rows {
			list = append(list, target{job: r.Job})
		}
	}
	var failed error
	for _, t := range list {
		err := cancel(ctx, s, t)
		if messages.KindOf(err) == messages.Ended { // as under Slurm
			err = nil
		}
		if failed == nil {
			failed = err
		}
		if err != nil && !*quiet {
			c.Tell(fmt.Sprintf("scancel: error: Kill job error on job id %v: %s", t.job, messages.AsError("", err).Message))
		}
	}
	if failed != nil {
		return status(1)
	}
	return nil
}

// cancel cancels a job, or some elements of it.
func cancel(ctx context.Context, s *cliSession, t target) error {
	r := messages.CancelRequest{Job: t.job}
	if t.indices != nil {
		detail, err := ask[messages.JobDetail](ctx, s, messages.VerbJob, messages.JobRequest{Job: t.job})
		if err != nil {
			return err
		}
		if len(detail.Array) == 0 {
			return messages.Errorf(messages.Invalid, "job %v is no array", t.job)
		}
		var indices messages.Array
		for _, i := range t.indices {
			indices = append(indices, messages.Range{First: i, Last: i, Step: 1})
		}
		if r.Tasks, err = detail.Array.Positions(indices); err != nil {
			return err
		}
		r.Stage = new(int)
	}
	_, err := ask[messages.CancelReply](ctx, s, messages.VerbCancel, r)
	return err
}
