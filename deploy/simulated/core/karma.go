package core

import (
	"strconv"

	"github.com/candor-grid/candor/auctioneer/mechanism/karma"
	"github.com/candor-grid/candor/messages"
)

// The ledger of karma gives each user a number of slots for each quantum. runKarma gives each free slot to the user who
// lacks the most slots: this is the given number minus the slots that the user holds. The user's oldest job gets the
// slot.
func runKarma(p *Problem) (*Outcome, error) {
	k := &karmic{serial: newSerial(p), ledger: karma.NewLedger(*p.Market.Alpha, p.Market.Slot), members: make([]*karma.Member, len(p.Work.Users)),
		waiting: make([][]int, len(p.Work.Users))}
	k.ledger.Slots = p.Work.Nodes
	return k.run(k.end, k.arrive, k.serve)
}

type karmic struct {
	serial
	ledger  *karma.Ledger
	members []*karma.Member // by user; nil: no job yet
	waiting [][]int         // by user: jobs with tasks to start, the oldest first
}

// pass ends the quanta of the karma ledger that are over. It is called before the demand or the slots of a user change.
func (k *karmic) pass(now messages.Time) { k.ledger.Pass(now + 1) } // a ledger takes time 0 for no time, so times begin at 1

func (k *karmic) arrive(now messages.Time, i int) error {
	k.pass(now)
	k.enter(i)
	u := k.Work.Jobs[i].User
	k.members[u] = k.ledger.Join(strconv.Itoa(u), now+1)
	k.members[u].Demand += k.Work.Jobs[i].Width
	k.waiting[u] = append(k.waiting[u], i)
	return nil
}

func (k *karmic) end(now messages.Time, i int) error {
	k.pass(now)
	m := k.members[k.Work.Jobs[i].User]
	m.Demand, m.Held = m.Demand-1, m.Held-1
	if k.serial.end(now, i) {
		k.out.Jobs[i].Paid = Money(min(k.Market.Price.(float64)*k.out.Jobs[i].Used, k.Bids[i].Budget))
	}
	return nil
}

func (k *karmic) serve(now messages.Time) error {
	k.pass(now)
	if k.free == 0 {
		return nil
	}
	k.ledger.Share()
	for k.free > 0 {
		u := k.next()
		if u < 0 {
			return nil
		}
		i := k.waiting[u][0]
		k.members[u].Held++
		if k.begin(now, i); k.jobs[i].pending == 0 {
			k.waiting[u] = k.waiting[u][1:]
		}
	}
	return nil
}

// A user lacks the slots that the ledger gave the user and that the user does not hold. next returns the waiting user
// who lacks the most slots, or −1 if nobody waits. Among users who lack equally many, it returns the user with the most
// karma.
func (k *karmic) next() int {
	best := -1
	for u, m := range k.members {
		if m == nil || len(k.waiting[u]) == 0 {
			continue
		}
		if best < 0 || lacks(m) > lacks(k.members[best]) || lacks(m) == lacks(k.members[best]) && m.Karma > k.members[best].Karma {
			best = u
		}
	}
	return best
}

func lacks(m *karma.Member) int { return max(0, m.Given-m.Held) }
