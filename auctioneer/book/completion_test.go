package book

import (
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// A task is complete with the first attempt that its program or its owner ended. Attempts that the site ended must not
// count.
func TestCompletionForPrices(t *testing.T) {
	const second = 1_000_000
	for name, c := range map[string]struct {
		play func(w *timed, id messages.JobID, a messages.Attempt)
		at   messages.Time // when the job is complete, in seconds; 0 means never
		had  messages.Duration
	}{
		"exit code 0": {func(w *timed, id messages.JobID, a messages.Attempt) { w.end(10, agent.Exited, 0, a) }, 10, 9e9},
		"exit code 1": {func(w *timed, id messages.JobID, a messages.Attempt) {
			w.end(10, agent.Exited, 1, a)
			w.again(12, id, 20)
		}, 10, 9e9},
		"its own limit": {func(w *timed, id messages.JobID, a messages.Attempt) { w.end(10, agent.TimedOut, 0, a) }, 10, 9e9},
		"requeue": {func(w *timed, id messages.JobID, a messages.Attempt) {
			w.do(10, Command{Requeue: &Requeue{Job: id}})
			w.end(11, agent.Stopped, 0, a)
			w.again(12, id, 20)
		}, 10, 9e9},
		"cancel": {func(w *timed, id messages.JobID, a messages.Attempt) {
			w.do(10, Command{Cancel: &Cancel{Job: id, By: "alice"}})
		}, 10, 9e9},
		"exit code 1, then cancel": {func(w *timed, id messages.JobID, a messages.Attempt) {
			w.end(10, agent.Exited, 1, a)
			w.do(20, Command{Cancel: &Cancel{Job: id, By: "alice"}})
		}, 10, 9e9},
		"exit code 1, then discarded": {func(w *timed, id messages.JobID, a messages.Attempt) {
			w.end(10, agent.Exited, 1, a)
			w.do(20, Command{Decide: &Decide{Market: "main", Discard: []Discarding{{Job: id}}}})
		}, 10, 9e9},
		"discarded": {func(w *timed, id messages.JobID, a messages.Attempt) {
			w.do(20, Command{Decide: &Decide{Market: "main", Discard: []Discarding{{Job: id}}}})
			w.end(21, agent.Stopped, 0, a)
		}, 0, 0},
		"a lost node": {func(w *timed, id messages.JobID, a messages.Attempt) {
			w.do(10, Command{Lost: &Lost{Node: "n1", Session: 7}})
		}, 0, 0},
		"a drain":       {func(w *timed, id messages.JobID, a messages.Attempt) { w.drain(10); w.end(11, agent.Stopped, 0, a) }, 0, 0},
		"a late answer": {func(w *timed, id messages.JobID, a messages.Attempt) { w.drain(10); w.end(11, agent.Exited, 1, a) }, 0, 0},
		"a preemption": {func(w *timed, id messages.JobID, a messages.Attempt) {
			w.do(10, Command{Decide: &Decide{Market: "main", Requeue: []messages.Attempt{a}}})
			w.end(11, agent.Stopped, 0, a)
		}, 0, 0},
		"a lost node, then exit code 1": {func(w *timed, id messages.JobID, a messages.Attempt) {
			w.do(10, Command{Lost: &Lost{Node: "n1", Session: 7}})
			w.do(11, Command{Register: &Register{Node: "n1", Session: 8, Slots: []job.ClassSlots{{Class: "map", Slots: 1}}}})
			w.session, w.seq = 8, 0
			w.again(12, id, 20)
		}, 20, 8e9},
	} {
		t.Run(name, func(t *testing.T) {
			w := &timed{site: newSite(t), session: 7}
			id := w.submit("k", mapStage(1))
			w.register("n1", 7, 1)
			w.passTo(second)
			c.play(w, id, w.claims(id))
			got := w.Job(id).Completion()
			if got.At != c.at*second || (got.At != 0) != (got.Tasks == 1) || c.at != 0 && got.Delivered != c.had || w.Job(id).Began() != got.Tasks && name != "discarded" {
				t.Errorf("%+v, %d began; want at %d s, %v", got, w.Job(id).Began(), c.at, c.had)
			}
		})
	}
}

// timed is a site with a node of one slot, on which events happen at given seconds.
type timed struct {
	*site
	session, seq uint64
}

func (w *timed) do(at messages.Time, c Command) {
	w.t.Helper()
	w.passTo(at * 1_000_000)
	if err, refused := w.apply(c).(error); refused {
		w.t.Fatal(err)
	}
}

func (w *timed) claims(id messages.JobID) messages.Attempt {
	w.t.Helper()
	w.seq++
	return w.claim("n1", w.session, w.seq, 1, id)[0].Attempt
}

func (w *timed) end(at messages.Time, outcome agent.Outcome, exit int, a messages.Attempt) {
	w.t.Helper()
	w.passTo(at * 1_000_000)
	w.seq++
	w.finish("n1", w.session, w.seq, outcome, exit, a)
}

// The method `again` claims the task of a job, and ends the attempt with exit code 1. The arguments `from` and `to` are
// in seconds.
func (w *timed) again(from messages.Time, id messages.JobID, to messages.Time) {
	w.t.Helper()
	w.passTo(from * 1_000_000)
	w.end(to, agent.Exited, 1, w.claims(id))
}

func (w *timed) drain(at messages.Time) {
	w.t.Helper()
	w.do(at, Command{Drain: &Drain{Node: "n1", Until: at}})
	w.passTo(at * 1_000_000)
	w.apply(Command{Drain: &Drain{Node: "n1", Until: at, Evict: true}})
}
