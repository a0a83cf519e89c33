package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// bazaar returns a site with a market of each kind. Each market has separate slots, so the scenarios can run at the
// same time.
func bazaar(t *testing.T) *Site { return bazaarWith(t, func(*Config) {}) }

func bazaarWith(t *testing.T, change func(*Config)) *Site {
	t.Helper()
	c := small(t.TempDir())
	c.Replicas = 1
	for _, name := range []messages.Name{"dan", "erin", "frank", "gail", "hank", "ida"} {
		c.Accounts = append(c.Accounts, Account{Name: name, Grant: 5000 * messages.Credit})
	}
	one := 1.0
	slots := func(counts ...any) (out Slots) {
		for i := 0; i < len(counts); i += 2 {
			out = append(out, jobmsg.ClassSlots{Class: counts[i].(string), Slots: counts[i+1].(int)})
		}
		return out
	}
	c.Nodes = []Node{
		{Name: "node1", Slots: slots("spot", 1, "due", 1, "batch", 1, "night", 1, "sold", 1, "main", 1)},
		{Name: "node2", Slots: slots("batch", 1, "posted", 2)},
	}
	c.Markets = []market.Market{
		{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"main"}, Settle: market.SettleOnCompletion},
		{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"spot"}, Reserve: new(messages.Price(messages.Credit))},
		{Name: "due", Mechanism: market.DeadlineBid, Classes: []messages.Name{"due"}, Slot: unit, Lambda: &one, Scale: 2},
		{Name: "batch", Mechanism: market.BatchQueue, Classes: []messages.Name{"batch"},
			PriorJobs: []market.QueuedType{{Value: 90 * messages.Credit, Delay: messages.Credit / 2, Length: 100e9}}},
		{Name: "night", Mechanism: market.Reservation, Classes: []messages.Name{"night"}, Cycle: night, Granule: granule},
		{Name: "sold", Mechanism: market.ContractMenu, Classes: []messages.Name{"sold"}, Quote: 3 * unit,
			Prior: []jobmsg.Valuation{hasty(90), hasty(15), steady}},
		{Name: "posted", Mechanism: market.Backfill, Classes: []messages.Name{"posted"}, Reserve: new(messages.Price(messages.Credit))},
	}
	change(&c)
	s := start(t, c)
	t.Cleanup(func() { closeSite(t, s) })
	return s
}

const (
	unit    = messages.Duration(time.Second)
	night   = messages.Duration(5 * time.Second)
	granule = messages.Duration(250 * time.Millisecond)
)

func job(market messages.Name, tasks int, script string, change func(*jobmsg.JobSpec)) jobmsg.JobSpec {
	spec := jobmsg.JobSpec{Name: market, Market: market, Budget: 100 * messages.Credit,
		Stages: []jobmsg.Stage{{Name: "main", Class: market, Tasks: tasks, Script: script, Attempts: 3}}}
	change(&spec)
	return spec
}

func untilFile(path string) string {
	return fmt.Sprintf("while [ ! -e %s ]; do sleep 0.02; done\n", path)
}

func touch(t testing.TB, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (u user) await(what string, holds func() bool) {
	u.Helper()
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	ctx := within(u.T)
	for !holds() {
		select {
		case <-every.C:
		case <-ctx.Done():
			u.Fatalf("never: %s", what)
		}
	}
}

func (u user) job(id messages.JobID) jobmsg.JobDetail {
	u.Helper()
	return request[jobmsg.JobDetail](u, messages.Auctioneer, messages.VerbJob, jobmsg.JobRequest{Job: id})
}

func (u user) why(id messages.JobID) market.WhyReply {
	u.Helper()
	return request[market.WhyReply](u, messages.Auctioneer, messages.VerbWhy, jobmsg.JobRequest{Job: id})
}

// bids submits a job. It returns the error if the site refuses the job because it comes too late or is invalid. Any
// other error ends the test.
func (u user) bids(key string, spec jobmsg.JobSpec) (messages.JobID, error) {
	u.Helper()
	reply, err := bus.Call[jobmsg.SubmitReply](within(u.T), u.bus, messages.Subject(u.site, messages.Auctioneer, messages.VerbSubmit, u.name), jobmsg.SubmitRequest{Key: key, Spec: spec})
	if kind := messages.KindOf(err); err != nil && kind != messages.Expired && kind != messages.Invalid {
		u.Fatal(err)
	}
	return reply.Job, err
}

func (u user) running(id messages.JobID) {
	u.Helper()
	u.await(fmt.Sprintf("job %d runs", id), func() bool { return u.job(id).State == jobmsg.Running })
}

// This method waits until the given time.
func (u user) at(instant messages.Time) {
	u.Helper()
	u.await("the instant comes", func() bool { return messages.TimeOf(time.Now()) >= instant })
}

func balances(t *testing.T, s *Site, names ...messages.Name) (sum messages.Credits) {
	t.Helper()
	for _, n := range names {
		sum += connect(t, s, n).account().Balance
	}
	return sum
}

// slotTime returns how long a job's tasks had slots.
func slotTime(j jobmsg.JobDetail) (d messages.Duration) {
	for _, s := range j.Stages {
		d += s.SlotTime
	}
	return d
}

// cost returns the price of slot time, rounded half to even as in the book.
func cost(price messages.Credits, d messages.Duration) messages.Credits {
	c, _ := messages.RoundCredits(price.Float() * d.Seconds())
	return c
}

// TestMarkets runs a scenario with a known outcome in each market, with real processes.
func TestMarkets(t *testing.T) {
	t.Parallel()
	s := bazaar(t)
	for name, play := range map[string]func(*testing.T, *Site){
		"spot": playSpot, "deadline": playDeadline, "batch queue": playBatchQueue, "reservation": playReservation,
		"proportional with a minimum": playMinimum, "backfill": playBackfill,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, s)
		})
	}
}

// playSpot uses a market in which all winners pay one price (the k-th price). Bob bids more than Alice and takes her
// slot. Alice's process is suspended, and continues later. Each of the two users must pay the integral of the price
// over the time in which the user had the slot.
func playSpot(t *testing.T, s *Site) {
	alice, bob, dir := connect(t, s, "alice"), connect(t, s, "bob"), t.TempDir()
	steps := func(who string) int {
		data, _ := os.ReadFile(filepath.Join(dir, who))
		return len(data)
	}
	stepping := func(who string, rate messages.Credits) jobmsg.JobSpec {
		script := fmt.Sprintf("while [ ! -e %s/end-%s ]; do echo >> %[1]s/%[2]s; sleep 0.02; done\n", dir, who)
		return job("spot", 1, script, func(s *jobmsg.JobSpec) { s.Rate = rate * messages.Credit })
	}
	a := alice.submit("spot", stepping("alice", 2))
	alice.await("Alice's process works", func() bool { return steps("alice") > 2 })
	b := bob.submit("spot", stepping("bob", 5))
	bob.await("Bob's process works", func() bool { return steps("bob") > 2 })
	at := steps("alice")
	bob.await("Bob's process goes on", func() bool { return steps("bob") > 10 })
	if now := steps("alice"); now != at {
		t.Errorf("Alice's process went from step %d to %d while Bob had the slot", at, now)
	}
	if w := alice.why(a); w.Reason != "Outbid" || len(w.Change) == 0 {
		t.Errorf("why: %+v", w)
	}
	touch(t, filepath.Join(dir, "end-bob"))
	alice.await("Alice's process goes on", func() bool { return steps("alice") > at })
	touch(t, filepath.Join(dir, "end-alice"))
	aj, bj := alice.final(a), bob.final(b)
	if aj.Stages[0].Retried != 0 {
		t.Errorf("Alice's task was run %d times more", aj.Stages[0].Retried)
	}
	if want := cost(messages.Credit, slotTime(aj)); aj.Charged != want {
		t.Errorf("Alice was charged %v for %v at the reserve, want %v", aj.Charged, slotTime(aj), want)
	}
	if want := cost(2*messages.Credit, slotTime(bj)); bj.Charged != want {
		t.Errorf("Bob was charged %v for %v at Alice's bid of 2, want %v", bj.Charged, slotTime(bj), want)
	}
}

// playDeadline runs the example of Gu et al., section 4.2, on one slot. Each user has four numbers: arrival, deadline,
// length and value. The first user has 100, 104, 3 and 30. The second has 101, 104, 2 and 25. The third has 102, 108, 3
// and 33. The first two users must pay 22 each, and the third must pay nothing.
func playDeadline(t *testing.T, s *Site) {
	users := []user{connect(t, s, "alice"), connect(t, s, "bob"), connect(t, s, "carol")}
	for try := 0; !playUnits(t, s, users, fmt.Sprint("due", try)); try++ {
		if try == 9 {
			t.Fatal("the machine was too late for one of the units each time")
		}
	}
	_, err := bus.Call[jobmsg.SubmitReply](within(t), users[0].bus, messages.Subject(s.config.Site, messages.Auctioneer, messages.VerbSubmit, "alice"),
		jobmsg.SubmitRequest{Key: "late", Spec: job("due", 1, "true", func(s *jobmsg.JobSpec) {
			s.Length, s.Value, s.Deadline = 3*unit, 30*messages.Credit, messages.TimeOf(time.Now()).Add(-9*unit)
		})})
	if messages.KindOf(err) != messages.Expired {
		t.Errorf("a deadline in the past: %v", err)
	}
}

// playUnits runs the example once. It returns false if a job came or ended in a wrong unit because the machine was
// busy.
func playUnits(t *testing.T, s *Site, users []user, key string) bool {
	first := messages.TimeOf(time.Now())
	users[0].at(first + messages.Time(unit/1000) - first%messages.Time(unit/1000) + messages.Time(unit/10_000)) // wait until the beginning of a unit
	first = messages.TimeOf(time.Now())
	first += messages.Time(unit/1000) - first%messages.Time(unit/1000) // the next unit is unit 100
	bids := []struct {
		length, last, end int // in units: length, last unit before the deadline, unit in which the job ends
		value, owes       messages.Credits
	}{{3, 104, 102, 30, 22}, {2, 104, 104, 25, 22}, {3, 108, 107, 33, 0}}
	after := func(units int) messages.Time { return first.Add(messages.Duration(units) * unit) }
	var jobs []messages.JobID
	for i, b := range bids {
		users[i].at(after(i - 1).Add(unit / 10))
		id, err := users[i].bids(key, job("due", 1, fmt.Sprintf("sleep %.1f\n", float64(b.length)-0.6), func(s *jobmsg.JobSpec) {
			s.Length, s.Value, s.Deadline = messages.Duration(b.length)*unit, b.value*messages.Credit, after(b.last-99)
		}))
		if err != nil {
			break
		}
		jobs = append(jobs, id)
	}
	if len(jobs) < len(bids) {
		for i, id := range jobs {
			users[i].final(id)
		}
		return false
	}
	played, wrong := true, []string{}
	for i, b := range bids {
		j := users[i].final(jobs[i])
		played = played && j.Submitted >= after(i-1) && j.Submitted < after(i) && j.Started != 0 && j.Started.Add(slotTime(j)) <= after(b.end-99)
		if j.State != jobmsg.Completed || j.Charged != b.owes*messages.Credit {
			wrong = append(wrong, fmt.Sprintf("user %d: %v, charged %v, want %v: %s", i+1, j.State, j.Charged, b.owes*messages.Credit, users[i].why(jobs[i]).Message))
		}
	}
	if played && len(wrong) > 0 {
		t.Error(strings.Join(wrong, "\n"))
	}
	return played || len(wrong) == 0
}

// playBatchQueue runs gangs of two tasks on two nodes. If the value of the front job is less than the delay that it
// causes, the market must discard the job. The sum of the payments must be zero.
func playBatchQueue(t *testing.T, s *Site) {
	gail, hank, ida, dir := connect(t, s, "gail"), connect(t, s, "hank"), connect(t, s, "ida"), t.TempDir()
	before := balances(t, s, "gail", "hank", "ida")
	gang := func(file string, value messages.Credits, delay messages.Credits) jobmsg.JobSpec {
		return job("batch", 2, untilFile(filepath.Join(dir, file)), func(s *jobmsg.JobSpec) {
			s.Value, s.Delay, s.Length, s.Stages[0].Gang = value*messages.Credit, delay*messages.Credit/100, messages.Duration(100*time.Second), true
		})
	}
	first := gail.submit("batch", gang("go", 50, 10))
	gail.await("the gang runs", func() bool { return gail.job(first).Running == 2 && gail.job(first).State == jobmsg.Running })
	poor := hank.submit("batch", gang("go", 1, 10))
	rich := ida.submit("batch", gang("go", 80, 50))
	hank.await("both wait", func() bool {
		return hank.why(poor).Reason == "WaitingForSlots" && ida.why(rich).Reason == "WaitingForTurn"
	})
	touch(t, filepath.Join(dir, "go"))
	if p := hank.final(poor); p.State != jobmsg.Discarded || p.Reason != "Discarded" || len(hank.why(poor).Change) == 0 {
		t.Errorf("%+v", p.JobSummary)
	}
	if r := ida.final(rich); r.State != jobmsg.Completed {
		t.Errorf("%+v", r.JobSummary)
	}
	gail.final(first)
	if after := balances(t, s, "gail", "hank", "ida"); after != before {
		t.Errorf("the three had %v together and have %v", before, after)
	}
	if p, r := hank.job(poor), ida.job(rich); p.Charged <= 0 || p.Charged != -r.Charged {
		t.Errorf("Hank paid %v, Ida received %v", p.Charged, -r.Charged)
	}
}

// playReservation runs a night of twelve sealed bids for the whole machine. Each bid is for a number of granules, the
// time units of reservations, before a deadline. The winners and payments are compared with the best of all sets of
// bids.
func playReservation(t *testing.T, s *Site) {
	dan := connect(t, s, "dan")
	cycle := messages.Time(night / 1000)
	type bid struct {
		length, due int // in granules (units of time)
		value       messages.Credits
	}
	var begin messages.Time
	var bids []bid
	var jobs []messages.JobID
	for try, late := 0, true; late; try++ { // repeat if the machine was busy and a bid came after the night began
		for _, id := range jobs {
			dan.final(id)
		}
		begin = messages.TimeOf(time.Now())
		dan.at(begin + cycle - begin%cycle + cycle/50) // wait until the beginning of a cycle, so that all twelve bids are in it
		begin = messages.TimeOf(time.Now())
		begin += cycle - begin%cycle
		bids, jobs, late = nil, nil, false
		for i := range 12 {
			b := bid{1 + i*5%4, 6 + i*7%14, messages.Credits(1+i*11%17) * messages.Credit}
			bids = append(bids, b)
			id, err := dan.bids(fmt.Sprint("night ", try, " ", i), job("night", 1, "true", func(s *jobmsg.JobSpec) {
				s.Length, s.Value, s.Deadline = messages.Duration(b.length)*granule, b.value, begin.Add(messages.Duration(b.due)*granule)
			}))
			if late = err != nil; late {
				break
			}
			jobs = append(jobs, id)
			if late = dan.job(id).Submitted >= begin; late {
				break
			}
		}
	}
	// best returns the largest total value of a set of bids that can all complete by their deadlines. The bid with the
	// index `without` may not be in the set.
	best := func(without int) (most messages.Credits) {
		for set := range 1 << len(bids) {
			var in []bid
			value := messages.Credits(0)
			for i, b := range bids {
				if set&(1<<i) != 0 && i != without {
					in, value = append(in, b), value+b.value
				}
			}
			slices.SortFunc(in, func(a, b bid) int { return a.due - b.due })
			end, met := 0, true
			for _, b := range in {
				end += b.length
				met = met && end <= min(b.due, int(night/granule))
			}
			if met && value > most {
				most = value
			}
		}
		return most
	}
	total, won := best(-1), messages.Credits(0)
	dan.at(begin)
	var timetable market.ReservationsReply
	dan.await("the timetable is out", func() bool {
		timetable = request[market.ReservationsReply](dan, messages.Auctioneer, market.VerbReservations, market.ReservationsRequest{Market: "night"})
		return len(timetable.Reservations) > 0
	})
	for i, id := range jobs {
		j := dan.final(id)
		switch {
		case j.State == jobmsg.Completed:
			won += bids[i].value
			if want := best(i) - (total - bids[i].value); j.Charged != want {
				t.Errorf("bid %d pays %v, want %v", i, j.Charged, want)
			}
		case j.State != jobmsg.Discarded || j.Charged != 0 || j.Reason != "Outbid":
			t.Errorf("bid %d: %+v", i, j.JobSummary)
		}
	}
	if won != total {
		t.Errorf("the winners are worth %v, the best of all sets %v", won, total)
	}
	for _, r := range timetable.Reservations {
		if j := dan.job(r.Job); j.Started != 0 && j.Started < r.Start {
			t.Errorf("job %d started at %v, before its time, %v", r.Job, j.Started, r.Start)
		}
	}
}

// The test sells contracts on a new site. No jobs have ended there, so the site believes the declared lengths.
func TestContracts(t *testing.T) {
	t.Parallel()
	playContract(t, bazaar(t))
}

// playContract sells contracts while other jobs wait. A job that completes early delays these jobs, so early completion
// has a price. A job with the dearest contract that completes too late must owe nothing.
func playContract(t *testing.T, s *Site) {
	erin, file := connect(t, s, "erin"), filepath.Join(t.TempDir(), "go")
	d := dear(t, s, untilFile(file), untilFile(file), dearest)
	erin.await("the promise is told", func() bool { return strings.Contains(erin.why(d.job).Message, "promises") })
	erin.at(erin.job(d.job).Submitted.Add(6 * unit)) // wait until the contract is worth nothing
	touch(t, file)
	if j := erin.final(d.job); j.State != jobmsg.Completed || j.Charged != 0 {
		t.Errorf("charged %v of %v agreed: %s", j.Charged, d.contract.Price, erin.why(d.job).Message)
	}
	if w := erin.why(d.job); !strings.Contains(w.Message, "× 0 received") {
		t.Errorf("the arithmetic is not shown: %s", w.Message)
	}
}

// dearest returns the contract with the highest price.
func dearest(menu market.QuoteReply) market.QuotedContract {
	return slices.MaxFunc(menu.Contracts, func(a, b market.QuotedContract) int { return int(a.Price - b.Price) })
}

// dealt is a job of Erin under a contract, with the jobs of Frank that compete with it.
type dealt struct {
	job      messages.JobID
	contract market.QuotedContract
	others   []messages.JobID
}

// dear submits Frank's jobs with the script `others`, and then Erin's job with the script `own`. The function `which`
// chooses a contract from each menu. Erin's job has one of two types: a poorer type and a richer type. If Erin's job
// has the poorer type, a delay of Frank's jobs costs more than a delay of her job. If it has the richer type, a delay
// of Frank's jobs costs less. So in each case, an early completion of Erin's job has a price.
func dear(t *testing.T, s *Site, others, own string, which func(market.QuoteReply) market.QuotedContract) (d dealt) {
	erin, frank := connect(t, s, "erin"), connect(t, s, "frank")
	take := func(u user, key, script string, length messages.Duration, worth jobmsg.Valuation) (id messages.JobID) {
		tries := 0
		u.await("a contract is taken", func() bool { // the contract's time may have passed before the contract is taken
			tries++
			spec := job("sold", 1, script, func(s *jobmsg.JobSpec) { s.Length, s.Valuation = length, &worth })
			menu := request[market.QuoteReply](u, messages.Auctioneer, market.VerbQuote, market.QuoteRequest{Spec: spec})
			if d.contract = which(menu); len(menu.Contracts) == 0 || !slices.ContainsFunc(menu.Contracts, func(c market.QuotedContract) bool { return c.Free && c.Price == 0 }) {
				t.Fatalf("menu without a free contract: %+v", menu)
			}
			spec.Contract, spec.Budget = d.contract.ID, d.contract.Budget
			reply, err := bus.Call[jobmsg.SubmitReply](within(t), u.bus, messages.Subject(s.config.Site, messages.Auctioneer, messages.VerbSubmit, u.name),
				jobmsg.SubmitRequest{Key: fmt.Sprint(key, " ", tries), Spec: spec})
			if id = reply.Job; err != nil && messages.KindOf(err) != messages.Expired {
				t.Fatal(err)
			}
			return err == nil
		})
		return id
	}
	waiting := func(n int) {
		t.Helper()
		frank.await(fmt.Sprintf("the market knows that %d wait", n), func() bool {
			markets := request[market.MarketsReply](frank, messages.Auctioneer, messages.VerbMarkets, messages.Empty{}).Markets
			return markets[slices.IndexFunc(markets, func(m market.MarketStatus) bool { return m.Market.Name == "sold" })].Waiting == n
		})
	}
	var holders []messages.JobID
	for _, node := range s.config.Nodes {
		if !slices.ContainsFunc(node.Slots, func(c jobmsg.ClassSlots) bool { return c.Class == "sold" }) { // one job on each node of this class
			continue
		}
		i := len(holders)
		holders = append(holders, take(frank, fmt.Sprint("holder", i), "sleep 600\n", 100*unit, steady))
		frank.running(holders[i])
	}
	waiting(0)
	for i := range len(holders) + 2 {
		d.others = append(d.others, take(frank, fmt.Sprint("sold", i), others, unit, steady))
		waiting(i + 1)
	}
	for _, id := range holders {
		frank.cancel(id)
	}
	waiting(2)
	if d.job = take(erin, "sold", own, unit, hasty(95)); d.contract.Price == 0 {
		t.Fatalf("no price: %+v", d.contract)
	}
	return d
}

// A job with the valuation `hasty` is worth its value for one second, and nothing after 5.5 s. A job with the valuation
// `steady` loses almost nothing for minutes.
func hasty(worth float64) jobmsg.Valuation {
	return jobmsg.Valuation{Class: jobmsg.LinearDecay, Max: worth, Mu: 1, Delta: 4.5}
}

var steady = jobmsg.Valuation{Class: jobmsg.Sigmoidal, Max: 20, Mu: 100, Delta: 300}

// playMinimum submits a job with a minimum utility while another job has the only slot. A job that receives less than
// its minimum utility must owe nothing.
func playMinimum(t *testing.T, s *Site) {
	carol, dir := connect(t, s, "carol"), t.TempDir()
	file := filepath.Join(dir, "go")
	holder := carol.submit("holder", job("main", 1, untilFile(file), func(*jobmsg.JobSpec) {}))
	carol.running(holder)
	id := carol.submit("minimum", job("main", 2, "true\n", func(s *jobmsg.JobSpec) {
		s.Utility = &jobmsg.Utility{Weights: jobmsg.Weights{{Class: "main", Weight: 1}}, Minimum: 0.9}
	}))
	carol.at(carol.job(id).Submitted.Add(messages.Duration(time.Second)))
	touch(t, file)
	if j := carol.final(id); j.State != jobmsg.Completed || j.Charged != 0 {
		t.Errorf("%v, charged %v: %s", j.State, j.Charged, carol.why(id).Message)
	}
	if j := carol.final(holder); j.Charged != 100*messages.Credit {
		t.Errorf("the other was charged %v", j.Charged)
	}
}

// playBackfill runs a job of one slot before a gang of two that waits for both slots. The job ends before the second
// slot is free, and must cost the posted price.
func playBackfill(t *testing.T, s *Site) {
	frank, dir := connect(t, s, "frank"), t.TempDir()
	hour := messages.Duration(time.Hour)
	long := frank.submit("long", job("posted", 1, untilFile(filepath.Join(dir, "long")), func(s *jobmsg.JobSpec) { s.Length = hour }))
	frank.running(long)
	wide := frank.submit("wide", job("posted", 2, "true\n", func(s *jobmsg.JobSpec) { s.Length, s.Stages[0].Gang = hour, true }))
	short := frank.submit("short", job("posted", 1, "true\n", func(s *jobmsg.JobSpec) { s.Length = hour / 60 }))
	j := frank.final(short)
	if frank.job(wide).Running > 0 || j.Charged != cost(messages.Credit, slotTime(j)) {
		t.Errorf("the gang has %d tasks running; %v charged for %v", frank.job(wide).Running, j.Charged, slotTime(j))
	}
	touch(t, filepath.Join(dir, "long"))
	if w := frank.final(wide); w.State != jobmsg.Completed || w.Stages[0].Retried != 0 {
		t.Errorf("%+v", w)
	}
}

// TestMarketsAreAppliedAndNodesDrained adds a market with a name such as GPU.q to a running site. The first job of this
// market waits for a job of another market, and a project pays for it. Then the job's node is drained, and the job must
// run again on another node.
func TestMarketsAreAppliedAndNodesDrained(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Replicas = 1
	c.Nodes = NodesAlike(2, Slots{{Class: "cpu", Slots: 1}, {Class: "Spot.q", Slots: 1}})
	c.Accounts = append(c.Accounts, Account{Name: "Proj.1", Grant: 100 * messages.Credit, Members: []messages.Name{"alice"}})
	c.Markets = []market.Market{{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"cpu"}}}
	s := start(t, c)
	defer closeSite(t, s)
	alice, operator, dir := connect(t, s, "alice"), connect(t, s, "operator"), t.TempDir()
	first := alice.submit("first", job("main", 1, untilFile(filepath.Join(dir, "first")), func(s *jobmsg.JobSpec) { s.Stages[0].Class = "cpu" }))
	markets := append(slices.Clone(c.Markets), market.Market{Name: "GPU.q", Mechanism: market.HighestBid, Classes: []messages.Name{"Spot.q"}})
	applied := request[market.ApplyReply](operator, messages.Auctioneer, market.VerbApply, market.ApplyRequest{Markets: markets})
	if !slices.Equal(applied.Added, []messages.Name{"GPU.q"}) {
		t.Fatalf("%+v", applied)
	}
	alice.await("the site serves again", func() bool {
		r, err := bus.Call[market.MarketsReply](within(t), alice.bus, messages.Subject("west", messages.Auctioneer, messages.VerbMarkets, "alice"), messages.Empty{})
		return err == nil && len(r.Markets) == 2
	})
	second := alice.submit("second", job("GPU.q", 1, untilFile(filepath.Join(dir, "second")), func(s *jobmsg.JobSpec) {
		s.Rate, s.AfterOK, s.Project = 2*messages.Credit, []messages.JobID{first}, "Proj.1"
		s.Stages[0].Class = "Spot.q"
	}))
	alice.running(first)
	if w := alice.why(second); w.Reason != "WaitingForJobs" {
		t.Errorf("why: %+v", w)
	}
	touch(t, filepath.Join(dir, "first"))
	alice.running(second)
	tasks := request[jobmsg.TasksReply](alice, messages.Auctioneer, messages.VerbTasks, jobmsg.TasksRequest{Job: second})
	node := tasks.Tasks[0].Node
	request[market.DrainReply](operator, messages.Auctioneer, market.VerbDrain, market.DrainRequest{Node: node, Notice: new(messages.Duration(0))})
	alice.await("it runs on the other node", func() bool {
		r := request[jobmsg.TasksReply](alice, messages.Auctioneer, messages.VerbTasks, jobmsg.TasksRequest{Job: second})
		return len(r.Tasks) == 1 && r.Tasks[0].State == "Running" && r.Tasks[0].Node != node && r.Tasks[0].Attempt == 2
	})
	touch(t, filepath.Join(dir, "second"))
	if j := alice.final(second); j.State != jobmsg.Completed {
		t.Errorf("%+v", j.JobSummary)
	}
}
