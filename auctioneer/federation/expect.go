package federation

import (
	"fmt"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// Outlook is the state of a market from which an offer for a job is computed.
type Outlook struct {
	Site     messages.Name
	Market   *market.Market
	Now      messages.Time
	Prices   []market.ClassPrice
	Tariffs  []market.SlotTariff   // empty if the market has no tariffs
	Estimate *market.EstimateReply // nil if the estimator did not answer
	// Places has, for each stage, how many tasks could start now, each on one node. It is nil if that is unknown.
	Places []int
}

// Expect returns an offer for a job, from a market that sells no contracts. The fields that the job leaves out must
// have their defaults. The offer is an estimate, not a promise.
func Expect(spec *job.JobSpec, s *Outlook) clearing.Offer {
	o := clearing.Offer{Site: s.Site, Market: s.Market.Name, Mechanism: s.Market.Mechanism}
	basis := s.complete(spec, &o)
	price, rule := s.price(spec)
	o.Price = max(0, price)
	if spec.Budget > 0 && price > spec.Budget {
		o.Price = spec.Budget
		rule += fmt.Sprintf(", which would cost %s: more than the budget", price.Words())
	}
	o.Budget = max(o.Price, 1)
	o.Basis = fmt.Sprintf("%s%s, with %s; %s", s.widths(spec), basis, s.queue(spec), rule)
	o.Free = s.free(spec)
	o.SlotHour = s.slotHour(spec)
	for i := range spec.Stages {
		o.Width = max(o.Width, spec.Stages[i].Slots())
	}
	switch e := s.Estimate; {
	case s.room(spec):
		o.Start = s.Now
	case e != nil && e.Runs > 0:
		o.Start = s.Now.Add(e.Wait.Median)
	}
	return o
}

// widths says how many slots the tasks of a job take, or returns "" if each takes one slot.
func (s *Outlook) widths(spec *job.JobSpec) (text string) {
	for i := range spec.Stages {
		if st := &spec.Stages[i]; st.Slots() > 1 {
			text += fmt.Sprintf("each task of %s takes %d slots of %s; ", st.Name, st.Slots(), st.Class)
		}
	}
	return text
}

// slotHour returns the present price of an hour on the most expensive slot that the job needs. It is 0 if slots cost
// nothing, or the market has no price for time.
func (s *Outlook) slotHour(spec *job.JobSpec) (most messages.Credits) {
	if registry.Of(s.Market).Owes != mechanism.ForTime {
		return 0
	}
	for i := range spec.Stages {
		hourly, _ := messages.RoundCredits(3600 * s.rate(spec, spec.Stages[i].Class))
		most = max(most, hourly)
	}
	return most
}

// For each class of the job, free subtracts the number of waiting tasks from the number of idle slots. It returns the
// smallest result. It uses only numbers that the market discloses.
func (s *Outlook) free(spec *job.JobSpec) int {
	least := math.MaxInt
	for i := range spec.Stages {
		if p := s.class(spec.Stages[i].Class); p != nil {
			least = min(least, p.Idle-p.Pending)
		}
	}
	if least == math.MaxInt {
		return 0
	}
	return least
}

// complete sets the expected completion time of the offer, and explains it in a sentence.
func (s *Outlook) complete(spec *job.JobSpec, o *clearing.Offer) string {
	e := s.Estimate
	switch {
	case e != nil && e.Completion.Median > 0:
		wait := messages.Duration(0)
		if s.room(spec) {
			wait = e.Wait.Median
		}
		after := func(d messages.Duration) messages.Time { return s.Now.Add(max(0, d-wait)) }
		o.Completion, o.Low, o.High = after(e.Completion.Median), after(e.Completion.Low), after(e.Completion.High)
		if e.Source != "" {
			return "estimated (" + e.Source + ")"
		}
		return fmt.Sprintf("estimated from %.3g runs", e.Runs)
	case spec.Length > 0:
		o.Completion = s.Now.Add(spec.Length)
		return "the declared length, without any wait"
	}
	return "no estimate of the time"
}

// room reports whether the first tasks of a job would get a slot at once.
func (s *Outlook) room(spec *job.JobSpec) bool {
	need := map[messages.Name]int{}
	for i := range spec.Stages {
		st := &spec.Stages[i]
		if len(st.After) > 0 {
			continue
		}
		if need[st.Class] += st.TaskCount() * st.Slots(); s.Places != nil && s.Places[i] < st.TaskCount() {
			return false
		}
	}
	for class, slots := range need {
		p := s.class(class)
		if p == nil || p.Pending > 0 || p.Bidders > 0 || p.Idle < slots {
			return false
		}
	}
	return true
}

func (s *Outlook) class(name messages.Name) *market.ClassPrice {
	i := slices.IndexFunc(s.Prices, func(p market.ClassPrice) bool { return p.Class == name })
	if i < 0 {
		return nil
	}
	return &s.Prices[i]
}

// queue describes the present queue in the classes of the job.
func (s *Outlook) queue(spec *job.JobSpec) string {
	text := ""
	for i := range s.Prices {
		p := &s.Prices[i]
		if !slices.ContainsFunc(spec.Stages, func(st job.Stage) bool { return st.Class == p.Class }) {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%d of %d slots of %s idle", p.Idle, p.Slots, p.Class)
		if !p.Sealed {
			text += fmt.Sprintf(", %d wanted", p.Pending)
		}
	}
	if text == "" {
		return "no slots now"
	}
	return text
}

// price returns what the job would cost at present prices, and a clause that explains it.
func (s *Outlook) price(spec *job.JobSpec) (messages.Credits, string) {
	switch t := registry.Of(s.Market); t.Owes {
	case mechanism.ForTime:
		cost, known := s.slotCost(spec)
		switch {
		case !known:
			return spec.Budget, "the price is at most the budget, because the run time is not known"
		case slices.ContainsFunc(s.Tariffs, func(t market.SlotTariff) bool { return t.Sealed }):
			return cost, "the price is the job's slot time at its own bid, because present prices are sealed"
		}
		return cost, t.Rule
	case mechanism.UpToValue:
		return least(spec.Budget, spec.Value), t.Rule
	default:
		return spec.Budget, t.Rule
	}
}

// The function `least` returns the smaller of two bounds; 0 means no bound.
func least(a, b messages.Credits) messages.Credits {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// slotCost returns the cost of the job's tasks at the present tariffs, or false if their run times are not known.
func (s *Outlook) slotCost(spec *job.JobSpec) (messages.Credits, bool) {
	total := 0.0 // in credits
	for i := range spec.Stages {
		st := &spec.Stages[i]
		seconds := s.taskSeconds(spec, i)
		if seconds == 0 {
			return 0, false
		}
		total += float64(st.TaskCount()*st.Slots()) * seconds * s.rate(spec, st.Class)
	}
	return messages.Credits(math.Ceil(min(total, messages.MaxCredits.Float()) * float64(messages.Credit))), true
}

// taskSeconds returns the expected run time of a stage's task in seconds, or 0.
func (s *Outlook) taskSeconds(spec *job.JobSpec, stage int) float64 {
	if e := s.Estimate; e != nil && stage < len(e.Stages) && e.Stages[stage].Spread.Mean > 0 {
		return e.Stages[stage].Spread.Mean.Std().Seconds()
	}
	return spec.Length.Std().Seconds()
}

// rate returns what a second on a slot of a class costs the job, in credits.
func (s *Outlook) rate(spec *job.JobSpec, class messages.Name) float64 {
	i := slices.IndexFunc(s.Tariffs, func(t market.SlotTariff) bool { return t.Class == class })
	if i < 0 {
		return s.Market.ReservePrice().Float()
	}
	switch t := &s.Tariffs[i]; {
	case t.OwnBid, t.Sealed:
		return spec.Rate.Float()
	case t.Length > 0 && spec.Length > 0:
		return t.Price.Float() * float64(spec.Length) / float64(t.Length)
	default:
		return t.Price.Float()
	}
}
