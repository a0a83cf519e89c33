package book

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// Effect is an action outside the book that follows from a commit, such as a payment. It must happen at least once, so
// it stays in the book until it is confirmed.
type Effect struct {
	ID   uint64
	Kind EffectKind
	Job  messages.JobID
	Legs []Leg  // the payments, for a Round
	Hold string // the hold, for a Release
}

func (e Effect) compare(o Effect) int { return cmp.Compare(e.ID, o.ID) }

// EffectKind says what the leader must do outside of the book, such as a charge at the bank.
type EffectKind uint8

// These are the kinds of effect.
const (
	Charge      EffectKind = iota // post the charge of the job against its hold, and free the rest of the hold
	Observe                       // write the job's observation to the estimator's stream
	Round                         // move credits between jobs' accounts, all or nothing
	RaiseBudget                   // replace the job's hold by a larger one, all or nothing
	Release                       // free the hold of a submission that was refused
	Refund                        // give back a part of the job's charge
)

// effects holds the effects that are not confirmed yet. It also makes the payments between jobs.
type effects struct {
	waiting sorted[Effect]         // ordered by ID
	spoken  map[messages.JobID]int // by job: number of waiting effects about this job
	frees   map[string]bool        // holds that a waiting Release will free
	last    uint64
	freed   uint64 // number of the last Release
	jobs    *jobs
	watch   *watch
}

func (s *effects) release(hold string) {
	if hold == "" || s.releasing(hold) {
		return
	}
	s.add(Effect{Kind: Release, Hold: hold})
	s.freed = s.last
}

func (s *effects) releasing(hold string) bool { return s.frees[hold] }

// crossed refuses a submission if its hold may no longer exist. The present try of the submission found the hold at the
// bank, made by an earlier try. If the earlier try was refused meanwhile, its refusal may have freed the hold. So the
// submission must be sent again.
func (s *effects) crossed(c *Submit) error {
	if c.Seen != 0 && c.Seen <= s.freed || s.releasing(c.Hold) {
		return messages.Errorf(messages.Unavailable, "an earlier try of this submission was refused; send the submission again")
	}
	return nil
}

func (s *effects) effect(kind EffectKind, job messages.JobID, legs ...Leg) {
	s.add(Effect{Kind: kind, Job: job, Legs: legs})
}

func (s *effects) add(e Effect) {
	s.last++
	e.ID = s.last
	s.enter(e)
}

// enter adds an effect that already has its number.
func (s *effects) enter(e Effect) {
	s.waiting.add(e)
	s.count(&e, 1)
	s.watch.touchEffects()
}

// count updates the counts for an effect. The argument `change` is 1 when the effect is added, and -1 when it is
// removed.
func (s *effects) count(e *Effect, change int) {
	speak := func(id messages.JobID) {
		if s.spoken[id] += change; s.spoken[id] == 0 {
			delete(s.spoken, id)
		}
	}
	speak(e.Job)
	for _, l := range e.Legs {
		speak(l.From)
		speak(l.To)
	}
	if e.Kind == Release && change > 0 {
		s.frees[e.Hold] = true
	} else if e.Kind == Release {
		delete(s.frees, e.Hold)
	}
}

// remove removes the confirmed effects, and returns them ordered by ID.
func (s *effects) remove(confirmed map[uint64]*Confirmation) (over []Effect) {
	for _, id := range slices.Sorted(maps.Keys(confirmed)) {
		if e, waits := s.waiting.remove(Effect{ID: id}); waits {
			s.count(&e, -1)
			over = append(over, e)
		}
	}
	s.watch.touchEffects()
	return over
}

func (s *effects) speaks(id messages.JobID) bool { return s.spoken[id] > 0 }

// round moves credits between jobs' accounts and the site, if all payers can pay. A visiting job pays with an
// authorisation, which can be charged only once. So the payments of a visiting job are added up, and are charged when
// the job ends.
func (s *effects) round(of *Job, legs []Leg) {
	if legs = s.due(legs); len(legs) == 0 || !s.payable(legs) {
		return
	}
	for _, l := range legs {
		if from := s.jobs.own(l.From); from != nil {
			from.Paid += l.Amount
		}
		switch to := s.jobs.own(l.To); {
		case l.Later:
			to.Promised = append(to.Promised, l)
		case to != nil:
			to.Gained += l.Amount
		}
	}
	s.moves(of, slices.DeleteFunc(slices.Clone(legs), func(l Leg) bool { return l.Later && l.From == 0 || s.jobs.visits(l.From) }))
}

// A payment of a round goes to another job, the payee. due returns the payments that are made now. The site keeps a
// payment with Leg.Later until the market has considered the payee. If the market has already considered the payee, the
// payment is made now. If the payee has ended without being considered, the payment is left out.
func (s *effects) due(legs []Leg) []Leg {
	var out []Leg
	for _, l := range legs {
		to := s.jobs.own(l.To)
		if l.Later = l.Later && !(to != nil && to.considered()); l.Later && to != nil && !to.Active() {
			continue
		}
		out = append(out, l)
	}
	return out
}

// considered reports whether the job's market has decided about the job: either that the job starts, or that it does
// not run.
func (j *Job) considered() bool { return j.Order != nil || j.Outcome == job.Discarded }

func (s *effects) moves(of *Job, legs []Leg) {
	for part := range slices.Chunk(legs, mostLegs) {
		s.effect(Round, of.ID, slices.Clone(part)...)
	}
}

// A job can be paid by other jobs before its market has considered it. The site keeps these payments for the job. When
// the market has considered the job, keepPromises pays them out.
func (s *effects) keepPromises(j *Job) {
	legs := j.Promised
	for i := range legs {
		legs[i].From, legs[i].Later = 0, false
		j.Gained += legs[i].Amount
	}
	j.Promised = nil
	s.moves(j, legs)
}

// dropPromises is called when a job ends. It gives the amounts that were kept for the job back to their payers. If the
// book no longer has a payer, the site keeps this payer's amount.
func (s *effects) dropPromises(j *Job) {
	var back []Leg
	for _, l := range j.Promised {
		if from := s.jobs.own(l.From); from != nil {
			from.Gained += l.Amount
			back = append(back, Leg{To: l.From, Amount: l.Amount, Reason: fmt.Sprintf("back from job %d, which was not considered: %s", j.ID, l.Reason)})
			s.watch.touch(from.ID)
		}
	}
	j.Promised = nil
	s.moves(j, back)
}

// mostLegs is the maximum number of payments (legs) in one request to the bank. The bank limits the transfers of a
// chain, and each leg takes at most three transfers.
const mostLegs = money.MaxLegs / 3

// payable reports whether each payer's hold covers its payments. Visiting jobs pay only the site.
func (s *effects) payable(legs []Leg) bool {
	due := map[messages.JobID]messages.Credits{}
	for _, l := range legs {
		payer := s.jobs.own(l.From)
		if !s.jobs.stands(l.From) || !s.jobs.stands(l.To) || l.From == l.To || l.Later && l.To == 0 || l.Amount <= 0 || l.Amount > messages.MaxCredits {
			return false
		}
		if s.jobs.visits(l.To) || l.To != 0 && s.jobs.visits(l.From) {
			return false
		}
		if payer == nil {
			continue
		}
		if payer.Settled {
			return false
		}
		if due[l.From] += l.Amount; due[l.From] > payer.Left()-payer.reserved() {
			return false
		}
	}
	return true
}

// reserved returns the amount that the job owes the site, if the mechanism fixed this amount before the job ended.
// Otherwise it returns 0.
func (j *Job) reserved() messages.Credits {
	if j.Fixed == nil {
		return 0
	}
	return j.Fixed.Amount
}

// rounded records the bank's answer to a round. If the bank refused, the payments are undone. Otherwise the payers'
// holds shrink.
func (s *effects) rounded(e *Effect, o *Confirmation) {
	for _, l := range e.Legs {
		from, to := s.jobs.own(l.From), s.jobs.own(l.To)
		if from != nil && o.Refused != "" {
			from.Paid -= l.Amount
		}
		switch {
		case to == nil || o.Refused == "":
		case l.Later:
			to.Promised = slices.DeleteFunc(to.Promised, func(p Leg) bool { return p == l })
		default:
			to.Gained -= l.Amount
		}
		if from != nil && o.Refused == "" {
			from.Drawn += l.Amount
			from.LastDraw = e.ID
		}
		s.watch.touch(l.From)
		s.watch.touch(l.To)
	}
}
