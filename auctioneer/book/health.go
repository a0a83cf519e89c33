package book

import (
	"fmt"
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/money"
)

// probeAttempt returns the attempt that stands for a probe. Its job number is 0. No real job has this number, so no
// attempt of a real job is equal to it.
func probeAttempt(number uint32) messages.Attempt { return messages.Attempt{Number: number} }

// ProbeProgram returns the program of a probe. It is a script, so a probe tests all that a task needs to start.
func ProbeProgram(class messages.Name) agent.Program {
	return agent.Program{StageName: "probe", JobName: "probe", Account: money.SiteAccount, Class: class, Tasks: 1, Script: ":\n",
		TimeLimit: ProbeWithin}
}

type health struct {
	jobs    *jobs
	nodes   *nodes
	meters  *meters
	effects *effects
	watch   *watch
	clock   *clock
}

// examine ends a probe that takes too long, and returns a new probe if one is due.
func (s *health) examine(i uint32) []agent.Grant {
	n := s.nodes.inOrder[i]
	if !n.Examines(s.clock.now) || len(n.Slots) == 0 {
		return nil
	}
	h := &n.Health
	s.watch.touchNode(i)
	if late := h.Probe; late.Number != 0 {
		n.Stop = append(n.Stop, probeAttempt(late.Number))
		h.Probe = Probe{}
		s.quarantine(i, fmt.Sprintf("a probe did not end within %v", ProbeWithin))
		return nil
	}
	h.Probes++
	h.Probe, h.Probed = Probe{h.Probes, s.clock.now}, s.clock.now
	return []agent.Grant{{Attempt: probeAttempt(h.Probes)}}
}

func (s *health) probed(i uint32, f *agent.Finished) {
	n := s.nodes.inOrder[i]
	h := &n.Health
	if h.Probe.Number == 0 || h.Probe.Number != f.Attempt.Number {
		return
	}
	h.Probe = Probe{}
	s.watch.touchNode(i)
	switch {
	case f.Outcome == agent.Stopped: // a stopped attempt says nothing about the node
		h.Retry = s.clock.now.Add(firstRetry)
	case f.Outcome == agent.Exited && f.ExitCode == 0:
		h.Cleared = s.clock.now
		h.Passed++
		if h.Quarantined != 0 {
			n.lift(s.clock.now)
			s.nodes.recount(n)
		}
	default:
		s.quarantine(i, "a probe "+ending(f))
	}
}

func ending(f *agent.Finished) string {
	text := "ended as " + f.Outcome.String()
	switch f.Outcome {
	case agent.Exited:
		text = fmt.Sprintf("ended with exit code %d", f.ExitCode)
	case agent.Unstartable:
		text = "could not be started"
	}
	if f.Detail == "" {
		return text
	}
	return text + ": " + f.Detail
}

// quarantine stops a node from getting work. Some attempts may have failed quickly on this node. These attempts no
// longer count against the limits of their tasks.
func (s *health) quarantine(i uint32, reason string) {
	h := &s.nodes.inOrder[i].Health
	if h.Back != 0 && h.Quarantined == 0 && s.clock.now.Sub(h.Back) >= levelResetAfter {
		h.Level = 0
	}
	if h.Quarantined == 0 {
		h.Quarantined = s.clock.now
		s.nodes.recount(s.nodes.inOrder[i])
		for k := range h.Failures {
			s.forgive(&h.Failures[k])
		}
	}
	h.Reason, h.Retry = reason, s.clock.now.Add(min(firstRetry<<min(h.Level, 10), lastRetry))
	if alone := s.nodes.lastOf(i); alone != "" {
		h.Reason += "; no other node has slots of class " + alone
		h.Retry = s.clock.now.Add(firstRetry) // probe soon, because jobs wait for the node
	}
	h.Level++
	s.watch.touchNode(i)
}

// forgive subtracts the time of a failed attempt from its job's meter, so the job does not pay for it. If the task runs
// again, the attempt no longer counts as a failure of the task.
func (s *health) forgive(f *Failure) {
	r := f.Task
	j := s.jobs.own(r.Job)
	if j == nil {
		return
	}
	if !j.Active() {
		s.refund(j, f)
		return
	}
	s.watch.touch(j.ID)
	s.meters.meter(j, int(r.Stage))
	s.meters.forgive(j, int(r.Stage), f.Had)
	t, d := &j.Stages[r.Stage].Tasks[r.Index], j.Doubts[place(r)]
	if d != nil && t.Tries > 0 && d.Spared < mostSpared && (t.Phase == Pending || t.Phase == Claimed) {
		if t.Tries--; t.Tries == 0 && t.Ender == ByProgram {
			j.Stages[r.Stage].reopen(t, f.Had)
		}
		d.Spared++
	}
}

// refund adds an effect that returns what an ended job paid for the time of a failed attempt. Charges that do not
// depend on slot time stay.
func (s *health) refund(j *Job, f *Failure) {
	before, _ := s.meters.used(j, 0)
	j.Stages[f.Task.Stage].Meter.forgive(f.Had)
	after, _ := s.meters.used(j, 0)
	before, after = min(before, j.Left()), min(after, j.Left())
	contended := slices.ContainsFunc(s.meters.tariffs[j.Spec.Market], func(t Tariff) bool { return t.Contention })
	if before == after || !j.State.Final() || j.Charged-j.Back != before || contended || j.Visit != nil || j.Order != nil || j.Contract != nil {
		return
	}
	j.Gained, j.Back = j.Gained+before-after, j.Back+before-after
	s.effects.effect(Refund, j.ID, Leg{To: j.ID, Amount: before - after, Reason: "back from the site: the node of an attempt was at fault"})
	s.watch.touch(j.ID)
}

func quick(f *agent.Finished) bool {
	switch f.Outcome {
	case agent.Unstartable:
		return true
	case agent.Exited:
		return f.ExitCode != 0 && f.Started != 0 && f.Ended >= f.Started && f.Ended.Sub(f.Started) <= QuickEnd
	}
	return false
}

// suspect records that a task failed on a node as soon as it started, and reports whether the attempt is spared. A
// spared attempt does not count against the task's limit of attempts, and the job does not pay for it. A task can have
// at most mostSpared spared attempts.
//
// An attempt is spared under two conditions. First, another node can run the task. Second, the program never started,
// or the node takes no new work because of its health.
func (s *health) suspect(j *Job, r messages.TaskRef, i uint32, f *agent.Finished, had messages.Duration) (spared bool) {
	if !quick(f) || !j.Active() {
		return false
	}
	n, class := s.nodes.inOrder[i], j.Spec.Stages[r.Stage].Class
	h := &n.Health
	if len(h.Failures) >= mostFailures {
		h.Failures = h.Failures[1:]
	}
	h.Failures = append(slices.Clone(h.Failures), Failure{Task: r, Account: j.Account, Payer: j.Payer, Class: class, At: s.clock.now, Had: had})
	d := j.Doubts[place(r)]
	if d == nil {
		if j.Doubts == nil {
			j.Doubts = map[[2]uint32]*Doubt{}
		}
		d = new(Doubt)
		j.Doubts[place(r)] = d
	}
	if at, known := slices.BinarySearch(d.Nodes, i); !known {
		d.Nodes = slices.Insert(d.Nodes, at, i)
	}
	if d.Spared >= mostSpared || !s.nodes.elsewhere(class, d.Nodes) || f.Outcome != agent.Unstartable && !n.barred() {
		if h.Quarantined != 0 { // the node's earlier failures no longer count
			s.meters.meter(j, int(r.Stage))
			s.meters.forgive(j, int(r.Stage), had)
		}
		return false
	}
	d.Spared++
	h.Failures[len(h.Failures)-1].Had = 0
	return true
}

// vouch records that a task ended well on a node. Earlier failures of tasks of the same class no longer count against
// this node. Earlier failures of this task on other nodes now count against those nodes.
func (s *health) vouch(j *Job, r messages.TaskRef, i uint32) {
	h, class := &s.nodes.inOrder[i].Health, j.Spec.Stages[r.Stage].Class
	h.well(class, s.clock.now)
	h.Passed = 0
	if len(h.Failures) > 0 && h.Quarantined == 0 {
		h.Failures = slices.DeleteFunc(slices.Clone(h.Failures), func(f Failure) bool { return f.Class == class })
		h.Reason = ""
	}
	d := j.Doubts[place(r)]
	if d == nil {
		return
	}
	delete(j.Doubts, place(r))
	for _, k := range d.Nodes {
		if k != i {
			s.blame(k, r)
		}
	}
}

// blame notes that a task failed at once on node i, and later ended well on another node. If several accounts have such
// tasks, blame quarantines node i. All accounts of a peer site count as one account, because the peer can create any
// number of them.
func (s *health) blame(i uint32, r messages.TaskRef) {
	n := s.nodes.inOrder[i]
	h := &n.Health
	h.Failures = slices.Clone(h.Failures)
	var accounts, payers []messages.Name
	for k := range h.Failures {
		f := &h.Failures[k]
		f.Elsewhere = f.Elsewhere || f.Task == r
		if f.Elsewhere && !h.endsWell(f.Class, s.clock.now) {
			accounts, payers = append(accounts, messages.Participant(f.Account)), append(payers, messages.Participant(f.Payer))
		}
	}
	several := min(distinct(accounts), distinct(payers))
	if several < 2 || !n.Up || h.Quarantined != 0 {
		return
	}
	reason := fmt.Sprintf("tasks of %d accounts failed there at once and ended well on other nodes", several)
	if alone := s.nodes.lastOf(i); alone != "" {
		h.Reason = reason + "; the node takes work because no other has slots of class " + alone
		s.watch.touchNode(i)
		return
	}
	s.quarantine(i, reason)
}

func distinct(names []messages.Name) int {
	slices.Sort(names)
	return len(slices.Compact(names))
}

// avoids reports whether a task should wait for another node than this one.
func (s *health) avoids(j *Job, stage int, index, node uint32) bool {
	d := j.Doubts[[2]uint32{uint32(stage), index}]
	if d == nil || !slices.Contains(d.Nodes, node) {
		return false
	}
	return s.clock.now.Sub(j.Stages[stage].Tasks[index].Ended) < avoidFor && s.nodes.elsewhere(j.Spec.Stages[stage].Class, d.Nodes)
}

// The method next examines at most mostLooked tasks of a stage's list Again (tasks to be run again).
const mostLooked = 256

// next chooses the task of a stage that a node should claim next. If this task was claimed before, next returns its
// position in the list Again. For a task that was never claimed, next returns −1. The second result is false if there
// is no task.
func (s *health) next(j *Job, stage int, node uint32) (int, bool) {
	of := &j.Stages[stage]
	for k, index := range of.Again[:min(len(of.Again), mostLooked)] {
		if of.Tasks[index].Phase == Pending && !s.avoids(j, stage, index, node) {
			return k, true
		}
	}
	if of.gone > 0 {
		of.forgetGone()
		return s.next(j, stage, node)
	}
	return -1, len(of.Tasks) < of.Total && !j.Paired
}
