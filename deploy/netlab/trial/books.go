package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/candor-grid/candor/deploy/netlab"
	"github.com/candor-grid/candor/deploy/netlab/load"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// settle waits until every job of a site has ended, and returns all of them.
func (t *trial) settle(ctx context.Context, s *netlab.Site, operator bus.Bus) (map[messages.JobID]messages.JobSummary, error) {
	ctx, cancel := context.WithTimeout(ctx, finishWithin)
	defer cancel()
	for {
		active, err := bus.Call[messages.JobsReply](ctx, operator, messages.Subject(s.Name, messages.Auctioneer, messages.VerbJobs, netlab.Operator),
			messages.JobsRequest{All: true, Active: true, Limit: 1})
		if err == nil && len(active.Jobs) == 0 {
			return load.Jobs(ctx, operator, s.Name, netlab.Operator)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("jobs of %s are still active, such as %+v: %w", s.Name, active.Jobs, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// checkWork holds a site to what it acknowledged: every job is there, under its
// number alone, has completed, and is the answer when the request is repeated.
func (t *trial) checkWork(ctx context.Context, s *netlab.Site, operator bus.Bus, l *load.Load, acks []load.Ack) error {
	jobs, err := t.settle(ctx, s, operator)
	if err != nil {
		return err
	}
	t.log("all jobs have ended; asking for each that was acknowledged")
	lost, notDone := 0, 0
	key := map[messages.JobID]string{}
	for _, a := range acks {
		if other, twice := key[a.Job]; twice {
			t.breaks("job %d was acknowledged for %s and for %s", a.Job, a.Key, other)
		}
		key[a.Job] = a.Key
		switch job, ok := jobs[a.Job]; {
		case !ok:
			lost++
		case job.State != messages.Completed || job.Done != job.Tasks:
			notDone++
		}
	}
	losses, err := l.Repeat(ctx, acks)
	if err != nil {
		return err
	}
	t.breaksEach(losses.Lost)
	t.count("acknowledged"+of(t, s), len(acks))
	t.count("acknowledged and lost"+of(t, s), max(lost, len(losses.Lost)))
	t.count("acknowledged and not completed"+of(t, s), notDone)
	if lost > 0 || notDone > 0 {
		t.breaks("of %d acknowledged jobs, %d are not there and %d have not completed", len(acks), lost, notDone)
	}
	return nil
}

// of names the site of a number, where there are several.
func of(t *trial, s *netlab.Site) string {
	if len(t.Lab.Sites) == 1 {
		return ""
	}
	return " by " + s.Name
}

// checkBooks has the books of a site verified, and compares what was charged with
// what the jobs say.
func (t *trial) checkBooks(ctx context.Context, s *netlab.Site, operator bus.Bus) error {
	if err := t.verify(ctx, s); err != nil {
		return err
	}
	return t.checkCharges(ctx, s, operator)
}

// verify has the books of a site carried out again from their first record, by the
// command that an operator has for it.
func (t *trial) verify(ctx context.Context, s *netlab.Site) error {
	ctx, cancel := context.WithTimeout(ctx, finishWithin)
	defer cancel()
	output, err := s.Candor(ctx, netlab.Operator, "bank", "verify", "--from-genesis", "--json", "--timeout", patience.String())
	if err != nil {
		t.breaks("the books of %s: %v", s.Name, err)
		return nil
	}
	var verified struct {
		Records uint64 `json:"records"`
		Holds   int    `json:"holds"`
		Rules   bool   `json:"rules"`
	}
	if err := json.Unmarshal(output, &verified); err != nil {
		return fmt.Errorf("candor bank verify of %s: %w: %s", s.Name, err, output)
	}
	t.count("records in the books of "+s.Name+", all carried out again", int(verified.Records))
	if verified.Holds != 0 || !verified.Rules {
		t.breaks("the books of %s, carried out again, have %d holds left where every job has ended", s.Name, verified.Holds)
	}
	return nil
}

// checkCharges compares what accounts have spent with what their jobs were charged.
func (t *trial) checkCharges(ctx context.Context, s *netlab.Site, operator bus.Bus) error {
	jobs, err := load.Jobs(ctx, operator, s.Name, netlab.Operator)
	if err != nil {
		return err
	}
	charged := map[messages.Name]messages.Credits{}
	for _, j := range jobs {
		charged[j.Payer] += j.Charged
	}
	for _, user := range users {
		account, err := bus.Call[messages.AccountReply](ctx, operator, messages.Subject(s.Name, messages.Bank, messages.VerbAccount, netlab.Operator),
			messages.AccountRequest{Account: user})
		if err != nil {
			return err
		}
		if account.Spent != charged[user] || account.Balance != account.Granted-account.Spent || account.Reserved != 0 {
			t.breaks("%s of %s spent %v by the bank's account and %v by the jobs; balance %v of %v, %v held",
				user, s.Name, account.Spent, charged[user], account.Balance, account.Granted, account.Reserved)
		}
	}
	return nil
}
