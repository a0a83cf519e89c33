package book

import (
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/expect"
	"github.com/candor-grid/candor/messages/job"
)

func (s *site) park(p Park) (Parking, error) {
	switch r := s.apply(Command{Park: &p}).(type) {
	case Parking:
		return r, nil
	case error:
		return Parking{}, r
	}
	s.t.Fatal("a Park has another result")
	return Parking{}, nil
}

// A job is parked while one of its tasks runs. This task must continue. No other task of the job may be claimed until
// the job is released.
func TestParkedJobGetsNoTasks(t *testing.T) {
	s := newSite(t)
	s.register("n", 1, 4)
	id := s.submit("k", mapStage(3))
	one := s.claim("n", 1, 1, 1, id)
	p, err := s.park(Park{Job: id, By: "alice"})
	expect.Same(t, "err", err, nil)
	expect.Same(t, "Changed", p.Changed, true, "Running", p.Running, 1, "State", p.State, job.Running)
	if p, err := s.park(Park{Job: id, By: "alice"}); err != nil || p.Changed {
		t.Errorf("a second hold: %+v, %v", p, err)
	}
	if g := s.claim("n", 1, 2, 4, id); len(g) != 0 {
		t.Errorf("a job on hold was granted %v", g)
	}
	s.finish("n", 1, 3, agent.Exited, 0, one[0].Attempt)
	if p, err := s.park(Park{Job: id, By: "alice", Release: true}); err != nil || !p.Changed || s.Job(id).Arrived() != s.Now() {
		t.Errorf("release: %+v, %v, arrived %v", p, err, s.Job(id).Arrived())
	}
	if g := s.claim("n", 1, 4, 4, id); len(g) != 2 {
		t.Errorf("after the release %v were granted, not the 2 that are left", g)
	}
}

// The owner cannot release a job that an operator put on hold.
func TestOperatorsHold(t *testing.T) {
	s := newSite(t)
	id := s.submit("k", mapStage(1))
	s.park(Park{Job: id, By: "alice"})
	s.park(Park{Job: id, By: "root", Operator: true})
	s.park(Park{Job: id, By: "alice"}) // the operator's hold must stay
	if _, err := s.park(Park{Job: id, By: "alice", Release: true}); messages.KindOf(err) != messages.PermissionDenied || !s.Job(id).Away() {
		t.Errorf("alice released what an operator holds: %v", err)
	}
	if p, err := s.park(Park{Job: id, By: "root", Operator: true, Release: true}); err != nil || !p.Changed || s.Job(id).Away() {
		t.Errorf("the operator's release: %+v, %v", p, err)
	}
	if p, err := s.park(Park{Job: id, By: "alice", Release: true}); err != nil || p.Changed {
		t.Errorf("a release of a job that is not on hold: %+v, %v", p, err)
	}
}

// These jobs cannot be put on hold: ended jobs, missing jobs, jobs with a contract, and jobs that the market has
// finally decided to start.
func TestParkRefuses(t *testing.T) {
	s := newSite(t)
	ended, ordered, contracted := s.submit("a", mapStage(1)), s.submit("b", mapStage(1)), s.submit("c", mapStage(1))
	s.apply(Command{Cancel: &Cancel{Job: ended, By: "alice"}})
	s.apply(Command{Decide: &Decide{Market: "main", Start: []Starting{{Job: ordered, Order: Order{Class: "map", Slots: 1, At: 99}}}}})
	s.jobs.own(contracted).Contract = new(job.Contract)
	for id, kind := range map[messages.JobID]messages.Kind{ended: messages.Ended, 77: messages.NotFound, ordered: messages.Conflict, contracted: messages.Conflict} {
		if _, err := s.park(Park{Job: id, By: "alice"}); messages.KindOf(err) != kind {
			t.Errorf("job %d: %v is not %v", id, err, kind)
		}
	}
}

func TestSubmittedOnHold(t *testing.T) {
	s := newSite(t)
	s.register("n", 1, 4)
	r := s.apply(Command{Submit: &Submit{Account: "alice", Key: "k", Payer: "alice", Spec: &job.JobSpec{Market: "main", Hold: true, Stages: []job.Stage{mapStage(1)}}}}).(Receipt)
	if g := s.claim("n", 1, 1, 4, r.Job); len(g) != 0 || !s.Job(r.Job).Away() {
		t.Errorf("a job that was submitted on hold was granted %v", g)
	}
	s.park(Park{Job: r.Job, By: "alice", Release: true})
	if g := s.claim("n", 1, 2, 4, r.Job); len(g) != 1 {
		t.Errorf("after its release %v were granted", g)
	}
}
