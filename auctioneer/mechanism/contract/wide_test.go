package contract

import (
	"reflect"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

// Three jobs must have the same menu, get the same slots, and owe the same for the same slot time: a job of 2 tasks of
// 3 slots, an allocation of 2 nodes with 3 slots each, and a job of 6 tasks of one slot.
func TestATaskOfSeveralSlotsIsPlannedAsSoManyTasks(t *testing.T) {
	wide, gang := bidOf(50, 990*second, 2), bidOf(50, 990*second, 2)
	wide.Width, wide.Alone = 3, 3
	gang.Width = 6
	t.Run("wide tasks", func(t *testing.T) { samePlan(t, wide) })
	t.Run("an allocation", func(t *testing.T) { samePlan(t, gang) })
}

func samePlan(t *testing.T, wide *mechanism.Bid) {
	m := market(t, marketmsg.Market{Replicas: 30})
	narrow := bidOf(50, 990*second, 6)
	of := func(bid *mechanism.Bid) (*mechanism.Quote, *mechanism.View) {
		view := grid(6, 2)
		for id := range messages.JobID(5) {
			bid := bidOf(id+1, view.Now-messages.Time(id)*5*second, 1+int(id))
			view.Jobs = append(view.Jobs, take(t, quote(t, m, view, bid, uint64(id)), bid))
		}
		q := quote(t, m, view, bid, 11)
		job := take(t, q, bid)
		job.Pending = []int{6}
		view.Jobs = append(view.Jobs, job)
		return q, view
	}
	q, among := of(wide)
	as, alike := of(narrow)
	if !reflect.DeepEqual(q, as) {
		t.Errorf("the menu is %+v, want %+v", q, as)
	}
	if a, b := m.Allocate(among), m.Allocate(alike); !reflect.DeepEqual(a, b) {
		t.Errorf("the slots go to %+v, want %+v", a, b)
	}
	at := len(among.Jobs) - 1
	among.Jobs[at].Contract.Price, alike.Jobs[at].Contract.Price = messages.Credit, messages.Credit
	late := among.Jobs[at].Contract.Completion + 40*second
	// Each of the 6 slots was used 3 s longer than planned. The wide job has begun 2 tasks, the other job 6.
	delivered := 6 * (among.Jobs[at].Contract.Planned + 3e9)
	a := m.Settle(among, among.Jobs[at], mechanism.End{State: job.Completed, Completed: late, Began: 2, Delivered: delivered})
	b := m.Settle(alike, alike.Jobs[at], mechanism.End{State: job.Completed, Completed: late, Began: 6, Delivered: delivered})
	if !reflect.DeepEqual(a, b) || a[0].Amount == 0 {
		t.Errorf("it owes %+v, want %+v", a, b)
	}
	wide.Width, wide.Alone = 5, 0
	if _, err := m.Quote(among, wide, class, 1); messages.KindOf(err) != messages.Invalid {
		t.Errorf("two tasks that take five slots together: %v", err)
	}
}
