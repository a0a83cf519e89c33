package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// For its price, a job counts as complete when its program has ended an attempt. TestARetryDoesNotUncompleteAJob runs a
// job that prints its result, ends, and then runs again. The second attempt misses the deadline. Another job prints its
// result and then only sleeps. Both jobs must owe the critical value for their slot time.
func TestARetryDoesNotUncompleteAJob(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Replicas = 1
	rounds := []string{"exit", "exit", "exit", "requeue", "requeue", "sleep"}
	var slots Slots
	c.Markets = nil
	for i := range rounds {
		name := fmt.Sprint("due", i)
		slots = append(slots, jobmsg.ClassSlots{Class: name, Slots: 1})
		c.Markets = append(c.Markets, market.Market{Name: name, Mechanism: market.DeadlineBid, Classes: []messages.Name{name}, Slot: unit})
	}
	c.Nodes = NodesAlike(1, slots)
	s := start(t, c)
	defer closeSite(t, s)
	for i, verb := range rounds {
		t.Run(fmt.Sprint(i, " ", verb), func(t *testing.T) { playRetry(t, s, fmt.Sprint("due", i), verb) })
	}
}

// playRetry runs the example once. alice's job gets a slot in its first unit of time, and keeps it even if its first
// attempt ends. bob's job competes with it, and gets no slot before its deadline.
func playRetry(t *testing.T, s *Site, market messages.Name, verb string) {
	alice, bob, once := connect(t, s, "alice"), connect(t, s, "bob"), filepath.Join(t.TempDir(), "once")
	deadline := messages.TimeOf(time.Now()).Add(5 * unit)
	due := func(value messages.Credits, script string) jobmsg.JobSpec {
		return job(market, 1, script, func(j *jobmsg.JobSpec) {
			j.Value, j.Length, j.Deadline = value*messages.Credit, 3*unit, deadline
		})
	}
	scripts := map[string]string{"exit": "[ -e %s ] && sleep 60; echo 42; touch %s; exit 1", "requeue": "echo 42; touch %[2]s; sleep 60", "sleep": "echo 42; touch %[2]s; sleep 60"}
	rival := bob.submit("rival "+market, due(12, "sleep 60"))
	id := alice.submit("late "+market, due(60, fmt.Sprintf(scripts[verb], once, once)))
	alice.await("it has its result", func() bool { _, err := os.Stat(once); return err == nil })
	if verb == "requeue" {
		request[jobmsg.RequeueReply](alice, messages.Auctioneer, jobmsg.VerbRequeue, jobmsg.RequeueRequest{Job: id})
	}
	j := alice.final(id)
	// The job pays what its slots were worth to the rival, which offers 12 for 3 units of time. The rival may have got
	// one of these units, or a part of it, before the job came. Then the rival needed only 2 more units, and each was
	// worth at most 12/2 to the rival. So the job pays at most 12/2 for each of its 3 units.
	const most = 3 * 12 / (3 - 1) * messages.Credit
	if j.State != jobmsg.Discarded || j.Charged <= 0 || j.Charged > most {
		t.Errorf("%v, charged %v: %s", j.State, j.Charged, alice.why(id).Message)
	}
	if r := bob.final(rival); r.State != jobmsg.Discarded || r.Charged != 0 {
		t.Errorf("the rival: %v, charged %v: %s", r.State, r.Charged, bob.why(rival).Message)
	}
}

// TestAContractIsPricedByTheFirstEnd runs a task that fails. The next attempt waits for a busy node until the contract
// is worth nothing. This wait must not lower the price.
func TestAContractIsPricedByTheFirstEnd(t *testing.T) {
	t.Parallel()
	s, dir := bazaarWith(t, func(c *Config) {
		for i := range c.Nodes {
			c.Nodes[i].Slots = Slots{{Class: "sold", Slots: 1}}
		}
		c.Markets = slices.DeleteFunc(c.Markets, func(m market.Market) bool { return m.Name != "sold" })
	}), t.TempDir()
	others, again, once := filepath.Join(dir, "others"), filepath.Join(dir, "again"), filepath.Join(dir, "once")
	erin := connect(t, s, "erin")
	d := dear(t, s, fmt.Sprintf("if mkdir %s; then\n%selse\n%sfi\n", filepath.Join(dir, "first"), untilFile(again), untilFile(others)),
		fmt.Sprintf("[ -e %s ] && exit 0\ntouch %s\nexit 1\n", once, once), dearest)
	touch(t, others)
	erin.await("the first attempt has ended", func() bool { _, err := os.Stat(once); return err == nil })
	const worthless = 6 // in seconds; from this time on, the contract is worth nothing
	erin.at(erin.job(d.job).Submitted.Add(worthless * unit))
	touch(t, again)
	j, why := erin.final(d.job), erin.why(d.job).Message
	at := regexp.MustCompile(`completed ([0-9.]+) s after submission, promised ([0-9.]+) s`).FindStringSubmatch(why)
	if j.State != jobmsg.Completed || at == nil {
		t.Fatalf("%v: %s", j.State, why)
	}
	completed, _ := strconv.ParseFloat(at[1], 64)
	promised, _ := strconv.ParseFloat(at[2], 64)
	if completed >= worthless || completed <= promised && j.Charged < d.contract.Price {
		t.Errorf("charged %v of %v agreed: %s", j.Charged, d.contract.Price, why)
	}
}
