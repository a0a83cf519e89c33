package trial

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// checkWork checks the jobs that a site acknowledged. Each must exist under its number and must have completed. A
// repeated submission must get the same number.
func (m *member) checkWork(ctx context.Context) error {
	if err := m.settle(ctx); err != nil {
		return err
	}
	jobs, err := m.jobs(ctx)
	if err != nil {
		return err
	}
	t, acks := m.trial, m.result.Acks
	t.log("all jobs have ended; asking for each that was acknowledged")
	lost, notDone := 0, 0
	key := map[messages.JobID]string{}
	for _, a := range acks {
		if other, twice := key[a.Job]; twice {
			t.breaks("job %d was acknowledged for two submissions, %s and %s", a.Job, a.Key, other)
		}
		key[a.Job] = a.Key
		switch job, ok := jobs[a.Job]; {
		case !ok:
			lost++
		case job.State != jobmsg.Completed || job.Done != job.Tasks:
			notDone++
		}
	}
	losses, err := m.load.Repeat(ctx, acks)
	if err != nil {
		return err
	}
	t.breaksEach(losses.Lost)
	of := "" // name of the site, if there are several sites
	if len(t.Lab.Sites) > 1 {
		of = " by " + m.Name
	}
	t.count("acknowledged"+of, len(acks))
	t.count("acknowledged and lost"+of, max(lost, len(losses.Lost)))
	t.count("acknowledged and not completed"+of, notDone)
	if lost > 0 || notDone > 0 {
		t.breaks("of %d acknowledged jobs, %d do not exist and %d have not completed", len(acks), lost, notDone)
	}
	return nil
}

// checkBooks verifies the books of a site, and compares their charges with the site's jobs.
func (m *member) checkBooks(ctx context.Context) error {
	if err := m.verify(ctx); err != nil {
		return err
	}
	return m.checkCharges(ctx)
}

// verify runs candor bank verify. This command applies all records of a site's books again, from the first one on.
func (m *member) verify(ctx context.Context) error {
	t := m.trial
	ctx, cancel := context.WithTimeout(ctx, verifyWithin)
	defer cancel()
	t.log("%s: carrying the books out again", m.Name)
	output, err := m.Candor(ctx, netlab.Operator, "bank", "verify", "--json", "--timeout", verifyWithin.String())
	if err != nil {
		t.breaks("the books of %s: %v", m.Name, err)
		return nil
	}
	var verified struct {
		Records uint64 `json:"records"`
		Holds   int    `json:"holds"`
		Rules   bool   `json:"rules"`
	}
	if err := json.Unmarshal(output, &verified); err != nil {
		return fmt.Errorf("candor bank verify of %s: %w: %s", m.Name, err, output)
	}
	t.count("records in the books of "+m.Name+", all carried out again", int(verified.Records))
	if verified.Holds != 0 || !verified.Rules {
		t.breaks("after all records of the books of %s were carried out again, %d holds are left, although every job has ended", m.Name, verified.Holds)
	}
	return nil
}

// checkCharges compares the amounts that accounts have spent with the charges of their jobs.
func (m *member) checkCharges(ctx context.Context) error {
	jobs, err := m.jobs(ctx)
	if err != nil {
		return err
	}
	charged := map[messages.Name]messages.Credits{}
	for _, j := range jobs {
		charged[j.Payer] += j.Charged
	}
	for _, user := range users {
		account, err := ask[money.AccountReply](ctx, m, messages.Bank, messages.VerbAccount, money.AccountRequest{Account: user})
		if err != nil {
			return err
		}
		if account.Spent != charged[user] || account.Balance != account.Granted-account.Spent || account.Reserved != 0 {
			m.trial.breaks("%s of %s spent %v according to the bank, but %v according to the jobs; balance %v of a grant of %v, %v held",
				user, m.Name, account.Spent, charged[user], account.Balance, account.Granted, account.Reserved)
		}
	}
	return nil
}
