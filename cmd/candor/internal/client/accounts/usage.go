package accounts

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

func usageCommand(a *cli.App) *cobra.Command {
	o := usageOptions{by: []string{"account"}}
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "show what was used: hours of slots and GPUs, credits, jobs",
		Long: `Sum up the jobs that ended in a period: how many jobs ended and how, the hours
of their slots, processors and GPUs, the memory of their tasks in GiB times
hours, and what they were charged. Operators see the jobs of all users; other
users see their own jobs. The hours are shown even if the jobs cost nothing.

The time of every attempt counts, also of a failed attempt, unless the site
itself ended the attempt, for example to drain a node. A job's processors, GPUs
and memory count whether they were busy or not. If the site gives no size (unit)
for the slots of a class, no processors and GPUs are counted in the class, and
the memory of a task is the memory that it asks for.

--by groups the jobs by one or several of
  account     who pays: a user's own account, or a project
  project     the project that pays; none for jobs on a user's own account
  user        who submitted the job
  market, class
  label=NAME  the value of this label
A job that used several classes counts in each of them. Its charge is divided
among the classes in proportion to slot time.`,
		Example: `  candor usage --account operator --from 2026-01-01 --to 2026-02-01
  candor usage --by project,user --from 30d
  candor usage --by label=run --from 7d
  candor usage --by account,market,class --from 2026-01-01 --csv > usage.csv`,
		RunE: a.Online(func(ctx context.Context, s *cli.Session, _ []string) error { return usage(ctx, a, s, &o) }),
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.by, "by", o.by, "group the jobs by these `words`: account, project, user, market, class, label=NAME")
	f.StringVar(&o.from, "from", "30d", "jobs that ended from this `time` on: 2026-01-31, or how long ago, like 24h")
	f.StringVar(&o.to, "to", "", "jobs that ended before this `time`")
	f.BoolVar(&o.csv, "csv", false, "print a table of comma-separated values")
	return cmd
}

type usageOptions struct {
	by       []string
	from, to string
	csv      bool
}

// usageReport says who used how much between two times.
type usageReport struct {
	From    messages.Time `json:"from"`
	To      messages.Time `json:"to"`
	Account messages.Name `json:"account,omitempty"` // the user whose jobs these are; "" means all users
	By      []string      `json:"by"`
	Rows    []usageRow    `json:"rows"`
	All     usageRow      `json:"all"`
	// The site lists all jobs that ended at the time Complete or later. Unreadable is the number of damaged records.
	Complete   messages.Time `json:"complete_since,omitempty"`
	Unreadable int           `json:"unreadable,omitempty"`
}

// usageRow adds up the use of a group of jobs. Keys has the value of each grouping column, such as the account.
type usageRow struct {
	Keys      []string         `json:"keys,omitempty"`
	Jobs      int              `json:"jobs"`
	Completed int              `json:"completed"`
	Failed    int              `json:"failed"`
	Cancelled int              `json:"cancelled"`
	Discarded int              `json:"discarded"`
	SlotHours float64          `json:"slot_hours"`
	CPUHours  float64          `json:"cpu_hours"`
	GPUHours  float64          `json:"gpu_hours"`
	GiBHours  float64          `json:"memory_gib_hours"`
	Charged   messages.Credits `json:"charged"`
}

func usage(ctx context.Context, a *cli.App, s *cli.Session, o *usageOptions) (err error) {
	if o.csv && a.Flags.JSON {
		return cli.Usagef("--csv: cannot go with --json: choose one")
	}
	keys, err := usageKeys(o.by)
	if err != nil {
		return err
	}
	report := usageReport{By: o.by, Rows: []usageRow{}}
	if report.From, err = a.Instant("--from", o.from); err != nil {
		return err
	}
	if report.To, err = a.Instant("--to", o.to); err != nil {
		return err
	}
	report.To = cmp.Or(report.To, messages.TimeOf(a.Now()))
	if report.To <= report.From {
		return cli.Usagef("--to: must be a later time than --from")
	}
	sums := usageSums{keys: keys, rows: map[string]*usageRow{}}
	if err := endedJobs(ctx, s, &report, sums.add); err != nil {
		return err
	}
	report.Rows, report.All = sums.sorted(), sums.all
	if o.csv {
		return usageCSV(a, &report)
	}
	return a.Show(report, func(p *cli.Page) { writeUsage(p, &report) })
}

// endedJobs calls the function `each` for the jobs that ended in the period of the report. If the site allows it, these
// are the jobs of all users. Otherwise they are only the caller's jobs.
func endedJobs(ctx context.Context, s *cli.Session, report *usageReport, each func(*job.JobSummary)) error {
	r := job.JobsRequest{All: true, Since: report.From, Until: report.To, Limit: cli.MaxPage}
	for {
		reply, err := cli.Call[job.JobsReply](ctx, s, messages.Auctioneer, messages.VerbJobs, r)
		if r.All && r.After == "" && messages.KindOf(err) == messages.PermissionDenied {
			r.All, report.Account = false, s.Account
			continue
		}
		if err != nil {
			return err
		}
		for i := range reply.Jobs {
			if j := &reply.Jobs[i]; j.State.Final() && j.Ended >= report.From && j.Ended < report.To {
				each(j)
			}
		}
		report.Complete, report.Unreadable = reply.Complete, report.Unreadable+reply.Unreadable
		if !reply.More || reply.Next == "" {
			return nil
		}
		r.After = reply.Next
	}
}

// usageKey returns the value of one grouping column, such as the account of a job, or the class of the slots it used.
type usageKey func(*job.JobSummary, *job.ClassUse) string

func usageKeys(by []string) (keys []usageKey, err error) {
	for _, word := range by {
		name, label := strings.CutPrefix(word, "label=")
		switch {
		case label && job.CheckLabel(name, "") == nil:
			keys = append(keys, func(j *job.JobSummary, _ *job.ClassUse) string {
				value, _ := j.Labels.Get(name)
				return value
			})
		case usageWords[word] != nil:
			keys = append(keys, usageWords[word])
		default:
			return nil, cli.Usagef("--by %q: must be account, project, user, market, class or label=NAME", word)
		}
	}
	if len(keys) == 0 {
		return nil, cli.Usagef("--by: is empty; it must be account, project, user, market, class or label=NAME")
	}
	return keys, nil
}

var usageWords = map[string]usageKey{
	"account": func(j *job.JobSummary, _ *job.ClassUse) string { return j.Payer },
	"project": func(j *job.JobSummary, _ *job.ClassUse) string {
		if j.Payer == j.Account {
			return ""
		}
		return j.Payer
	},
	"user":   func(j *job.JobSummary, _ *job.ClassUse) string { return j.Account },
	"market": func(j *job.JobSummary, _ *job.ClassUse) string { return j.Market },
	"class":  func(_ *job.JobSummary, u *job.ClassUse) string { return u.Class },
}

type usageSums struct {
	keys []usageKey
	rows map[string]*usageRow
	all  usageRow
}

// add adds the use of a job to the rows and to the sum. It counts the job once in each of them.
func (s *usageSums) add(j *job.JobSummary) {
	used := j.Used
	if len(used) == 0 { // the job never had a slot
		used = []job.ClassUse{{}}
	}
	whole := 0.0
	for i := range used {
		whole += used[i].SlotHours
	}
	left, seen := j.Charged, map[*usageRow]bool{}
	for i := range used {
		part := left
		if i < len(used)-1 && whole > 0 {
			part = messages.Credits(float64(j.Charged) * used[i].SlotHours / whole)
		}
		left -= part
		row := s.row(j, &used[i])
		row.use(&used[i], part)
		s.all.use(&used[i], part)
		if !seen[row] {
			seen[row] = true
			row.end(j.State)
		}
	}
	s.all.end(j.State)
}

func (s *usageSums) row(j *job.JobSummary, u *job.ClassUse) *usageRow {
	var keys []string
	for _, k := range s.keys {
		keys = append(keys, k(j, u))
	}
	name := strings.Join(keys, "\x00")
	if s.rows[name] == nil {
		s.rows[name] = &usageRow{Keys: keys}
	}
	return s.rows[name]
}

func (r *usageRow) use(u *job.ClassUse, charged messages.Credits) {
	r.SlotHours, r.CPUHours, r.GPUHours, r.GiBHours, r.Charged = r.SlotHours+u.SlotHours, r.CPUHours+u.CPUHours, r.GPUHours+u.GPUHours, r.GiBHours+u.MemoryHours, r.Charged+charged
}

func (r *usageRow) end(state job.State) {
	r.Jobs++
	switch state {
	case job.Completed:
		r.Completed++
	case job.Failed:
		r.Failed++
	case job.Cancelled:
		r.Cancelled++
	default:
		r.Discarded++
	}
}

// sorted returns the rows; the row with the most slot time is first.
func (s *usageSums) sorted() []usageRow {
	rows := make([]usageRow, 0, len(s.rows))
	for _, r := range s.rows {
		rows = append(rows, *r)
	}
	slices.SortFunc(rows, func(x, y usageRow) int {
		return cmp.Or(cmp.Compare(y.SlotHours, x.SlotHours), slices.Compare(x.Keys, y.Keys))
	})
	return rows
}
