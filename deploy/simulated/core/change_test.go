package core

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
)

// A job's used slot time must be equal to the time from its start to its end minus the time of its suspensions.
func TestChangesAddUp(t *testing.T) {
	for _, name := range []string{rules.HighestBid, rules.Deadline} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := study(t, name, 1)
				p.Record = true
				o := mustRun(t, p)
				lost, paused, last := 0, make([]float64, len(o.Jobs)), math.Inf(-1)
				for _, c := range o.Changes {
					if c.At < last || c.Slots != 1 {
						t.Fatalf("%+v", o.Changes)
					}
					last = c.At
					if c.What == Suspended {
						lost++
						paused[c.Job] -= c.At
					} else {
						paused[c.Job] += c.At
					}
				}
				if lost != o.Preemptions {
					t.Fatalf("%d preemptions, told are %d", o.Preemptions, lost)
				}
				for i := range o.Jobs {
					r := &o.Jobs[i]
					if r.Fate == Completed && name == rules.HighestBid && math.Abs(r.Finish-r.Start-paused[i]-p.Work.Jobs[i].Runtime) > 1e-6 {
						t.Fatalf("job %d: %+v was suspended for %v", i, *r, paused[i])
					}
				}
				p.Record = false
				if again := mustRun(t, p); again.Changes != nil || again.Preemptions != o.Preemptions {
					t.Fatalf("not to be recorded: %+v", again)
				}
			})
		})
	}
}

// Some mechanisms keep the slots of a parallel job together. The test runs such a mechanism twice. In the second run,
// each parallel job is replaced by serial jobs: one for each of its tasks, with the same bid. Both runs must have the
// same outcomes.
func TestSplitJobsAreSerialJobs(t *testing.T) {
	for _, name := range []string{rules.BatchQueue, rules.Reservation} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := study(t, name, 1)
				p.Work.Parallel = workload.Split
				want := mustRun(t, p)
				if got, err := runSplit(p, runners[name]); err != nil || !sameJobs(got.Jobs, want.Jobs) {
					t.Fatalf("%v: %+v, want %+v", err, got, want)
				}
				for i := range p.Work.Jobs { // the job is wider than the machine; each of its tasks needs only one slot
					p.Work.Jobs[i].Width = p.Work.Nodes + 1
				}
				for i, r := range mustRun(t, p).Jobs {
					if r.Fate == Completed && (math.IsNaN(r.Start) || math.Abs(r.Used-p.Work.Jobs[i].Work()) > 1e-6) {
						t.Fatalf("job %d: %+v", i, r)
					}
				}
			})
		})
	}
}

func sameJobs(a, b []Job) bool {
	for i := range a {
		x, y := a[i], b[i]
		if math.IsNaN(x.Start) && math.IsNaN(y.Start) {
			x.Start, y.Start = 0, 0
		}
		if x != y {
			return false
		}
	}
	return true
}
