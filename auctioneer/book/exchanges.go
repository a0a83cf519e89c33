package book

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/spelling"
)

// exchange carries out what an agent reports: it ends attempts and makes claims. It returns the tasks that the node
// gets.
func (x *exchanges) exchange(c *Exchange) ([]agent.Grant, error) {
	i, n := x.nodes.find(c.Node)
	if n == nil || !n.Up || n.Session != c.Session {
		return nil, messages.Errorf(messages.Fenced, "session %x of node %s is over; stop its tasks and register again", c.Session, c.Node)
	}
	if c.Seq == n.Seq {
		return n.Grants, nil
	}
	if c.Seq < n.Seq {
		return nil, messages.Errorf(messages.Fenced, "exchange %d of node %s arrived after exchange %d was answered", c.Seq, c.Node, n.Seq)
	}
	n.holdOn(x.clock.now)
	for k := range c.Finished {
		x.finish(n, i, &c.Finished[k], c.Sent)
	}
	n.forgetStops(c.Finished)
	var grants []agent.Grant
	if !n.Examines(x.clock.now) { // if a probe is due, the node gets no other task now
		grants = x.gathered(n, i, grants)
		for k := range c.Claims {
			grants = x.claim(n, i, &c.Claims[k], grants)
		}
	}
	grants = append(grants, x.health.examine(i)...)
	n.Seq, n.Grants, n.Exchanged = c.Seq, stored(grants), x.clock.now
	return grants, nil
}

// stored returns grants in the form in which the book keeps them for a repeated request. All replicas must have the
// same state, and replicas of level 1 do not know the field Waited. So stored leaves out this field.
func stored(grants []agent.Grant) []agent.Grant {
	if !slices.ContainsFunc(grants, func(g agent.Grant) bool { return g.Waited != 0 }) {
		return grants
	}
	kept := slices.Clone(grants)
	for i := range kept {
		kept[i].Waited = 0
	}
	return kept
}

// finish ends an attempt. If the node no longer has a claim for it, nothing changes.
func (x *exchanges) finish(n *Node, node uint32, f *agent.Finished, sent messages.Time) {
	r := f.Attempt.Task
	if r.Job == 0 {
		x.health.probed(node, f)
		return
	}
	until := x.passOn(n, f, sent)
	h, ok := n.Claims[r]
	if !ok || h.Attempt != f.Attempt.Number {
		return
	}
	if h.Halt == Ahead {
		if f.Outcome == agent.Stopped {
			x.putBack(n, r, h)
			x.watch.touchNode(node)
			return
		}
		h = x.claims.begin(n, r, x.clock.now)
	}
	x.claims.uncount(r, h)
	n.drop(r)
	if h.Halt != Suspended {
		n.use(h.Class, -h.slots())
	}
	if h.Halt != Goes {
		n.Version++
	}
	n.Finished++
	x.watch.touchNode(node)
	if j := x.jobs.own(r.Job); j != nil {
		x.finishTask(j, r, node, f, x.worked(j, r, f, h, until))
	}
}

// worked returns the claim h with the end of its slot time. The end is computed from the run time that the agent
// reports. It is not later than `until`, and not later than the suspension of the attempt. Nobody pays for the slot
// time after this end, so worked subtracts the cost of that slot time from the stage's meter. It subtracts the stage's
// mean cost if the tariffs of that slot time are not known, or if the attempt was resumed after its end.
func (x *exchanges) worked(j *Job, r messages.TaskRef, f *agent.Finished, h NodeClaim, until messages.Time) NodeClaim {
	claimed, ran := j.Stages[r.Stage].Tasks[r.Index].Claimed, max(0, f.Ended.Sub(f.Started))
	// a resumed attempt was suspended until h.Since, and is not charged for that time
	end, first := claimed.Add(ran), h.Since
	if j.Spec.Stages[r.Stage].Gang { // a gang starts when all its tasks have slots
		end = end.Add(h.Paused)
	}
	h.until = until
	if h.Halt == Suspended {
		first, until = claimed.Add(h.Paused), h.Since
	}
	end = min(max(end, first), until)
	over := max(0, end.Sub(claimed)-h.Paused-ran)
	if f.Started == 0 || h.Halt != Goes && h.Halt != Suspended || end >= until && over == 0 {
		return h
	}
	if j.Active() && !h.Leaving {
		stage, known := int(r.Stage), max(end, x.meters.known(j.Spec.Market))
		meter, since, cost := &j.Stages[stage].Meter, x.meters.slot(j, stage, until), x.meters.slot(j, stage, known)
		meter.plus(&since) // leave out the time since `end`: the attempt did not have the slot
		meter.minus(&cost)
		x.meters.forgive(j, stage, messages.Duration(h.slots())*(known.Sub(end)+over))
	}
	h.until, h.Halt = end.Add(-over), Goes // the attempt ended before it was suspended
	return h
}

// An agent can claim the next task for a slot before the present task has ended. passOn is called when the present
// attempt has ended and the next attempt has its slot. passOn returns the time at which the slot changed hands. Only
// the agent knows this time, so passOn limits it: it is not before the start of the ended attempt, and not before the
// agent's last exchange. If the ended attempt's claim did not run, passOn returns the present time. Together the two
// attempts pay for the whole time of the slot.
func (x *exchanges) passOn(n *Node, f *agent.Finished, sent messages.Time) (until messages.Time) {
	until = x.clock.now
	if f.Next == nil {
		return until
	}
	r, to := f.Attempt.Task, f.Next.Attempt.Task
	h, next := n.Claims[r], n.Claims[to]
	if next.Attempt != f.Next.Attempt.Number || next.Halt != Ahead {
		return until
	}
	held := h.Attempt == f.Attempt.Number && h.Class == next.Class && (h.Halt == Goes || h.Halt == Gathers)
	if !held && n.freeSlots(next.Class) == 0 { // the agent did not yet know that the slot has another task
		x.claims.requeue(f.Next.Attempt, ofSite, job.EndPreempted)
		return until
	}
	from, by := x.jobs.own(r.Job), x.jobs.own(to.Job)
	if held && h.Halt == Goes && !h.Leaving && from != nil && from.Active() {
		first := max(from.Stages[r.Stage].Tasks[r.Index].Claimed, h.Since, n.Exchanged, x.meters.known(from.Spec.Market))
		if by != nil {
			first = max(first, x.meters.known(by.Spec.Market))
		}
		until -= min(max(sent-f.Next.At, 0), max(until-first, 0))
	}
	h = x.claims.begin(n, to, until)
	if until == x.clock.now {
		return until
	}
	x.meters.meter(from, int(r.Stage))
	cost := x.meters.slot(from, int(r.Stage), until)
	from.Stages[r.Stage].Meter.minus(&cost)
	if by != nil && by.Active() && !h.Leaving {
		cost = x.meters.slot(by, int(to.Stage), until)
		by.Stages[to.Stage].Meter.plus(&cost)
	}
	return until
}

func (x *exchanges) finishTask(j *Job, r messages.TaskRef, node uint32, f *agent.Finished, h NodeClaim) {
	stage, index := int(r.Stage), r.Index
	s := &j.Stages[stage]
	t := &s.Tasks[index]
	if j.Finishing(stage) { // this task ran no program: it only reserved slots for the first task of the allocation
		f = &agent.Finished{Attempt: f.Attempt, Started: f.Started, Ended: f.Ended, CPU: f.CPU, MaxRSS: f.MaxRSS}
	}
	t.Exit = int32(f.ExitCode)
	if f.Lost > 0 {
		s.Cut, s.Lost = s.Cut+1, s.Lost+min(f.Lost, maxLost)
	}
	x.watch.touch(j.ID)
	x.claims.attemptEnded(r, h, j.why(f, h, s.Broken), f)
	switch {
	case s.Broken && j.Active():
		x.claims.again(j, s, index)
	case f.Outcome == agent.Exited && f.ExitCode == 0:
		x.health.vouch(j, r, node)
		x.accept(j, r, f, h)
	case h.Why == job.EndTaskCancelled && j.Active():
		s.Running--
		s.cancelled(t, x.clock.now)
		x.conclude(j, stage)
	case f.Outcome == agent.Stopped && j.Active():
		x.claims.lose(r, h, ofSite) // the agent stops, or the attempt had to end for another reason
	case f.Outcome == agent.Unprepared && j.Active():
		x.claims.lose(r, h, ofSite)
		x.health.quarantine(node, cmp.Or(f.Detail, "a program of the site's failed before a task"))
	case x.health.suspect(j, r, node, f, x.claims.owes(r, h)):
		x.claims.lose(r, h, ofSite)
	default:
		x.fail(j, r, f, h)
	}
}

// maxLost is how many lost bytes of output an agent can report for one attempt.
const maxLost = 1 << 40

func (x *exchanges) accept(j *Job, r messages.TaskRef, f *agent.Finished, h NodeClaim) {
	s := &j.Stages[r.Stage]
	t := &s.Tasks[r.Index]
	x.claims.complete(r, h, ByProgram)
	t.Phase, t.Ended = Done, cmp.Or(h.until, x.clock.now)
	s.Running--
	s.Done++
	if r.Stage == 0 {
		x.claims.dependencies.paired(j.ID, r.Index)
	}
	s.SlotTime += x.claims.had(r, h)
	s.CPU += min(max(f.CPU, 0), maxCPU)
	s.MaxRSS = max(s.MaxRSS, f.MaxRSS)
	if first, end := j.gang(int(r.Stage)); j.Spec.Stages[r.Stage].Allocation && r.Index == 0 && int(r.Stage) == first {
		for i := first; i < end; i++ {
			for k := range j.Stages[i].Tasks { // stop does nothing for the first task, because it has no claim any more
				x.claims.stop(messages.Attempt{Task: messages.TaskRef{Job: j.ID, Stage: uint32(i), Index: uint32(k)}, Number: j.Stages[i].Tasks[k].Attempt})
			}
		}
	}
	x.conclude(j, int(r.Stage))
}

// fail counts a failed attempt. The task runs again, unless it has used up its attempts, or a limit of the task ended
// this attempt.
func (x *exchanges) fail(j *Job, r messages.TaskRef, f *agent.Finished, h NodeClaim) {
	s := &j.Stages[r.Stage]
	t := &s.Tasks[r.Index]
	t.Tries++
	if !h.Leaving {
		x.claims.complete(r, h, ByProgram)
	}
	limit := cmp.Or(j.Spec.Stages[r.Stage].Attempts, defaultAttempts)
	if f.Outcome == agent.Unstartable {
		limit = cmp.Or(j.Spec.Stages[r.Stage].Attempts, defaultStarts)
	}
	if j.Active() && int(t.Tries) < limit && !f.Outcome.Limited() {
		x.claims.lose(r, h, ofJob)
		return
	}
	t.Phase, t.Ended = Failed, cmp.Or(h.until, x.clock.now)
	s.Running--
	if !j.Active() {
		return
	}
	if s.Failed++; j.Failures() == 1 {
		j.ExitCode, j.Reason, j.Cause = f.ExitCode, failure(f.Outcome), x.failing(j, r, f, x.nodes.inOrder[t.Node].Name)
	}
	if j.Spec.Stages[r.Stage].OnFailure != job.GoOn {
		x.endings.end(j, job.Failed, j.Reason, j.Cause)
		return
	}
	x.conclude(j, int(r.Stage))
}

// conclude ends a stage. If all its tasks have succeeded, the stages that wait for it can start. The job ends with the
// last stage that can run.
func (x *exchanges) conclude(j *Job, stage int) {
	s := &j.Stages[stage]
	if !j.Active() || !s.over() {
		return
	}
	s.Ended = x.clock.now
	name := j.Spec.Stages[stage].Name
	for i := range j.Stages {
		if !s.short() && slices.Contains(j.Spec.Stages[i].After, name) {
			j.Stages[i].Unmet--
		}
	}
	switch {
	case j.live():
	case j.Failures() == 0 && j.CancelledTasks() == 0:
		x.endings.end(j, job.Completed, "Completed", "")
	case j.Failures() == 0:
		x.endings.end(j, job.Cancelled, j.Reason, j.Cause)
	default:
		x.endings.end(j, job.Failed, j.Reason, j.Cause)
	}
}

func failure(o agent.Outcome) string {
	switch o {
	case agent.TimedOut:
		return "TimeLimit"
	case agent.Exceeded, agent.OutOfMemory, agent.OutOfDisk:
		return "LimitExceeded"
	case agent.Unstartable:
		return "CannotStart"
	}
	return "TaskFailed"
}

// claim gives the node tasks of a class. It takes the tasks from the jobs of the claim, in the order of these jobs. A
// task gets an idle slot, or waits on the node for a slot. claim stops when there are no idle slots any more, and the
// maximum number of tasks wait.
func (x *exchanges) claim(on *Node, node uint32, c *Claim, grants []agent.Grant) []agent.Grant {
	want := c.Slots
	if c.Lent == 0 {
		want = min(want, on.Idle(c.Class)+on.ahead(c.Class, c.Ahead))
	}
	for at, id := range c.Jobs {
		if want <= 0 {
			break
		}
		j := x.jobs.own(id)
		if j == nil || !j.Active() {
			continue
		}
		most := math.MaxInt
		if at < len(c.Most) {
			most = c.Most[at] - j.SlotsOf(c.Class)
		}
		room := min(want, most)
		for i := range j.Stages {
			of := &j.Spec.Stages[i]
			if of.Class != c.Class || !on.Suits(of) || !on.Admits(of, x.clock.now) {
				continue
			}
			if of.Slots() > 1 || of.Allocation {
				before := len(grants)
				grants = x.claimWide(on, node, j, i, want, most, c, grants)
				want -= (len(grants) - before) * of.Slots()
				room, most = min(room, want), most-(len(grants)-before)*of.Slots()
				continue
			}
			n := min(room, x.licenses.claimable(j, i))
			// gangs, tasks with licences and tasks on lent slots cannot wait on the node: they are granted only with slots
			if c.Lent != 0 || of.Gang || x.licenses.limits(j, i) {
				n = min(n, on.open(c, of))
			}
			for ; n > 0; n-- {
				at, ok := x.health.next(j, i, node)
				if !ok {
					break
				}
				grants = append(grants, x.grant(on, node, j, i, at, c.Lent == 0 && on.Idle(c.Class) == 0))
				want, room, most = want-1, room-1, most-1
			}
		}
	}
	return grants
}

// register begins a session of a node, or records its new properties. It returns the attempts that the agent must stop.
func (x *exchanges) register(c *Register) (stop []messages.Attempt, err error) {
	i, n := x.nodes.find(c.Node)
	if (n == nil || n.Removed) && x.nodes.present >= MaxNodes {
		return nil, messages.Errorf(messages.Exhausted, "the site knows %d nodes, its limit", MaxNodes)
	}
	if n == nil {
		n = &Node{Name: c.Node}
		i = x.nodes.add(n)
	}
	x.watch.touchNode(i)
	if n.Up && n.Session == c.Session { // the same session: the agent repeats its request, or reports new properties of the node
		n.Abilities = c.Abilities
		return append(stop, n.Stop...), nil
	}
	if slices.Contains(n.Left, c.Session) {
		return nil, messages.Errorf(messages.Fenced, "another session of node %[2]s has replaced session %[1]x; register with a new session", c.Session, c.Node)
	}
	n.leave(c.Session)
	n.resetHealth(x.clock.now)
	stop = x.rejoin(n, c)
	n.Session, n.Up, n.Since, n.Seq, n.Grants, n.Stop = c.Session, true, x.clock.now, 0, nil, stop
	if n.Removed {
		x.nodes.present++
	}
	n.Stopped, n.Removed = false, false
	x.windows.settleNode(i, n)
	return slices.Clone(stop), nil
}

// rejoin keeps the claims of tasks that the agent still runs, and gives back the other claims. It returns the attempts
// that the agent runs without a claim.
func (x *exchanges) rejoin(n *Node, c *Register) (stop []messages.Attempt) {
	inHand := make(map[messages.TaskRef]uint32, len(c.Running))
	for _, a := range c.Running {
		inHand[a.Task] = a.Number
		if n.Claims[a.Task].Attempt != a.Number {
			stop = append(stop, a)
		}
	}
	x.giveUp(n)
	n.Level = c.Level
	n.Slots, n.Used, n.Abilities, n.MostSuspended = c.Slots, make([]int, len(c.Slots)), c.Abilities, c.MostSuspended
	n.Resources, n.Units, n.Labels = c.Resources, c.Units, c.Labels
	for _, r := range n.claimed() {
		switch h := n.Claims[r]; {
		case inHand[r] == h.Attempt:
		case h.Halt == Ahead:
			x.putBack(n, r, h)
		default:
			x.claims.uncount(r, h)
			x.giveBack(r, h, job.EndAgentLost)
			n.drop(r)
		}
	}
	n.Ahead = nil
	// the claims that remain: the gang of a claim can be broken because another claim was lost
	for _, r := range n.claimed() {
		h := n.Claims[r]
		switch h.Halt {
		case Ahead:
			n.wait(h.Class, 1)
		case Suspended:
			n.Version++ // tell the agent again
		case Gathers:
			n.use(h.Class, h.slots())
			n.Version++
		default:
			n.use(h.Class, h.slots())
		}
		if j := x.jobs.own(r.Job); j == nil || !j.Active() || h.Leaving {
			stop = append(stop, messages.Attempt{Task: r, Number: h.Attempt})
		}
	}
	return stop
}

func (x *exchanges) lost(c *Lost) int {
	i, n := x.nodes.find(c.Node)
	if n == nil || n.Session != c.Session || !n.Up {
		return 0
	}
	x.giveUp(n)
	refs := n.claimed()
	for _, r := range refs {
		if h := n.Claims[r]; h.Halt == Ahead {
			x.putBack(n, r, h)
		} else {
			x.claims.uncount(r, h)
			x.giveBack(r, h, job.EndNodeLost)
		}
	}
	n.Up, n.Since, n.Claims, n.halted, n.Stop, n.Grants, n.Ahead = false, x.clock.now, nil, nil, nil, nil, nil
	n.Used, n.Stopped = make([]int, len(n.Slots)), c.Stopped
	x.nodes.recount(n)
	x.watch.touchNode(i)
	return len(refs)
}

// The method drain makes a node take no new tasks, lets it take tasks again, or removes it. It returns the number of
// the node's claims.
func (x *exchanges) drain(c *Drain) (int, error) {
	i, n := x.nodes.find(c.Node)
	if n == nil || n.Removed {
		return 0, messages.Errorf(messages.NotFound, "there is no node %q", c.Node)
	}
	x.watch.touchNode(i)
	if c.Remove {
		return 0, x.nodes.remove(n)
	}
	if !c.Evict {
		if c.Until == 0 {
			x.windows.leave(n)
		}
		n.Window, n.DrainReason = 0, c.Reason
		if n.Drain = c.Until; c.Until == 0 && n.Health.Quarantined != 0 {
			n.lift(x.clock.now)
			n.Health.Level = 0
		}
		x.nodes.recount(n)
		return len(n.Claims), nil
	}
	if n.Drain == 0 || n.Drain != c.Until {
		return len(n.Claims), nil
	}
	for _, r := range n.claimed() {
		x.claims.requeue(messages.Attempt{Task: r, Number: n.Claims[r].Attempt}, ofSite, job.EndEvicted)
	}
	return len(n.Claims), nil
}

// failing describes the attempt whose failure ended a job.
func (x *exchanges) failing(j *Job, r messages.TaskRef, f *agent.Finished, node messages.Name) string {
	e := job.Ending{Reason: f.Reason(), ExitCode: f.ExitCode, Detail: f.Detail, Node: node}
	text := fmt.Sprintf("task %s.%d %v", j.Spec.Stages[r.Stage].Name, r.Index, e)
	tried, counted := int(f.Attempt.Number), int(j.Stages[r.Stage].Tasks[r.Index].Tries)
	if tried > 1 {
		text += fmt.Sprintf("; tried %d times", tried)
	}
	if counted < tried {
		text += " (" + spelling.Number(counted, "counts as a failure", "count as failures") + ")"
	}
	return text
}

// giveBack ends an attempt that its node lost. The task runs again, unless it was cancelled.
func (x *exchanges) giveBack(r messages.TaskRef, h NodeClaim, why job.EndReason) {
	j := x.jobs.own(r.Job)
	if h.Why != job.EndTaskCancelled || j == nil || !j.Active() {
		x.claims.giveBack(r, h, why)
		return
	}
	s := &j.Stages[r.Stage]
	s.Running--
	x.claims.attemptEnded(r, h, h.Why, nil)
	s.cancelled(&s.Tasks[r.Index], x.clock.now)
	x.watch.touch(j.ID)
	x.conclude(j, int(r.Stage))
}

// putBack undoes a claim that was made in advance and has no slot yet. The claim does not count as a failed attempt.
// Its attempt number is not used again.
func (x *exchanges) putBack(n *Node, r messages.TaskRef, h NodeClaim) {
	x.claims.uncount(r, h)
	n.drop(r)
	n.wait(h.Class, -1)
	j := x.jobs.own(r.Job)
	if j == nil {
		return
	}
	s := &j.Stages[r.Stage]
	t := &s.Tasks[r.Index]
	x.watch.touch(j.ID)
	s.Running--
	if h.Why == job.EndTaskCancelled && j.Active() {
		s.cancelled(t, x.clock.now)
		x.conclude(j, int(r.Stage))
		return
	}
	t.Phase = Pending
	s.Again = append(s.Again, r.Index)
}
