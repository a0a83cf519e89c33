package faults

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/siteclock"
)

// witness records facts about a site's book that must stay true in every later state, such as the jobs that were
// accepted.
type witness struct {
	*site
	accepted map[messages.TaskRef]uint32
	attempts map[messages.TaskRef]uint32
	claims   map[messages.TaskRef]claimed
	began    map[messages.Attempt]messages.Time // when each claim was proposed, by the simulated true time
	entered  map[messages.JobID]messages.Time   // when each job was proposed, by the simulated true time
	over     map[messages.JobID]bool            // jobs that have ended and were charged
	alone    int                                // number of jobs in the map `over` that ended while the site was cut off
	settles  map[messages.JobID]settles
	visited  bool // the site has had a job of another site
}

// settles is what a leader states about the payments that a job owes.
type settles struct {
	term   uint64
	charge messages.Credits
}

// claimed says which node has the valid claim of a task, and for which attempt.
type claimed struct {
	node    messages.Name
	attempt uint32
}

func newWitness(s *site) witness {
	return witness{s, map[messages.TaskRef]uint32{}, map[messages.TaskRef]uint32{}, map[messages.TaskRef]claimed{}, map[messages.Attempt]messages.Time{}, map[messages.JobID]messages.Time{}, map[messages.JobID]bool{}, 0, map[messages.JobID]settles{}, false}
}

func (s *witness) book(data []byte, state automaton, _ any) error {
	b := state.(*bookState)
	if err := s.claimsOf(b.Book, data); err != nil {
		return err
	}
	if err := s.settlement(data); err != nil {
		return err
	}
	b.EachEffect(s.tally.expects)
	holds := map[string]messages.JobID{}
	var paid, gained messages.Credits
	visited := false
	for _, j := range jobs(b.Book) {
		hold := j.Hold
		if j.Visit != nil {
			visited = true
			hold = j.Visit.Visit.String()
		}
		if other, twice := holds[hold]; twice {
			return fmt.Errorf("invariant 2: jobs %d and %d come from one submission, with one hold", other, j.ID)
		}
		holds[hold] = j.ID
		if s.entered[j.ID] == 0 {
			s.entered[j.ID] = s.now
		}
		if j.State.Final() && !s.over[j.ID] {
			s.over[j.ID] = true
			if s.isolated() {
				s.alone++
			}
		}
		if err := s.job(j); err != nil {
			return err
		}
		gained += j.Gained - j.Back
		for _, l := range j.Promised {
			gained += l.Amount
		}
		switch {
		case j.Visit == nil:
			paid += j.Paid
		case j.Gained != 0 || len(j.Promised) > 0:
			return fmt.Errorf("invariant 6: job %d of another site was paid %v and promised %v", j.ID, j.Gained, j.Promised)
		}
	}
	// Jobs of other sites (visitors) get no payments from jobs. If only visitors should be paid, the site gets the
	// payment.
	if s.visited = s.visited || visited; paid < gained || paid > gained && !s.visited {
		return fmt.Errorf("invariant 6: budget balance: jobs paid %v to other jobs, but jobs received %v", paid, gained)
	}
	return nil
}

// settlement checks that a leader never changes the amount that a job owes, after it has proposed this amount.
func (s *witness) settlement(data []byte) error {
	c, err := book.Decode(data)
	if data == nil || err != nil || c.Settle == nil {
		return nil
	}
	said := settles{s.books.history[len(s.books.history)-1].term, c.Settle.Charge}
	before, known := s.settles[c.Settle.Job]
	if s.settles[c.Settle.Job] = said; known && before.term == said.term && before != said {
		return fmt.Errorf("invariant 9: the same leader said first that job %d owes %v, and now that it owes %v", c.Settle.Job, before.charge, said.charge)
	}
	return nil
}

func jobs(b *book.Book) (list []*book.Job) {
	for id := messages.JobID(1); id <= b.LastJob(); id++ {
		if j := b.Job(id); j != nil {
			list = append(list, j)
		}
	}
	return list
}

// claimsOf checks that every task has at most one claim, and that this claim is for the task's latest attempt. The
// command `data` may end a claim only if it names the attempt of this claim.
func (s *witness) claimsOf(b *book.Book, data []byte) error {
	now := map[messages.TaskRef]claimed{}
	for _, n := range b.Nodes() {
		for _, r := range refs(n.Claims) {
			h := n.Claims[r]
			if other, twice := now[r]; twice {
				return fmt.Errorf("invariant 2: task %v is claimed by %s and %s", r, min(other.node, n.Name), max(other.node, n.Name))
			}
			now[r] = claimed{n.Name, h.Attempt}
			if a := (messages.Attempt{Task: r, Number: h.Attempt}); s.began[a] == 0 {
				s.began[a] = s.proposed[string(data)]
			}
			if err := s.runs(b, r, h); err != nil {
				return err
			}
			if j := b.Job(r.Job); j != nil && j.Stages[0].Tasks[r.Index].Attempt != h.Attempt {
				return fmt.Errorf("invariant 2: %s holds attempt %d of task %v, but the last attempt of this task is %d", n.Name, h.Attempt, r, j.Stages[0].Tasks[r.Index].Attempt)
			}
		}
	}
	was := s.claims
	s.claims = now
	var command *book.Command
	for _, r := range refs(was) {
		if now[r] == was[r] {
			continue
		}
		if command == nil && data != nil {
			command, _ = book.Decode(data)
		}
		if !ends(command, r, was[r]) {
			return fmt.Errorf("invariant 2: the claim of attempt %d of task %v by %s is gone, but no command ended it", was[r].attempt, r, was[r].node)
		}
	}
	return nil
}

// unsaid is the longest step by which a command may move the book's time forward without being marked as a leap.
const unsaid = 2 * siteclock.Bound

// runs compares the time for which a running task must pay with the true time since the task's claim. It returns an
// error if the first is longer.
func (s *witness) runs(b *book.Book, r messages.TaskRef, h book.NodeClaim) error {
	began, j := s.began[messages.Attempt{Task: r, Number: h.Attempt}], b.Job(r.Job)
	if h.Halt == book.Ahead || j == nil || began <= s.booted { // claims from before the restart cannot be checked: the site now uses another clock
		return nil
	}
	had, claimed := b.Now().Sub(j.Stages[0].Tasks[r.Index].Claimed)-h.PausedBy(b.Now()), s.now.Sub(began)
	if had > claimed+unsaid+grace {
		return fmt.Errorf("invariant 1: attempt %d of task %v must pay for %v, but was claimed only %v ago", h.Attempt, r, had, claimed)
	}
	return nil
}

// refs returns the tasks of a map in the order of jobs and tasks. Every job here has one stage.
func refs[V any](m map[messages.TaskRef]V) []messages.TaskRef {
	return slices.SortedFunc(maps.Keys(m), func(a, b messages.TaskRef) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Index, b.Index))
	})
}

// ends reports whether a command says that a claim has ended.
func ends(c *book.Command, r messages.TaskRef, was claimed) bool {
	switch {
	case c == nil:
		return false
	case c.Lost != nil:
		return c.Lost.Node == was.node
	case c.Register != nil:
		return c.Register.Node == was.node
	case c.Exchange == nil || c.Exchange.Node != was.node:
		return false
	}
	return slices.ContainsFunc(c.Exchange.Finished, func(f agentmsg.Finished) bool { return f.Attempt == messages.Attempt{Task: r, Number: was.attempt} })
}

func (s *witness) job(j *book.Job) error {
	if j.Refused != "" {
		return fmt.Errorf("invariant 1: job %d has a hold, but its charge was refused: %s", j.ID, j.Refused)
	}
	if j.Outcome == job.Failed && !s.hopeless && j.Reason == "TaskFailed" {
		return fmt.Errorf("invariant 8: job %d failed, although its tasks fail only on a node where all tasks fail", j.ID)
	}
	if j.Charged > j.Held-j.Paid || j.Charged != 0 && j.Charged != j.Owed {
		return fmt.Errorf("invariant 2: job %d owes %v and has a hold of %v, but paid %v", j.ID, j.Owed, j.Held, j.Charged)
	}
	for k := range j.Stages[0].Tasks {
		if err := s.task(j, &j.Stages[0].Tasks[k], messages.TaskRef{Job: j.ID, Index: uint32(k)}); err != nil {
			return err
		}
	}
	return nil
}

// task checks that a task has at most one accepted attempt, and that this attempt ended well. A task with an accepted
// attempt may run again only if its gang was broken up.
func (s *witness) task(j *book.Job, t *book.Task, r messages.TaskRef) error {
	if t.Attempt < s.attempts[r] {
		return fmt.Errorf("invariant 2: task %v was at attempt %d, but is now at the earlier attempt %d", r, s.attempts[r], t.Attempt)
	}
	s.attempts[r] = t.Attempt
	first, was := s.accepted[r]
	if was && (t.Phase != book.Done || t.Attempt != first) {
		if !j.Spec.Stages[0].Gang || !j.Active() {
			return fmt.Errorf("invariant 2: attempt %d of task %v was accepted, but now the task is at attempt %d, %v", first, r, t.Attempt, t.Phase)
		}
		delete(s.accepted, r)
	}
	if t.Phase != book.Done {
		return nil
	}
	a := messages.Attempt{Task: r, Number: t.Attempt}
	if !s.exits[a] {
		return fmt.Errorf("invariant 2: attempt %d of task %v is accepted, but never ended well", t.Attempt, r)
	}
	if began := s.began[a]; !was && began > s.booted { // attempts from before the restart cannot be checked: the site now uses another clock
		if had, claimed := t.Ended.Sub(t.Claimed)-t.PausedTime(), s.now.Sub(began); had > claimed+unsaid+grace {
			return fmt.Errorf("invariant 1: attempt %d of task %v pays for %v, but was claimed only %v ago", t.Attempt, r, had, claimed)
		}
	}
	s.accepted[r] = t.Attempt
	return nil
}
