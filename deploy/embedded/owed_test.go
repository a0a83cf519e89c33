package embedded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// TestOwedForWhatWasHad uses the default rule: a job owes for the time in which it had a slot and other jobs waited for
// this slot. A job whose program exits with 1 must owe the same. So must a job that is cancelled when its results are
// there. On an idle site, a job must owe nothing.
func TestOwedForWhatWasHad(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Nodes = NodesAlike(1, Slots{{Class: "map", Slots: 1}})
	c.Replicas = 1
	c.Markets = []market.Market{{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"map"}}}
	s := start(t, c)
	defer closeSite(t, s)
	alice, bob := connect(t, s, "alice"), connect(t, s, "bob")
	dir := t.TempDir()
	one := func(script string, budget messages.Credits) jobmsg.JobSpec {
		return jobmsg.JobSpec{Name: "one", Budget: budget, Dir: dir,
			Stages: []jobmsg.Stage{{Name: "map", Class: "map", Tasks: 1, Attempts: 1, Script: script}}}
	}
	const budget = 40 * messages.Credit

	if job := alice.final(alice.submit("idle", one("sleep 0.2", budget))); job.Charged != 0 {
		t.Errorf("alone on the site a job is charged %v", job.Charged)
	}
	mine := []messages.JobID{alice.submit("mine", one("sleep 0.2", budget)), alice.submit("mine too", one("sleep 0.2", budget))}
	for _, id := range mine {
		if job := alice.final(id); job.Charged != 0 {
			t.Errorf("among jobs of its own account a job is charged %v", job.Charged)
		}
	}

	result := filepath.Join(dir, "result")
	there := func() bool { _, err := os.Stat(result); return err == nil }
	rivals := one(":", budget)
	rivals.Stages[0].Tasks = 100_000 // so many tasks that some always wait
	rival := bob.submit("rivals", rivals)
	for _, end := range []struct{ name, script string }{
		{"exits with 0", "exit 0"}, {"exits with 1", "exit 1"}, {"is cancelled", "sleep 600"},
	} {
		_ = os.Remove(result)
		id := alice.submit(end.name, one("sleep 1; touch result; "+end.script, budget))
		await.Until(t, "the result is there", there)
		if end.name == "is cancelled" {
			request[jobmsg.CancelReply](alice, messages.Auctioneer, messages.VerbCancel, jobmsg.CancelRequest{Job: id})
		}
		// The job has the slot for a second, and for half of this second another job wants the slot too. The full
		// charge is 20 credits. The charge is lower if the site notices late that others wait.
		if job := alice.final(id); job.Charged < 2*messages.Credit || job.Charged > budget/2+messages.Credit/1000 {
			t.Errorf("a job that %s is charged %v", end.name, job.Charged)
		}
	}
	request[jobmsg.CancelReply](bob, messages.Auctioneer, messages.VerbCancel, jobmsg.CancelRequest{Job: rival})
	bob.final(rival)
}

// Jobs with a minimum utility compete with other jobs for one slot, and not all can be served. A job that cannot reach
// its minimum must not get the slot. A job that has the slot must pay for it even if other jobs come later.
func TestMinimumMakesNoJobFree(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Nodes = NodesAlike(1, Slots{{Class: "map", Slots: 1}})
	c.Replicas = 1
	c.Markets = []market.Market{{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"map"}}}
	s := start(t, c)
	defer closeSite(t, s)
	alice, bob := connect(t, s, "alice"), connect(t, s, "bob")
	demanding := func(script string) jobmsg.JobSpec {
		spec := jobmsg.JobSpec{Name: "demanding", Budget: 40 * messages.Credit, Utility: &jobmsg.Utility{Weights: jobmsg.Weights{{Class: "map", Weight: 1}}, Minimum: 0.999},
			Stages: []jobmsg.Stage{{Name: "map", Class: "map", Tasks: 1, Script: script}}}
		return spec
	}
	rivals := func(key string) messages.JobID {
		return bob.submit(key, jobmsg.JobSpec{Name: "rivals", Budget: 40 * messages.Credit,
			Stages: []jobmsg.Stage{{Name: "map", Class: "map", Tasks: 100_000, Script: "true"}}})
	}
	end := func(id messages.JobID) {
		request[jobmsg.CancelReply](bob, messages.Auctioneer, messages.VerbCancel, jobmsg.CancelRequest{Job: id})
		bob.final(id)
	}
	dir := t.TempDir()
	first := alice.submit("first", demanding("sleep 2; "+untilFile(filepath.Join(dir, "go"))))
	alice.running(first)
	rival := rivals("one")
	alice.await("the others wait", func() bool { return bob.why(rival).Reason != "" })
	alice.at(alice.job(first).Started.Add(3 * unit))
	touch(t, filepath.Join(dir, "go"))
	if j := alice.final(first); j.Charged == 0 {
		t.Errorf("charged nothing while others waited: %s", alice.why(first).Message)
	}
	second := alice.submit("second", demanding("true"))
	done := bob.job(rival).Done
	alice.await("tasks of the others come and go", func() bool { return bob.job(rival).Done >= done+10 })
	if j := alice.job(second); j.Started != 0 {
		t.Errorf("a job below its minimum had a slot: %s", alice.why(second).Message)
	}
	end(rival)
	alice.final(second)
}

// TestSlotTimeIsSoldAndNotStarts runs two jobs of equal budgets, with tasks of 0.2 s and of 2 s. Each job must receive
// about half of the slot time. Both jobs must pay about the same price per second of slot time.
func TestSlotTimeIsSoldAndNotStarts(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Nodes = NodesAlike(1, Slots{{Class: "map", Slots: 8}})
	c.Replicas = 1
	c.Markets = []market.Market{{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"map"}}}
	s := start(t, c)
	defer closeSite(t, s)
	alice, bob := connect(t, s, "alice"), connect(t, s, "bob")
	tasks := func(script string) jobmsg.JobSpec {
		return jobmsg.JobSpec{Name: "tasks", Budget: 40 * messages.Credit, Stages: []jobmsg.Stage{{Name: "map", Class: "map", Tasks: 100_000, Script: script}}}
	}
	short, long := alice.submit("short", tasks("sleep 0.2")), bob.submit("long", tasks("sleep 2"))
	bob.at(alice.job(short).Submitted.Add(20 * unit))
	alice.cancel(short)
	bob.cancel(long)
	a, b := alice.final(short), bob.final(long)
	t.Logf("short tasks: %v for %v, long tasks: %v for %v", a.Charged, slotTime(a), b.Charged, slotTime(b))
	if part := slotTime(a).Seconds() / (slotTime(a) + slotTime(b)).Seconds(); part < 0.4 || part > 0.6 {
		t.Errorf("the short tasks received %.3f of the slot time", part)
	}
	if each := a.Charged.Float() / slotTime(a).Seconds() / (b.Charged.Float() / slotTime(b).Seconds()); each < 0.7 || each > 1.4 {
		t.Errorf("a second of slot time costs %.2f times as much in short tasks", each)
	}
}
