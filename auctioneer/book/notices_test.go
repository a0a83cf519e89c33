package book

import (
	"bytes"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/expect"
	"github.com/candor-grid/candor/messages/job"
)

// The notices about a job are entered when the job ends. They must be in an image of the book, and readable with the
// job. They must not delay the settlement of the job, or the time when the book forgets it.
func TestNotices(t *testing.T) {
	b := New()
	spec := &job.JobSpec{Budget: messages.Credit, Market: "main", Stages: []job.Stage{{Name: "a", Class: "cpu", Tasks: 1}},
		Notify: []job.Notify{{To: "ada@example.org"}, {To: "https://h/", On: []string{job.NotifyStart, job.NotifyFailure, job.NotifyEnd}}}}
	submit := func(key string) messages.JobID {
		r := b.Apply(&Command{At: 1, Submit: &Submit{Account: "ada", Key: key, Payer: "ada", Spec: spec, Held: messages.Credit}})
		return r.(Receipt).Job
	}
	end := func(id messages.JobID) {
		b.Apply(&Command{At: 2, Cancel: &Cancel{Job: id, By: "ada"}})
		b.Apply(&Command{At: 3, Settle: &Settle{Job: id}})
		var all []Confirmation
		for e := range b.EachEffect {
			all = append(all, Confirmation{Effect: e.ID})
		}
		b.Apply(&Command{At: 4, Confirm: &Confirm{Effects: all}})
	}
	waiting := func() (list []Notice) {
		for n := range b.EachNotice {
			list = append(list, *n)
		}
		return list
	}
	id := submit("k")
	end(id)
	list := waiting()
	expect.Same(t, "len(list)", len(list), 2)
	expect.Same(t, "Event", list[0].Event, job.NotifyEnd, "Event", list[1].Event, job.NotifyEnd, "State", list[1].Job.State, job.Cancelled,
		"Final", b.Job(id).State.Final(), true)
	var image bytes.Buffer
	if _, err := b.Capture().WriteTo(&image); err != nil {
		t.Fatal(err)
	}
	back := New()
	if err := back.Restore(&image); err != nil || back.Hash() != b.Hash() {
		t.Fatalf("an image loses notices: %v", err)
	}
	b.Apply(&Command{At: 9, Notified: &Notified{Outcomes: []NoticeOutcome{{Notice: list[0].ID}, {Notice: list[1].ID, Refused: "no"}, {Notice: 99}}}})
	told := b.Job(id).Notices
	expect.Same(t, "len(waiting())", len(waiting()), 0, "len(b.notices.waitFor)", len(b.notices.waitFor), 0, "len(told)", len(told), 2)
	expect.Same(t, "Sent", told[0].Sent, 9, "Refused", told[1].Refused, "no", "Sent", told[1].Sent, 0)
	for i := range MaxNoticesTo + 1 {
		end(submit(string(rune('a'+i/26)) + string(rune('a'+i%26))))
	}
	last := b.Job(b.LastJob()).Notices
	if len(waiting()) != 2*MaxNoticesTo || last[0].Refused == "" {
		t.Errorf("%d wait; the last: %+v", len(waiting()), last)
	}
}

// The budget of a job is raised several times. Before each raise, the job is warned twice that its budget will soon be
// spent. Only one of these two warnings may give a notice. The list of notices must not be full: the job gets more
// notices when it ends.
func TestABudgetIsToldOnce(t *testing.T) {
	s := newSite(t)
	id := s.submit("a", mapStage(1))
	s.Job(id).Spec.Notify = []job.Notify{{To: "ada@example.org", On: []string{job.NotifyBudget, job.NotifyEnd}}, {To: "bob@example.org"}}
	for budget := messages.Credits(100); budget < 200; budget++ {
		for range 2 {
			s.apply(Command{Warn: &Warn{Job: id}})
		}
		if n := len(s.Job(id).Notices); budget < 110 && n != int(budget-99) {
			t.Fatalf("%d notices for the budget %d", n, budget)
		}
		s.apply(Command{Change: &Change{Job: id, Budget: budget + 1}})
		s.apply(Command{Confirm: &Confirm{Effects: []Confirmation{{Effect: s.LastEffect(), Amount: 1}}}})
	}
	s.apply(Command{Cancel: &Cancel{Job: id, By: "alice"}})
	s.apply(Command{Warn: &Warn{Job: id}})
	s.apply(Command{Settle: &Settle{Job: id}})
	s.apply(Command{Confirm: &Confirm{Effects: []Confirmation{{Effect: s.LastEffect()}}}})
	list := s.Job(id).Notices
	if n := len(list); list[n-1].Event != job.NotifyEnd || list[n-2].Event != job.NotifyEnd || list[n-3].Event != job.NotifyBudget {
		t.Errorf("the last notices: %+v", list[n-3:])
	}
}
