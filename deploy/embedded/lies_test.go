package embedded

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// cancel cancels a job. bus.Call repeats a request whose answer was lost. The repeated request is then answered with
// the error that the job has ended. This error is accepted if the job was cancelled.
func (u user) cancel(id messages.JobID) {
	u.Helper()
	_, err := bus.Call[jobmsg.CancelReply](within(u.T), u.bus, messages.Subject(u.site, messages.Auctioneer, messages.VerbCancel, u.name), jobmsg.CancelRequest{Job: id})
	if err != nil && (messages.KindOf(err) != messages.Ended || u.job(id).State != jobmsg.Cancelled) {
		u.Fatalf("cancel of job %d: %v", id, err)
	}
}

// TestOverbiddingPaysWhatItDelays submits a short job while a long job runs on the only slot. The long job bids 2 a
// second. A second of delay costs the owner of the short job 1, but the job bids 2.1 and gets the slot. At pivot prices
// it must pay 2 for each second that it does not have to wait. At k-th prices it pays less, so the false bid gains.
func TestOverbiddingPaysWhatItDelays(t *testing.T) {
	for _, price := range []string{market.PricePivot, "kth"} {
		t.Run(price, func(t *testing.T) {
			t.Parallel()
			c := small(t.TempDir())
			c.Nodes = NodesAlike(1, Slots{{Class: "spot", Slots: 1}})
			c.Replicas = 1
			c.Markets = []market.Market{{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"spot"}, Price: price, Preemption: market.PreemptSuspend, Reserve: new(messages.Price(messages.Credit))}}
			if price == market.PricePivot {
				c.Markets[0].Horizon = 20 * unit
			}
			s := start(t, c)
			defer closeSite(t, s)
			alice, bob, dir := connect(t, s, "alice"), connect(t, s, "bob"), t.TempDir()
			bids := func(micros messages.Credits, script string) jobmsg.JobSpec {
				return job("spot", 1, script, func(s *jobmsg.JobSpec) { s.Rate = micros })
			}
			long := bob.submit("long", bids(2*messages.Credit, untilFile(filepath.Join(dir, "go"))))
			bob.running(long)
			short := alice.submit("short", bids(21*messages.Credit/10, "sleep 0.2"))
			alice.await("the short job has ended", func() bool { return alice.job(short).Ended != 0 || alice.job(short).State >= jobmsg.Settling })
			over := alice.job(short).Submitted.Add(2 * unit)
			alice.at(over)
			touch(t, filepath.Join(dir, "go"))
			last := bob.final(long).Ended
			j := alice.final(short)
			own := cost(messages.Credit, slotTime(j)) // what the slots cost at the reserve price
			// With a lower bid, the short job would have started after the long job, at least two seconds after its
			// submission. So it must pay for at least two seconds of waiting that it avoided.
			if least := own + 2*messages.Credit; price == market.PricePivot && (j.Charged < least || j.Charged > own+2*cost(messages.Credit, last.Sub(j.Submitted))) {
				t.Errorf("charged %v, of these %v at the reserve; the other job ended after %v: %s", j.Charged, own, last.Sub(j.Submitted).Std(), alice.why(short).Message)
			}
			if price == "kth" && j.Charged > 2*own {
				t.Errorf("charged %v for %v", j.Charged, slotTime(j))
			}
		})
	}
}

// TestLiesInAQueueOnALiveSite checks the payment to a waiting job in a batch queue. The amount must not depend on the
// announced value. It must be zero if the owner cancels before the job's turn.
func TestLiesInAQueueOnALiveSite(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Nodes = NodesAlike(1, Slots{{Class: "batch", Slots: 1}})
	c.Replicas = 1
	c.Markets = []market.Market{{Name: "batch", Mechanism: market.BatchQueue, Classes: []messages.Name{"batch"},
		PriorJobs: []market.QueuedType{{Value: 90 * messages.Credit, Delay: messages.Credit / 2, Length: 100 * unit}}}} // there is only one type, so the result does not depend on random draws
	s := start(t, c)
	defer closeSite(t, s)
	alice, bob, carol, dir := connect(t, s, "alice"), connect(t, s, "bob"), connect(t, s, "carol"), t.TempDir()
	round := func(name string, value messages.Credits, cancelled bool) messages.Credits {
		file := func(n int) string { return filepath.Join(dir, fmt.Sprint(name, n)) }
		queued := func(value messages.Credits, n int) jobmsg.JobSpec {
			return job("batch", 1, untilFile(file(n)), func(s *jobmsg.JobSpec) {
				s.Value, s.Delay, s.Length, s.Budget = value*messages.Credit, messages.Credit/10, 100*unit, 500*messages.Credit
			})
		}
		holder := bob.submit(name+" holder", queued(50, 0))
		bob.running(holder)
		before := [2]messages.Credits{alice.account().Balance, carol.account().Balance}
		front := carol.submit(name+" front", queued(80, 1))
		waits := alice.submit(name+" waits", queued(value, 2))
		alice.await("both wait", func() bool {
			return carol.why(front).Reason == "WaitingForSlots" && alice.why(waits).Reason == "WaitingForTurn"
		})
		touch(t, file(0))
		carol.running(front)
		if cancelled {
			alice.cancel(waits)
			alice.final(waits)
		}
		touch(t, file(1))
		touch(t, file(2))
		carol.final(front)
		a := alice.final(waits)
		if cancelled {
			if a.Charged != 0 || !strings.Contains(a.State.String(), "ancel") {
				t.Errorf("%s: the job that was cancelled is %v, charged %v", name, a.State, a.Charged)
			}
			await.Until(t, name+": the payment is given back", func() bool {
				return [2]messages.Credits{alice.account().Balance, carol.account().Balance} == before
			})
			return 0
		}
		return -a.Charged
	}
	honest, lying := round("honest", 20, false), round("lying", 400, false)
	if honest <= 0 || lying != honest {
		t.Errorf("the job that waits receives %v, and %v by announcing 400", honest, lying)
	}
	round("ghost", 1, true)
}

// TestFinishingLateByChoice runs a job under a contract. The job takes longer than declared, until the contract is
// worth nothing. It must still owe its price.
func TestFinishingLateByChoice(t *testing.T) {
	t.Parallel()
	s := bazaar(t)
	erin, frank, dir := connect(t, s, "erin"), connect(t, s, "frank"), t.TempDir()
	d := dear(t, s, untilFile(filepath.Join(dir, "go")), untilFile(filepath.Join(dir, "mine")), func(menu market.QuoteReply) market.QuotedContract {
		i := slices.IndexFunc(menu.Contracts, func(c market.QuotedContract) bool { return c.Declared }) // the contract that the market made for the job's declared deadline
		return menu.Contracts[max(0, i)]
	})
	for _, id := range d.others { // end the other jobs, so that only the job itself can be the cause of its delay
		frank.cancel(id)
	}
	erin.running(d.job)
	erin.at(erin.job(d.job).Submitted.Add(6 * unit)) // wait until the contract is worth nothing
	touch(t, filepath.Join(dir, "mine"))
	j := erin.final(d.job)
	// The job took longer than its declared length of one second. This delay is the job's own fault, so it does not
	// lower the charge. Compute the value at the time at which the job would have completed without the delay.
	due := max(d.contract.Completion, j.Ended.Add(unit-slotTime(j)))
	worth := max(0, min(1, 1-(due.Sub(j.Submitted).Seconds()-hasty(1).Mu)/hasty(1).Delta))
	if least := d.contract.Price.Float() * worth; j.Charged.Float() < least-1e-6 || j.State != jobmsg.Completed {
		t.Errorf("%v, charged %v of %v agreed, and %.6f at least: %s", j.State, j.Charged, d.contract.Price, least, erin.why(d.job).Message)
	}
}
