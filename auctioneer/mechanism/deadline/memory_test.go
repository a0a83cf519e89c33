package deadline

import (
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// A job ends while there is no leader. The next leader must count the job as ended from the time of its end. If the job
// completed in time, it must pay the same as if there had been a leader. If it failed, it must not count as completed.
func TestEndedWhileNobodyLed(t *testing.T) {
	for _, completed := range []bool{true, false} {
		job := func(id messages.JobID, task Task) *mechanism.Job {
			return &mechanism.Job{Bid: bidOf(id, task), Pending: []int{1}, Running: []int{0}}
		}
		better, worse := Task{Arrival: 100, Deadline: 103, Length: 3, Value: 20}, Task{Arrival: 100, Deadline: 109, Length: 3, Value: 12}
		end := mechanism.End{State: jobmsg.Completed, At: at(103) - 1}
		if end.Completed = end.At; !completed {
			end.State, end.Completed = jobmsg.Failed, 0
		}
		// lead calls the market once for each given unit. If units are missing between two given units, there was no
		// leader in them, and a new leader takes over.
		lead := func(units ...int) (*Mechanism, messages.Credits) {
			one, two := job(1, better), job(2, worse)
			m := &market{Mechanism: live(t, 0.6), notes: map[messages.JobID]mechanism.Note{}, bids: map[messages.JobID]*mechanism.Bid{1: one.Bid, 2: two.Bid}}
			m.view = &mechanism.View{Classes: []mechanism.Class{{Name: "cpu", Slots: 1}}, Jobs: []*mechanism.Job{one, two}}
			for k, unit := range units {
				if k > 0 && unit > units[k-1]+1 {
					m.over, m.gone = map[messages.JobID]int{1: 103}, map[messages.JobID]jobmsg.State{1: end.State}
					m.replace(live(t, 0.6))
				}
				m.view.Now = at(unit)
				if unit > 102 && len(m.view.Jobs) == 2 {
					m.view.Jobs = []*mechanism.Job{two}
					if !completed {
						m.Settle(m.view, one, end)
					}
				}
				m.Allocate(m.view)
				m.keep()
			}
			m.view.Now = one.Deadline
			return m.Mechanism, m.Settle(m.view, one, end)[0].Amount
		}
		prompt, want := lead(100, 101, 102, 103, 104, 105, 106, 107)
		late, got := lead(100, 101, 106, 107)
		if got != want || completed != (want > 0) {
			t.Errorf("completed %v: it owes %v, and with a leader all the time %v", completed, got, want)
		}
		i, k := prompt.past.index[1], late.past.index[1]
		p, l := prompt.past.tasks[i], late.past.tasks[k]
		if l != p || completed != (l.Work > 0) {
			t.Errorf("completed %v: remembered as %+v, and with a leader all the time as %+v", completed, l, p)
		}
	}
}

// The market's own note is damaged, or has another unit of time than the market, or another form than this program
// writes. In each of these cases a new leader must ignore all notes.
func TestUnreadableNotesAreIgnored(t *testing.T) {
	good := []int64{noteForm, 10_000_000, 100, 100, 1, 1}
	for what, numbers := range map[string][]int64{
		"another unit": {noteForm, 5_000_000, 100, 100, 1, 1}, "another form": {noteForm + 1, 10_000_000, 100, 100, 1, 1},
		"cut short": good[:5], "no slots": {noteForm, 10_000_000, 100, 100, 1, 0},
	} {
		m := live(t, 0)
		m.Recall([]mechanism.Note{{Numbers: numbers}, {Job: 1, Numbers: make([]int64, jobNumbers)}}, nil, nil)
		if m.ranking.decided || len(m.seats) != 0 || len(m.past.tasks) != 0 || len(m.past.slots) != 0 {
			t.Errorf("%s: decided %v, %d seats, %d tasks, slots %v", what, m.ranking.decided, len(m.seats), len(m.past.tasks), m.past.slots)
		}
	}
	m := live(t, 0)
	m.Recall([]mechanism.Note{{Numbers: good}}, nil, nil)
	if !m.ranking.decided {
		t.Error("good notes are ignored")
	}
}

// The history begins with a unit of time without slots, because no node had come yet. Then a job ran, and the notes of
// the decisions were lost when the leader failed. The job must pay the bid of its competitor, not its own value.
func TestPriceAfterALostDecision(t *testing.T) {
	job := func(id messages.JobID, value float64) *mechanism.Job {
		return &mechanism.Job{Bid: bidOf(id, Task{Arrival: 100, Deadline: 102, Length: 2, Value: value}), Pending: []int{1}, Running: []int{0}}
	}
	one, two := job(1, 20), job(2, 12)
	m := &market{Mechanism: live(t, 0.6), notes: map[messages.JobID]mechanism.Note{}, bids: map[messages.JobID]*mechanism.Bid{1: one.Bid, 2: two.Bid}}
	m.view = &mechanism.View{Classes: []mechanism.Class{{Name: "cpu"}}, Now: at(99)}
	m.Allocate(m.view)
	m.keep()
	m.view.Classes[0].Slots, m.view.Jobs, m.view.Now = 1, []*mechanism.Job{one, two}, at(100)
	m.Allocate(m.view) // the notes of this decision are lost
	m.replace(live(t, 0.6))
	one.Received, m.view.Now = 2*messages.Duration(at(1)-at(0))*1000, at(102)
	m.Allocate(m.view)
	if p := m.Settle(m.view, one, mechanism.End{State: jobmsg.Completed, At: at(102) - 1, Completed: at(102) - 1})[0]; p.Amount != 12*messages.Credit {
		t.Errorf("it owes %v, want 12: %s", p.Amount, p.Reason)
	}
}
