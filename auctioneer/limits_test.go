package auctioneer

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/quota"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// ruled starts an auctioneer with limits, and a clock that the test moves.
func ruled(t *testing.T, rules quota.Rules) (*fixture, *atomic.Int64) {
	t.Helper()
	now := new(atomic.Int64)
	now.Store(1_800_000_000_000_000)
	f := startWith(t, func(c *Config) {
		c.Limits, c.Clock, c.Mono = rules, func() messages.Time { return messages.Time(now.Load()) }, func() messages.Duration { return 0 }
	})
	return f, now
}

func (f *fixture) limitedBy(limit string) float64 {
	f.t.Helper()
	var m dto.Metric
	if err := f.metrics.limited.WithLabelValues(limit).Write(&m); err != nil {
		f.t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// An account that exceeds its rate must be told when to try again, and the bank may hold nothing for the refused
// submissions. Other accounts, and repeated requests with a known key, must not be refused.
func TestFloodIsRefusedAndOthersAreNot(t *testing.T) {
	const burst, flood = 5, 200
	f, now := ruled(t, quota.Rules{PerSecond: 1, Burst: burst})
	var taken, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range flood {
		wg.Go(func() {
			switch _, err := call[job.SubmitReply](f, "mallory", messages.VerbSubmit, job.SubmitRequest{Key: fmt.Sprint(i), Spec: oneStage(1)}); messages.KindOf(err) {
			case messages.Exhausted:
				if !strings.Contains(err.Error(), "submit again at 2027-01-15T08:00:01.000000Z") {
					t.Errorf("it does not say when: %v", err)
				}
				refused.Add(1)
			default:
				if err != nil {
					t.Error(err)
				}
				taken.Add(1)
			}
		})
	}
	for i := range burst {
		f.submit("alice", fmt.Sprint(i), oneStage(1))
	}
	wg.Wait()
	if taken.Load() != burst || refused.Load() != flood-burst {
		t.Errorf("%d taken, %d refused", taken.Load(), refused.Load())
	}
	if n := f.limitedBy("rate"); n != flood-burst {
		t.Errorf("%v were counted", n)
	}
	f.bank.mu.Lock()
	if len(f.bank.holds) != 2*burst {
		t.Errorf("%d holds were made", len(f.bank.holds))
	}
	f.bank.mu.Unlock()
	if again := f.submit("alice", "0", oneStage(1)); again.Job == 0 {
		t.Error("a known key has no answer")
	}
	now.Add(1_000_000)
	f.submit("mallory", "later", oneStage(1))
	if _, err := call[job.SubmitReply](f, "mallory", messages.VerbSubmit, job.SubmitRequest{Key: "too soon", Spec: oneStage(1)}); messages.KindOf(err) != messages.Exhausted {
		t.Errorf("a second one within the second: %v", err)
	}
}

func TestPendingLimit(t *testing.T) {
	f, _ := ruled(t, quota.Rules{PendingJobs: 2})
	first := f.submit("alice", "1", oneStage(1)).Job
	f.submit("alice", "2", oneStage(1))
	if _, err := call[job.SubmitReply](f, "alice", messages.VerbSubmit, job.SubmitRequest{Key: "3", Spec: oneStage(1)}); messages.KindOf(err) != messages.Exhausted {
		t.Errorf("a third: %v", err)
	}
	f.submit("bob", "1", oneStage(1))
	must[job.CancelReply](f, "alice", messages.VerbCancel, job.CancelRequest{Job: first})
	await.Until(t, "room again", func() bool {
		_, err := call[job.SubmitReply](f, "alice", messages.VerbSubmit, job.SubmitRequest{Key: "3", Spec: oneStage(1)})
		return err == nil
	})
	if n := f.limitedBy("pending"); n == 0 {
		t.Error("not counted")
	}
}

// The deposit is charged only if the owner cancels the job within DepositWindow after its submission.
func TestDepositOfAJobThatIsTakenBack(t *testing.T) {
	f, now := ruled(t, quota.Rules{Deposit: messages.Credit / 2, DepositWindow: messages.Duration(60_000_000_000)})
	soon, late := f.submit("alice", "soon", oneStage(1)), f.submit("alice", "late", oneStage(1))
	if soon.Held != 10*messages.Credit+messages.Credit/2 {
		t.Errorf("held %v", soon.Held)
	}
	for _, c := range []struct {
		job  messages.JobID
		key  string
		want messages.Credits
	}{{soon.Job, "soon", messages.Credit / 2}, {late.Job, "late", 0}} {
		must[job.CancelReply](f, "alice", messages.VerbCancel, job.CancelRequest{Job: c.job})
		await.Until(t, c.key+" is settled", func() bool { _, ok := f.bank.charged("job/west/alice/" + c.key); return ok })
		if got, _ := f.bank.charged("job/west/alice/" + c.key); got != c.want {
			t.Errorf("%s was charged %v, want %v", c.key, got, c.want)
		}
		now.Add(60_000_000)
	}
}

// Many jobs for another site are submitted at the same time. The site must accept only as many as its limit of
// unfinished jobs allows.
func TestPendingLimitHoldsForDepartures(t *testing.T) {
	const most, tries = 2, 12
	f, _ := ruled(t, quota.Rules{PendingJobs: most})
	var waiting, refused atomic.Int64
	goOn := make(chan struct{})
	sub, err := f.net.Connect("$bank").Serve(bus.Service{Name: "peers", Version: "1.0.0", Concurrency: tries, Endpoints: []bus.Endpoint{
		{Name: "peers", Subject: messages.Subject("west", messages.Bank, clearing.VerbPeers, "*"), Handle: bus.Handle("peers",
			func(context.Context, messages.Name, messages.Empty) (clearing.PeersReply, error) {
				return clearing.PeersReply{Peers: []clearing.PeerReply{{Peer: "east"}}}, nil
			})},
		{Name: "account", Subject: messages.Subject("west", messages.Bank, messages.VerbAccount, "*"), Handle: bus.Handle("account",
			func(context.Context, messages.Name, money.AccountRequest) (money.AccountReply, error) {
				waiting.Add(1)
				<-goOn
				return money.AccountReply{Account: "alice", Available: 1000 * messages.Credit}, nil
			})}}})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Stop()
	var wg sync.WaitGroup
	for i := range tries {
		wg.Go(func() {
			_, err := call[job.SubmitReply](f, "alice", messages.VerbSubmit, job.SubmitRequest{Key: fmt.Sprint(i), Site: "east", Spec: oneStage(1)})
			if messages.KindOf(err) == messages.Exhausted {
				refused.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	await.Until(t, "each is refused or on its way", func() bool { return waiting.Load()+refused.Load() == tries })
	close(goOn)
	wg.Wait()
	f.replica.read(func(b *book.Book) {
		if n := b.Pending("alice"); n != most {
			t.Errorf("%d jobs are pending, of at most %d", n, most)
		}
	})
}

// A job has no budget. The assumed budget must pay for its slot for an hour.
func TestAJobThatSaysNothingOfMoneyIsTaken(t *testing.T) {
	f := start(t)
	spec := oneStage(1)
	spec.Budget = 0
	taken := must[job.SubmitReply](f, "alice", messages.VerbSubmit, job.SubmitRequest{Key: "k", Spec: spec})
	if taken.Job == 0 || taken.Held != messages.Credit || len(taken.Warnings) != 1 || !strings.Contains(taken.Warnings[0], "names no budget, and may cost 1 credit") {
		t.Errorf("%+v", taken)
	}
}

// A job for another site has no budget. The error must say that the budget is missing, and not that 0 is too small.
func TestAJobForAnotherSiteWithoutABudget(t *testing.T) {
	f := start(t)
	spec := oneStage(1)
	spec.Budget = 0
	for _, site := range []messages.Name{"east", clearing.AnySite} {
		_, err := call[job.SubmitReply](f, "alice", messages.VerbSubmit, job.SubmitRequest{Key: "k", Site: site, Spec: spec})
		if messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), "budget: is missing") {
			t.Errorf("site %s: got %v", site, err)
		}
	}
}
