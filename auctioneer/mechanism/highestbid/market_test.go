package highestbid

import (
	"cmp"
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

const second = messages.Time(1_000_000)

// stepped drives a Market through a trace of whole seconds, as a simulator
// would: it knows when tasks end, the market does not.
type stepped struct {
	t       *rapid.T
	p       *Problem
	market  *Market
	ends    []messages.Time // by job, of those that run
	left    []messages.Time
	began   []messages.Time
	owed    []messages.Credits
	finish  []float64
	book    *book
	suspend int
}

// book is what a replica would have committed.
type book struct {
	tariffs []struct {
		at messages.Time
		mechanism.Tariff
	}
	ran [][][2]messages.Time // by job
}

func newStepped(t *rapid.T, p *Problem) *stepped {
	reserve, _ := messages.RoundCredits(p.Reserve)
	m, err := NewMarket(p.Rule, reserve, p.Nodes)
	if err != nil {
		t.Fatal(err)
	}
	n := len(p.Jobs)
	s := &stepped{t: t, p: p, market: m, ends: make([]messages.Time, n), left: make([]messages.Time, n), began: make([]messages.Time, n),
		owed: make([]messages.Credits, n), finish: make([]float64, n), book: &book{ran: make([][][2]messages.Time, n)}}
	for i, j := range p.Jobs {
		s.left[i] = messages.Time(j.Runtime) * second
	}
	return s
}

func (s *stepped) run() {
	arrivals := seq(len(s.p.Jobs))
	slices.SortStableFunc(arrivals, func(a, b int) int { return cmp.Compare(s.p.Jobs[a].Submit, s.p.Jobs[b].Submit) })
	for {
		now := messages.Time(math.MaxInt64)
		if len(arrivals) > 0 {
			now = messages.Time(s.p.Jobs[arrivals[0]].Submit) * second
		}
		for _, end := range s.ends {
			if end > 0 {
				now = min(now, end)
			}
		}
		if now == math.MaxInt64 {
			return
		}
		s.departures(now)
		for len(arrivals) > 0 && messages.Time(s.p.Jobs[arrivals[0]].Submit)*second == now {
			s.arrive(now, arrivals[0])
			arrivals = arrivals[1:]
		}
		s.decide(now)
	}
}

func (s *stepped) must(err error) {
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stepped) departures(now messages.Time) {
	for i, end := range s.ends {
		if end > 0 && end == now {
			owed, err := s.market.Finish(now, messages.JobID(i+1), 1)
			s.must(err)
			s.owed[i], s.finish[i], s.ends[i] = owed, float64(now)/1e6, 0
			s.book.ran[i] = append(s.book.ran[i], [2]messages.Time{s.began[i], now})
		}
	}
}

func (s *stepped) arrive(now messages.Time, i int) {
	job := s.p.Jobs[i]
	if job.Runtime == 0 { // wants nothing
		s.finish[i] = job.Submit
		return
	}
	rate, _ := messages.RoundCredits(job.Bid)
	s.must(s.market.Arrive(now, Offer{Job: messages.JobID(i + 1), Rate: rate, Slots: 1,
		Length: messages.Duration(job.length(s.p.Rule.Algorithm) * 1e9)}))
}

func (s *stepped) decide(now messages.Time) {
	changes, err := s.market.Decide(now)
	s.must(err)
	for _, c := range changes {
		i := int(c.Job) - 1
		if c.Has == 1 {
			s.began[i], s.ends[i] = now, now+s.left[i]
			continue
		}
		s.suspend++
		s.left[i], s.ends[i] = s.ends[i]-now, 0
		s.book.ran[i] = append(s.book.ran[i], [2]messages.Time{s.began[i], now})
	}
	s.book.tariffs = append(s.book.tariffs, struct {
		at messages.Time
		mechanism.Tariff
	}{now, s.market.Tariff()})
}

func seq(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// TestStepsAgainstTheWholeTrace, and each amount against the one worked out
// from the tariffs and times that a book would have committed.
func TestStepsAgainstTheWholeTrace(t *testing.T) {
	for range 10 {
		rapid.Check(t, func(t *rapid.T) {
			p := instances(t, 12)
			s, o := newStepped(t, p), mustRun(t, p)
			s.run()
			if s.suspend != o.Preemptions || !slices.Equal(s.finish, o.Finish) {
				t.Fatalf("steps finish at %v, the trace at %v: %+v", s.finish, o.Finish, p)
			}
			for i := range p.Jobs {
				if d := math.Abs(s.owed[i].Float() - o.Payment[i]); d > 1e-6+1e-12*o.Payment[i] {
					t.Fatalf("job %d owes %v by steps, %v by the trace: %+v", i, s.owed[i], o.Payment[i], p)
				}
				if want := s.committed(i); s.owed[i] != want {
					t.Fatalf("job %d owes %v by steps, %v by the book: %+v", i, s.owed[i], want, p)
				}
			}
		})
	}
}

// committed is what job i owes by the book, in rational numbers: each second's
// price from the tariff of the time.
func (s *stepped) committed(i int) messages.Credits {
	job := s.p.Jobs[i]
	bid := new(big.Rat).SetFloat64(job.Bid * 1e6)
	sum := new(big.Rat)
	for _, ran := range s.book.ran[i] {
		for k, t := range s.book.tariffs {
			until := messages.Time(math.MaxInt64)
			if k+1 < len(s.book.tariffs) {
				until = s.book.tariffs[k+1].at
			}
			span := min(until, ran[1]) - max(t.at, ran[0])
			if span > 0 {
				price := s.price(t.Tariff, bid, job)
				sum.Add(sum, price.Mul(price, big.NewRat(int64(span), 1e6)))
			}
		}
	}
	f, _ := sum.Float64()
	return messages.Credits(math.RoundToEven(f))
}

func (s *stepped) price(t mechanism.Tariff, bid *big.Rat, job Job) *big.Rat {
	price := new(big.Rat).SetFloat64(s.p.Reserve * 1e6)
	switch t.Basis {
	case mechanism.OwnBid:
		price.Set(bid)
	case mechanism.AtLevel:
		price.SetInt64(int64(t.Rate))
		if t.Length > 0 {
			price.Mul(price, big.NewRat(int64(job.length(s.p.Rule.Algorithm)*1e9), int64(t.Length)))
		}
		if s.p.Rule.Algorithm == NPHB && price.Cmp(bid) > 0 {
			price.Set(bid)
		}
	}
	if s.p.Rule.Capped && price.Cmp(bid) > 0 {
		price.Set(bid)
	}
	return price
}

// TestSlotsAreAsManyBidders: an offer of k slots fares as k offers of one slot
// that arrived one after the other.
func TestSlotsAreAsManyBidders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule, nodes := rules(t), rapid.IntRange(0, 6).Draw(t, "slots")
		wide, _ := NewMarket(rule, messages.Credit, nodes)
		narrow, _ := NewMarket(rule, messages.Credit, nodes)
		offers := map[messages.JobID]Offer{}
		for k := range messages.JobID(rapid.IntRange(1, 10).Draw(t, "offers")) {
			now := messages.Time(k) * second
			o := Offer{Job: k + 1, Rate: messages.Credits(rapid.IntRange(0, 4).Draw(t, "rate")) * messages.Credit,
				Length: messages.Duration(rapid.IntRange(1, 3).Draw(t, "length")) * 1e9, Slots: rapid.IntRange(1, 4).Draw(t, "width")}
			offers[o.Job] = o
			fail(t, wide.Arrive(now, o))
			for n := range o.Slots {
				one := o
				one.Job, one.Slots = o.Job*10+messages.JobID(n), 1
				fail(t, narrow.Arrive(now, one))
			}
			_, err := wide.Decide(now)
			fail(t, err)
			_, err = narrow.Decide(now)
			fail(t, err)
			for id, o := range offers {
				compareSlots(t, wide, narrow, now+second, id, o.Slots)
			}
		}
		if wide.Tariff() != narrow.Tariff() {
			t.Fatalf("tariffs %+v and %+v", wide.Tariff(), narrow.Tariff())
		}
	})
}

func fail(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func compareSlots(t *rapid.T, wide, narrow *Market, now messages.Time, id messages.JobID, slots int) {
	has, _ := wide.Slots(id)
	owed, err := wide.Owed(now, id)
	fail(t, err)
	sum := messages.Credits(0)
	for n := range slots {
		one := id*10 + messages.JobID(n)
		h, _ := narrow.Slots(one)
		has -= h
		o, err := narrow.Owed(now, one)
		fail(t, err)
		sum += o
	}
	if d := owed - sum; has != 0 || d < -messages.Credits(slots) || d > messages.Credits(slots) {
		t.Fatalf("job %d: %d slots more than one by one, owes %v and %v", id, has, owed, sum)
	}
}

func TestMarketRefusesAndChangesNothing(t *testing.T) {
	m, err := NewMarket(Rule{WSEPT, Kth, false}, messages.Credit, 1)
	if err != nil {
		t.Fatal(err)
	}
	good := Offer{Job: 1, Rate: 2 * messages.Credit, Length: 1e9, Slots: 1}
	if err := m.Arrive(10*second, good); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Decide(10 * second); err != nil {
		t.Fatal(err)
	}
	offer := func(now messages.Time, change func(*Offer)) error {
		o := good
		o.Job = 2
		change(&o)
		return m.Arrive(now, o)
	}
	for says, got := range map[string]error{
		"job 1: is in the market already": m.Arrive(10*second, good),
		"job 2: rate: must be":            offer(10*second, func(o *Offer) { o.Rate = -1 }),
		"job 2: rate: must be from":       offer(10*second, func(o *Offer) { o.Rate = MostRate + 1 }),
		"job 2: slots: must be":           offer(10*second, func(o *Offer) { o.Slots = 0 }),
		"job 2: length: must be above 0":  offer(10*second, func(o *Offer) { o.Length = 0 }),
		"time: ":                          offer(9*second, func(*Offer) {}),
		"slots: must be from 0":           m.Resize(10*second, -1),
		"job 3: is not in":                second1(m.Finish(10*second, 3, 1)),
		"job 4: is not in":                second1(m.Withdraw(10*second, 4)),
		"job 5: is not in":                second1(m.Owed(10*second, 5)),
		"2 cannot finish, it runs 1":      second1(m.Finish(10*second, 1, 2)),
		"is before":                       second1(m.Finish(9*second, 1, 1)),
	} {
		if got == nil || !strings.Contains(got.Error(), says) {
			t.Errorf("%v, want %q", got, says)
		}
	}
	if has, waits := m.Slots(1); has != 1 || waits != 0 {
		t.Errorf("job 1 has %d and waits for %d", has, waits)
	}
	if owed, err := m.Withdraw(13*second, 1); err != nil || owed != 3*messages.Credit {
		t.Errorf("owes %v, %v, want 3", owed, err)
	}
	if _, err := m.Owed(13*second, 1); !errors.Is(err, &messages.Error{Kind: messages.NotFound}) {
		t.Error(err)
	}
}

func second1(_ messages.Credits, err error) error { return err }

// TestMeterDoesNotMindHowTimeIsCut: looked at in between or not, a meter owes
// the same to the microcredit.
func TestMeterDoesNotMindHowTimeIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := rules(t)
		once, often := newMeter(rule, messages.Credit), newMeter(rule, messages.Credit)
		for id := range int32(5) {
			once.enter(id, messages.Credits(id)*1_234_567, messages.Duration(id)*777_777_777)
			often.enter(id, messages.Credits(id)*1_234_567, messages.Duration(id)*777_777_777)
		}
		now := messages.Time(0)
		for range rapid.IntRange(1, 20).Draw(t, "events") {
			now += messages.Time(rapid.IntRange(0, 5_000_000).Draw(t, "wait"))
			tariff := mechanism.Tariff{Basis: mechanism.Basis(rapid.IntRange(0, 2).Draw(t, "basis")),
				Rate:   messages.Credits(rapid.IntRange(0, 5_000_000).Draw(t, "rate")),
				Length: messages.Duration(rapid.IntRange(1, 1e9).Draw(t, "length"))}
			id, slots := int32(rapid.IntRange(1, 4).Draw(t, "job")), rapid.IntRange(0, 3).Draw(t, "slots")
			for _, m := range []*meter{once, often} {
				fail(t, m.advance(now))
				m.run(id, slots)
				m.set(tariff)
			}
			fail(t, often.advance(now+1)) // a look cuts the time
			often.owed(id)
			now++
		}
		fail(t, once.advance(now))
		fail(t, often.advance(now))
		for id := range int32(5) {
			a, b := once.owed(id), often.owed(id)
			if a != b {
				t.Fatalf("job %d owes %v and %v", id, a, b)
			}
		}
	})
}
