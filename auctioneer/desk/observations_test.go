package desk

import (
	"fmt"
	"slices"
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// The stream does not accept messages. If too many observations wait, the oldest ones must be dropped and counted.
// After a day, all waiting observations must be dropped. When the stream works again, the observations that still wait
// must be sent.
func TestObservationsThatWaitAreBounded(t *testing.T) {
	s := newSite(t, usual)
	jobs := mostObservations + 20
	for i := range jobs {
		s.end(s.submit(fmt.Sprint(i), 1))
	}
	out, dropped := true, 0
	sent := map[messages.JobID]bool{}
	run := func(rounds int) {
		for range rounds {
			for len(s.asked) > 0 {
				switch body := s.asked[0].Body.(type) {
				case money.TransferRequest:
					s.answer(moved(body), nil)
				case []job.Observation:
					if out {
						s.answer(0, messages.Errorf(messages.Unavailable, "the stream has no leader"))
						continue
					}
					for i := range body {
						sent[body[i].Job] = true
					}
					s.answer(len(body), nil)
				default:
					t.Fatalf("asked for %+v", body)
				}
			}
			s.pass(60 * second)
		}
	}
	waiting := func() (n int) {
		for e := range s.EachEffect {
			if e.Kind == book.Observe {
				n++
			}
		}
		return n
	}
	s.step()
	run(60)
	if n := waiting(); n != mostObservations {
		t.Errorf("%d observations wait, want %d", n, mostObservations)
	}
	for _, e := range s.told {
		if d, is := e.(Dropped); is {
			dropped += d.Observations
		}
	}
	if dropped != 20 {
		t.Errorf("%d are said to be dropped, want 20", dropped)
	}
	last := s.submit("last", 1)
	s.pass(observationsKept)
	s.end(last)
	run(20)
	if n := waiting(); n != 1 {
		t.Errorf("%d observations wait after a day, want that of the last job", n)
	}
	out = false
	run(20)
	if len(slices.Collect(s.EachEffect)) > 0 || len(sent) != 1 || !sent[last] {
		t.Errorf("%d effects are left, and %d observations were sent", len(slices.Collect(s.EachEffect)), len(sent))
	}
}
