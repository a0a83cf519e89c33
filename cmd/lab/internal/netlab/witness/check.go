package witness

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// Check compares the site's answers with what this witness has recorded. It is called after a round. While Check runs,
// the site must run no job. An error means that the comparison was not possible.
func (w *Witness) Check(ctx context.Context) error {
	charged, err := w.checkJobs(ctx)
	if err == nil {
		err = w.checkMoney(ctx, charged)
	}
	if err != nil {
		return err
	}
	now := w.markets
	if len(w.Markets) > 0 {
		if now, err = w.readMarket(ctx, 0); err != nil {
			return err
		}
	}
	w.linearize()
	w.markets = now
	return nil
}

func closing(f *os.File, err error) error { return errors.Join(err, f.Close()) }

// statement calls a function for each entry of an account's statement that is new since the last check.
func (w *Witness) statement(ctx context.Context, name messages.Name, each func(*money.Entry)) error {
	for {
		reply, err := ask[money.StatementReply](ctx, w.buses[name], w.Patience, w.subject(messages.Bank, messages.VerbStatement, name),
			money.StatementRequest{After: w.read[name], Limit: 1000})
		if err != nil {
			return err
		}
		for i := range reply.Entries {
			w.read[name] = reply.Entries[i].Number
			each(&reply.Entries[i])
		}
		if !reply.More || len(reply.Entries) == 0 {
			return nil
		}
	}
}

// line is an entry that a statement must contain.
type line struct {
	account messages.Name
	reason  string
	change  messages.Credits
}

// checkMoney compares the accounts' statements and balances with the payments that clients made in a round, and with
// the charges of the jobs of this round.
func (w *Witness) checkMoney(ctx context.Context, charged map[messages.Name]map[messages.JobID]messages.Credits) error {
	want := map[line]int{}
	for _, p := range w.payments {
		want[line{p.to, p.key, p.amount}]++
		w.due[p.to] += p.amount
		if p.from != "" {
			want[line{p.from, p.key, -p.amount}]++
			w.due[p.from] -= p.amount
		}
	}
	for _, name := range w.accounts() {
		jobs := charged[name]
		for _, amount := range jobs {
			w.due[name] -= amount
		}
		if err := w.statement(ctx, name, func(e *money.Entry) {
			switch of := (line{name, e.Reason, e.Change}); {
			case e.Change == 0:
			case e.Job != 0:
				jobs[e.Job] += e.Change
			case want[of] > 0:
				want[of]--
			default:
				w.counts.Doubled++
				w.breaks("the statement of %s has an entry of %v, %q (%s), that was made twice or was not acknowledged", name, e.Change, e.Reason, e.Transfer)
			}
		}); err != nil {
			return err
		}
		for job, left := range jobs {
			if left != 0 {
				w.wrong(left, "the statement of %s and the charge of job %d differ by %v", name, job, left)
			}
		}
		if err := w.checkBalance(ctx, name); err != nil {
			return err
		}
	}
	for of, n := range want {
		if n > 0 {
			w.counts.Lost++
			w.breaks("a change was acknowledged, but is not in the statement of %s: %v, %q", of.account, of.change, of.reason)
		}
	}
	return nil
}

func (w *Witness) wrong(by messages.Credits, format string, arguments ...any) {
	w.counts.Wrong += max(by, -by)
	w.breaks(format, arguments...)
}

// checkBalance compares an account's balance with the record. If they differ, it changes the record to the real
// balance.
func (w *Witness) checkBalance(ctx context.Context, name messages.Name) error {
	account, err := w.account(ctx, name)
	if err != nil {
		return err
	}
	if off := account.Balance - w.due[name]; off != 0 || account.Reserved != 0 {
		w.wrong(off, "account %s has %v, but %v according to the acknowledged requests; %v is held, although every job has ended", name, account.Balance, w.due[name], account.Reserved)
		w.due[name] = account.Balance
	}
	return nil
}

// checkJobs compares the site's jobs with the submissions of this round that the site acknowledged. It returns the
// charges of the jobs.
func (w *Witness) checkJobs(ctx context.Context) (map[messages.Name]map[messages.JobID]messages.Credits, error) {
	ran, err := w.ran()
	if err != nil {
		return nil, err
	}
	jobs, err := w.allNewJobs(ctx)
	if err != nil {
		return nil, err
	}
	charged := map[messages.Name]map[messages.JobID]messages.Credits{}
	found := map[string][]messages.JobID{}
	for worker, of := range jobs {
		charged[worker] = map[messages.JobID]messages.Credits{}
		for i := range of {
			j := &of[i]
			found[j.Name] = append(found[j.Name], j.Job)
			charged[worker][j.Job] = j.Charged
			w.checkJob(j, ran[j.Name])
			w.listed[worker] = max(w.listed[worker], j.Job)
		}
	}
	for key, job := range w.jobs {
		switch {
		case len(found[key]) == 0:
			w.counts.Lost++
			w.breaks("job %d of %s was acknowledged, but does not exist", job, key)
		case len(found[key]) > 1:
			w.counts.Doubled++
			w.breaks("one submission, %s, became several jobs: %v", key, found[key])
		}
	}
	return charged, nil
}

func (w *Witness) checkJob(j *jobmsg.JobSummary, ran int) {
	job, acknowledged := w.jobs[j.Name]
	switch {
	case acknowledged && job != j.Job:
		w.counts.Doubled++
		w.breaks("submission %s was acknowledged as job %d, but is job %d", j.Name, job, j.Job)
	case j.State != jobmsg.Completed && j.State != jobmsg.Cancelled:
		w.counts.Lost++
		w.breaks("job %d was acknowledged, but did not complete: it is %v: %s %s", j.Job, j.State, j.Reason, j.Message)
	case j.State == jobmsg.Completed && ran == 0:
		w.counts.Lost++
		w.breaks("job %d has completed, but its task never ran", j.Job)
	case j.Charged > j.Budget || j.Charged < 0:
		w.wrong(j.Charged-j.Budget, "job %d was charged %v, which is not between 0 and its budget of %v", j.Job, j.Charged, j.Budget)
	}
	if ran > 1 {
		w.counts.RanTwice++
	}
}

// ran reads the file to which each task writes the key of its job when it runs. It returns, for each key, how often the
// task of the job has run.
func (w *Witness) ran() (map[string]int, error) {
	text, err := os.ReadFile(w.traces())
	times := map[string]int{}
	for key := range strings.FieldsSeq(string(text)) {
		times[key]++
	}
	return times, err
}

// allNewJobs asks for each worker's jobs since the last check. An answer can say that it may lack records. If one of
// the answers says so, and the answers have fewer jobs than the witness expects, allNewJobs asks again.
func (w *Witness) allNewJobs(ctx context.Context) (jobs map[messages.Name][]jobmsg.JobSummary, err error) {
	for begun := time.Now(); ; {
		jobs = map[messages.Name][]jobmsg.JobSummary{}
		whole, n := true, 0
		for _, worker := range w.Workers {
			all, err := w.newJobs(ctx, worker, &whole)
			if err != nil {
				return nil, err
			}
			jobs[worker], n = all, n+len(all)
		}
		if whole || n >= len(w.jobs) || time.Since(begun) > w.Patience {
			return jobs, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func (w *Witness) newJobs(ctx context.Context, worker messages.Name, whole *bool) (jobs []jobmsg.JobSummary, err error) {
	r := jobmsg.JobsRequest{Limit: 1000, Sort: "-job"}
	for {
		reply, err := ask[jobmsg.JobsReply](ctx, w.buses[worker], w.Patience, w.subject(messages.Auctioneer, messages.VerbJobs, worker), r)
		if err != nil {
			return nil, err
		}
		*whole = *whole && reply.Complete == 0 && reply.Unreadable == 0
		for _, j := range reply.Jobs {
			if j.Job <= w.listed[worker] { // the jobs from here on were already listed
				return jobs, nil
			}
			jobs, r.Before = append(jobs, j), j.Job
		}
		if !reply.More || len(reply.Jobs) == 0 {
			return jobs, nil
		}
	}
}
