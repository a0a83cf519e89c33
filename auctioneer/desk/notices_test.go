package desk

import (
	"testing"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// A receiver hangs. Only two notices to it may be open at the same time. Its job must be settled, and other receivers
// must get their notices. A failed notice must be tried again for a day.
func TestNoReceiverDelaysAnything(t *testing.T) {
	s := newSite(t, usual)
	var last messages.JobID
	for i := range 4 {
		spec := &job.JobSpec{Market: "main", Budget: messages.Credit, Stages: []job.Stage{{Name: "s", Class: "cpu", Tasks: 1, Command: []string{"true"}}},
			Notify: []job.Notify{{To: "https://hangs/"}}}
		if i == 3 {
			spec.Notify = append(spec.Notify, job.Notify{To: "ada@example.org"})
		}
		key := string(rune('a' + i))
		last = s.must(&book.Command{Submit: &book.Submit{Account: "alice", Key: key, Payer: "alice", Hold: "job/" + key, Spec: spec, Held: spec.Budget}}).(book.Receipt).Job
		s.end(last)
	}
	s.step()
	var hangs []Request
	sent := 0
	for len(s.asked) > 0 {
		r := s.asked[0]
		switch body := r.Body.(type) {
		case money.TransferRequest:
			s.answer(moved(body), nil)
		case []job.Observation:
			s.answer(len(body), nil)
		case *book.Notice:
			if body.To == "ada@example.org" {
				s.answer(nil, nil)
				sent++
				continue
			}
			hangs, s.asked = append(hangs, r), s.asked[1:]
		}
	}
	if len(hangs) != 2 || sent != 1 || !s.Job(last).State.Final() || s.Job(last).Notices[1].Sent == 0 {
		t.Fatalf("%d wait for the receiver that hangs, %d were sent, job %v", len(hangs), sent, s.Job(last).State)
	}
	for _, r := range hangs {
		s.step(Done{r.ID, nil, messages.Errorf(messages.Unavailable, "no answer")})
	}
	tries := 0
	refuse := func() {
		for len(s.asked) > 0 {
			tries++
			s.answer(nil, messages.Errorf(messages.Unavailable, "no answer"))
		}
	}
	for range 100 {
		refuse()
		s.pass(messages.Duration(20 * time.Minute))
	}
	for n := range s.EachNotice {
		t.Errorf("%+v waits after a day", n)
	}
	if got := s.Job(last).Notices[0]; got.Refused != "given up after a day: no answer" || tries < 100 {
		t.Errorf("after %d tries: %+v", tries, got)
	}
}
