package book

import (
	"bytes"
	"testing"

	"github.com/candor-grid/candor/messages"
)

func TestAJobWaitsForItsTime(t *testing.T) {
	b := New()
	enter := func(key string, begin messages.Time, after ...messages.JobID) messages.JobID {
		spec := roamSpec()
		spec.Begin, spec.AfterJobs = begin, after
		b.must(t, &Command{At: 10, Submit: &Submit{Account: "alice", Key: key, Held: 5, Spec: spec}})
		return b.LastJob()
	}
	first := enter("first", 0)
	past, soon, both, gone := enter("past", 10), enter("soon", 30), enter("both", 20, first), enter("gone", 15)
	b.must(t, &Command{At: 10, Cancel: &Cancel{Job: gone, By: "alice"}})
	blocked := func(when string, want map[messages.JobID]int, next messages.Time) {
		t.Helper()
		for id, n := range want {
			if j := b.Job(id); j.Blocked != n || (j.Claimable(0) > 0) != (n == 0) {
				t.Errorf("%s: job %d waits for %d, want %d; %d claimable", when, id, j.Blocked, n, j.Claimable(0))
			}
		}
		if at := b.NextBegin(); at != next {
			t.Errorf("%s: the next begins at %v, want %v", when, at, next)
		}
	}
	blocked("at first", map[messages.JobID]int{past: 0, soon: 1, both: 2}, 20)
	var image bytes.Buffer
	if _, err := b.Capture().WriteTo(&image); err != nil {
		t.Fatal(err)
	}
	if err := b.Restore(&image); err != nil {
		t.Fatal(err)
	}
	blocked("restored", map[messages.JobID]int{past: 0, soon: 1, both: 2}, 20)
	b.must(t, &Command{At: 20, Begin: &Begin{}})
	blocked("at 20", map[messages.JobID]int{soon: 1, both: 1}, 30)
	b.must(t, &Command{At: 30, Cancel: &Cancel{Job: first, By: "alice"}})
	blocked("at 30", map[messages.JobID]int{soon: 0, both: 0}, 0)
	// a job's place in the queue counts from the end of its last wait
	for id, want := range map[messages.JobID]messages.Time{past: 10, soon: 30, both: 30} {
		if at := b.Job(id).Arrived(); at != want {
			t.Errorf("job %d has its place since %v, want %v", id, at, want)
		}
	}
}
