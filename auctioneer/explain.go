package auctioneer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/spelling"
)

// reason returns why a job is in its state, if the book contains the reason.
func reason(j *book.Job) string {
	_, running, _ := j.Count()
	switch {
	case j.Refused != "":
		return "ChargeRefused"
	case !j.Active() && j.Reason == "LimitExceeded":
		return j.Limit()
	case j.State == job.Completed && j.MemoryKilled(nameless) != "":
		return job.EndMemoryKilled.String()
	case !j.Active():
		return j.Reason
	case j.Parked != nil && running == 0:
		return "OnHold"
	case running > 0 && allSuspended(j):
		return "Suspended"
	case running > 0:
		return "Running"
	case j.Blocked == 1 && j.Spec.Begin != 0 && len(j.Spec.Predecessors()) == 0:
		return "BeginTime"
	case j.Blocked > 0, unpaired(j):
		return "WaitingForJobs"
	}
	return "Waiting"
}

func unpaired(j *book.Job) bool { return j.Paired && j.Claimable(0) == 0 }

func nameless(uint32) messages.Name { return "" }

func allSuspended(j *book.Job) bool {
	for i := range j.Stages {
		if s := &j.Stages[i]; s.Running-s.Ahead > s.Suspended {
			return false
		}
	}
	return true
}

// outbid says how many tasks of a job are suspended because other jobs pay more. It returns "" if no task is suspended.
func outbid(j *book.Job) string {
	n := 0
	for i := range j.Stages {
		n += j.Stages[i].Suspended
	}
	if n == 0 {
		return ""
	}
	return spelling.Number(n, "task is", "tasks are") + " suspended, and will go on when there is a slot"
}

// expected fills in the reply for a job that does not wait for a decision of its market. Such a job waits, for example,
// for a time, for other jobs or for licences.
func expected(b *book.Book, m *market.Market, j *book.Job, reply *market.WhyReply) {
	_, running, _ := j.Count()
	switch o := j.Order; {
	case j.Parked != nil:
		reply.Message, reply.Change = onHold(j, running)
	case j.Blocked > 0 && j.Spec.Begin > b.Now():
		reply.Reason, reply.Message = "BeginTime", fmt.Sprintf("the job begins at %v", j.Spec.Begin)
		reply.Change = []string{"the time of the beginning"}
		if events := awaitedEvents(b, j); len(events) > 0 {
			reply.Message += ", and waits for " + inWords(j, events)
			reply.Change = append(reply.Change, events...)
		}
	case j.Blocked > 0, running == 0 && unpaired(j):
		reply.Reason, reply.Change = "WaitingForJobs", awaitedEvents(b, j)
		reply.Message = "the job waits for " + inWords(j, reply.Change)
	case running == 0 && gathering(b, j) != "":
		reply.Reason, reply.Message, reply.Change = "Gathering", gathering(b, j), []string{"tasks that end on the node"}
	case running == 0 && unlicensed(b, j) != "":
		reply.Reason, reply.Message, reply.Change = "WaitingForLicenses", unlicensed(b, j), []string{"tasks that end and have these licences"}
	case running == 0 && reached(b, j) != nil:
		r := reached(b, j)
		reply.Reason, reply.Message = boundReason(r), inBounds(r)
		reply.Change = []string{"tasks of " + r.Name + " that end", "a higher bound: an operator sets it with at_once of market " + r.Market}
	case running == 0 && maintenance(b, m, j, reply): // maintenance has written the explanation
	case o == nil || running > 0:
	case o.At > b.Now():
		reply.Reason = "Reserved"
		reply.Message = fmt.Sprintf("%s of %s reserved for the job from %v on", spelling.Number(o.Slots, "slot", "slots"), o.Class+terms(o.Slots, " is", " are"), o.At)
		if j.Fixed != nil {
			reply.Message += fmt.Sprintf(", for %s: %s", j.Fixed.Amount.Words(), j.Fixed.Reason)
		}
		reply.Change = []string{"the time of the reservation"}
	default:
		reply.Reason, reply.Message = "Starting", fmt.Sprintf("the job may start on %s of %s; nodes claim its tasks now", spelling.Number(o.Slots, "slot", "slots"), o.Class)
	}
}

// inWords joins the events that a job waits for with "and" or "or".
func inWords(j *book.Job, events []string) string {
	if j.Spec.AfterAny {
		return strings.Join(events, " or ")
	}
	return strings.Join(events, " and ")
}

// awaitedEvents returns what a job waits for, such as "the end of job 7".
func awaitedEvents(b *book.Book, j *book.Job) (events []string) {
	ends, starts := b.Awaited(j)
	if j.Paired {
		events = append(events, fmt.Sprintf("tasks of job %v to complete: each task waits for the task of the same index", j.Spec.AfterEach))
	}
	if j.Spec.AfterAny {
		for _, id := range ends {
			events = append(events, "the end of "+named([]messages.JobID{id}))
		}
		for _, id := range starts {
			events = append(events, "the start of "+named([]messages.JobID{id}))
		}
		return events
	}
	if len(ends) > 0 {
		events = append(events, "the end of "+named(ends))
	}
	if len(starts) > 0 {
		events = append(events, "the start of "+named(starts))
	}
	return events
}

// gathering returns a text with the nodes that keep slots free for wide tasks of a job, or "" if no node does.
func gathering(b *book.Book, j *book.Job) string {
	if !slices.ContainsFunc(j.Stages, func(s book.Stage) bool { return s.Nodes > 0 }) {
		return ""
	}
	var all []string
	for _, n := range b.Nodes() {
		for _, g := range n.Gatherings {
			if g.Job == j.ID {
				s := &j.Spec.Stages[g.Stage]
				all = append(all, fmt.Sprintf("a task waits for %d slots of %s (%v) on one node; node %s has %d free and keeps slots for the task until %v", g.Width, g.Class, s.Needs(), n.Name, n.Free(g.Class), g.Since.Add(book.GatherFor)))
			}
		}
	}
	return strings.Join(all[:min(len(all), 3)], "; ")
}

// unlicensed returns a text about the tasks of a job that wait only for licences, or "".
func unlicensed(b *book.Book, j *book.Job) string {
	var all []string
	for i := range j.Stages {
		if j.Claimable(i) == 0 || b.Claimable(j, i) > 0 {
			continue
		}
		for _, of := range j.Spec.Stages[i].Licenses {
			if n := b.FreeLicenses(of.Name); n < of.Count {
				all = append(all, fmt.Sprintf("waits for %d of licence %s; %d %s free", of.Count, of.Name, n, terms(n, "is", "are")))
			}
		}
	}
	slices.Sort(all)
	return joined(slices.Compact(all)...)
}

// reached returns the bound on running tasks that keeps tasks of a job from starting, or nil if there is none.
func reached(b *book.Book, j *book.Job) *book.Reached {
	for i := range j.Stages {
		if j.Claimable(i) > 0 && b.Claimable(j, i) == 0 {
			if r := b.Reached(j, i); r != nil {
				return r
			}
		}
	}
	return nil
}

// boundReason returns the name of a bound on an account or project, such as AccountSlotsBound. The name is the reason
// why a job waits.
func boundReason(r *book.Reached) string {
	owner := "Account"
	if r.Project {
		owner = "Project"
	}
	return owner + map[string]string{"slots": "Slots", "gpus": "GPUs", "tasks": "Tasks"}[r.What] + "Bound"
}

// inBounds returns a text about a bound that keeps tasks from starting, or "".
func inBounds(r *book.Reached) string {
	if r == nil {
		return ""
	}
	owner, what := "account", strings.Replace(r.What, "gpus", "GPUs", 1)
	if r.Project {
		owner = "project"
	}
	text := fmt.Sprintf("%s %s has %d of the %d %s that it may have at once in market %s", owner, r.Name, r.Used, r.Most, what, r.Market)
	if r.Needs > 1 && r.What != "tasks" {
		text += fmt.Sprintf("; this needs %d", r.Needs)
	}
	return text
}

// maintenance reports whether maintenance windows keep tasks of a job from starting on any node. If so, it writes an
// explanation into `reply`.
func maintenance(b *book.Book, m *market.Market, j *book.Job, reply *market.WhyReply) bool {
	n, s, others := keptFrom(b, m, j, false)
	if n == nil {
		return false
	}
	reply.Reason, reply.Message = "Maintenance", beforeMaintenance(b.Now(), n, s, others)
	if n.FreeUntil(b.Now()) > b.Now() {
		reply.Change = append(reply.Change, "a time limit that ends before the maintenance")
	}
	reply.Change = append(reply.Change, "the end of the maintenance")
	return true
}

// keptSlots returns a text about free slots that waiting tasks of a job may not use because of maintenance windows, if
// these are the only free slots for them. Otherwise it returns "".
func keptSlots(b *book.Book, m *market.Market, j *book.Job) string {
	n, s, others := keptFrom(b, m, j, true)
	if n == nil {
		return ""
	}
	return beforeMaintenance(b.Now(), n, s, others)
}

// keptFrom looks for a stage of a job whose waiting tasks may start on no node of the market m because of maintenance windows. It
// returns the stage, the node that is free for the longest time, and the number of other such nodes. If `idle` is true,
// it looks only at nodes with free slots for a task.
func keptFrom(b *book.Book, m *market.Market, j *book.Job, idle bool) (kept *book.Node, s *job.Stage, others int) {
	for i := range j.Stages {
		if m == nil || len(b.Windows()) == 0 || b.Claimable(j, i) == 0 {
			continue
		}
		s, kept, others = &j.Spec.Stages[i], nil, -1
		for _, n := range b.Nodes() {
			if !n.Up || !desk.Serves(m, n.Name) || !n.Suits(s) || n.Drain != 0 && n.Window == 0 || n.Health.Quarantined != 0 || !slices.ContainsFunc(n.Slots, func(c job.ClassSlots) bool { return c.Class == s.Class && c.Slots >= s.Slots() }) ||
				idle && n.Free(s.Class) < s.Slots() {
				continue
			}
			if n.Admits(s, b.Now()) {
				kept = nil
				break
			}
			if others++; kept == nil || n.FreeUntil(b.Now()) > kept.FreeUntil(b.Now()) {
				kept = n
			}
		}
		if kept != nil {
			return kept, s, others
		}
	}
	return nil, nil, 0
}

// beforeMaintenance says when the maintenance of a node begins or ends, and why a task of a stage may not start there
// now. The argument `others` is the number of other nodes with the same problem.
func beforeMaintenance(now messages.Time, n *book.Node, s *job.Stage, others int) string {
	from := n.FreeUntil(now)
	w := n.Windows()[slices.IndexFunc(n.Windows(), func(w *market.Window) bool { return w.From == from })]
	nodes := "node " + n.Name + " is"
	if others > 0 {
		nodes = "node " + n.Name + " and " + spelling.Number(others, "other node are", "other nodes are")
	}
	why := ""
	if w.Reason != "" {
		why = " (" + w.Reason + ")"
	}
	if from <= now {
		return fmt.Sprintf("%s in maintenance until %v%s", nodes, w.To, why)
	}
	text := fmt.Sprintf("%s kept free for maintenance from %v on%s, and ", nodes, from, why)
	if s.TimeLimit == 0 {
		text += "the tasks have no time limit"
	} else {
		text += fmt.Sprintf("the time limit of a task is %v", s.TimeLimit)
	}
	if left := from.Sub(now) / messages.Duration(time.Minute) * messages.Duration(time.Minute); left > 0 {
		text += fmt.Sprintf("; tasks with a time limit of %v may start now", left)
	}
	return text
}

// Some tasks of a job may run only on certain nodes. closed returns a text about the tasks whose nodes all take no
// tasks now, or "" if there are none. The result `all` is true if the job has no other claimable tasks.
func closed(b *book.Book, j *book.Job) (text string, all bool) {
	const most = 3
	var nodes []string
	all = true
	for i := range j.Stages {
		if b.Claimable(j, i) > 0 {
			shut := closedTo(b, &j.Spec.Stages[i])
			nodes, all = append(nodes, shut...), all && len(shut) > 0
		}
	}
	if len(nodes) == 0 {
		return "", false
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	if more := len(nodes) - most; more > 0 {
		nodes = append(nodes[:most], spelling.Number(more, "other node takes no tasks either", "other nodes take no tasks either"))
	}
	return "tasks may run only on nodes that take no tasks now: " + strings.Join(nodes, ", "), all
}

// closedTo looks at a stage that names the nodes on which it may run. If none of these nodes takes tasks now, closedTo
// returns the nodes. Otherwise it returns nil.
func closedTo(b *book.Book, s *job.Stage) (nodes []string) {
	if !s.NamesNodes() {
		return nil
	}
	for _, n := range b.Nodes() {
		if n.Removed || !n.Suits(s) || !slices.ContainsFunc(n.Slots, func(c job.ClassSlots) bool { return c.Class == s.Class }) {
			continue
		}
		why := takesNone(n)
		if state := stateOf(n); state != "Up" {
			why = "is " + strings.ToLower(state)
		}
		if why == "" {
			return nil
		}
		nodes = append(nodes, n.Name+" "+why)
	}
	return nodes
}

// takesNone says why a node that is up takes no tasks now, or "". The text continues a sentence about the node.
func takesNone(n *book.Node) string {
	if n.Health.Probe.Number != 0 {
		return "takes no tasks while a probe runs on it"
	}
	return agent.Paused(n.Abilities)
}

// stateOf returns the state of a node, one of nodeStates.
func stateOf(n *book.Node) string {
	switch {
	case !n.Up && n.Stopped:
		return "Stopped"
	case !n.Up:
		return "Lost"
	case n.Drain != 0:
		return "Draining"
	case n.Health.Quarantined != 0:
		return "Quarantined"
	}
	return "Up"
}

// named lists the numbers of jobs. It shortens a long list.
func named(jobs []messages.JobID) string {
	const most = 10
	words := make([]string, 0, most)
	for _, job := range jobs[:min(len(jobs), most)] {
		words = append(words, job.String())
	}
	text := terms(len(jobs), "job ", "jobs ") + strings.Join(words, ", ")
	if more := len(jobs) - most; more > 0 {
		text += " and " + spelling.Number(more, "other job", "other jobs")
	}
	return text
}

// onHold says who put a job on hold, and what releases it.
func onHold(j *book.Job, running int) (message string, change []string) {
	message = "its owner put the job on hold: the job gets no more tasks"
	change = []string{fmt.Sprintf("a release by its owner: `candor release %d`", j.ID)}
	if j.Parked.Operator {
		message = fmt.Sprintf("the operator %s put the job on hold: the job gets no more tasks", j.Parked.By)
		change = []string{"a release by an operator"}
	}
	if running > 0 {
		message += "; " + spelling.Number(running, "running task goes on", "running tasks go on")
	}
	return message, change
}

func terms(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func joined(sentences ...string) string {
	return strings.Join(slices.DeleteFunc(sentences, func(s string) bool { return s == "" }), "; ")
}

// setbacks describes the job's failed attempts, and attempts that ended well although a process was killed.
func setbacks(b *book.Book, j *book.Job) string {
	name := func(node uint32) messages.Name { return b.Nodes()[node].Name }
	return joined(j.Setbacks(math.MaxInt64, name), j.MemoryKilled(name))
}

func epilogue(b *book.Book, j *book.Job) string {
	total, _, done := j.Count()
	s := fmt.Sprintf("%d of %s finished", done, spelling.Number(total, "task", "tasks"))
	if n := j.Failures(); n > 0 && total > 1 {
		s = spelling.Number(n, "of", "of") + " " + spelling.Number(total, "task", "tasks") + " failed, " + spelling.Number(done, "finished", "finished")
	}
	if n := j.CancelledTasks(); n > 0 {
		s += ", " + spelling.Number(n, "cancelled", "cancelled")
	}
	switch {
	case j.Message != "":
		s = j.Message
	case j.Cause != "":
		s = j.Cause + "; " + s
	}
	s = joined(s, setbacks(b, j)) + cutOutput(j)
	switch {
	case !j.State.Final():
		s += "; the charge is being settled"
	case j.Refused != "":
		s += "; the bank refused the charge: " + j.Refused
	default:
		s += fmt.Sprintf("; the charge is %s of %s held: %s", j.Charged, j.Held.Words(), j.Why)
	}
	if j.Paid != 0 || j.Gained != j.Back {
		s += fmt.Sprintf("; by the decisions of its market the job paid %s and received %s", j.Paid.Words(), (j.Gained - j.Back).Words())
	}
	if j.Back != 0 {
		s += fmt.Sprintf("; the site gave %s back, because the node of an attempt was at fault", j.Back.Words())
	}
	return s
}

// cutOutput returns a text that says how much of the output of a job's tasks was not kept. It returns "" if all of it
// was kept.
func cutOutput(j *book.Job) string {
	cut, lost := 0, int64(0)
	for i := range j.Stages {
		cut, lost = cut+j.Stages[i].Cut, lost+j.Stages[i].Lost
	}
	if cut == 0 {
		return ""
	}
	return fmt.Sprintf("; %s of the output of %s are lost, because the site limits the size of an output", spelling.Number(int(lost), "byte", "bytes"), spelling.Number(cut, "attempt", "attempts"))
}

// remedy lists what the owner could change in the job so that it would end well.
func remedy(j *book.Job) []string {
	if len(j.Change) > 0 {
		return j.Change
	}
	switch reason(j) {
	case "TaskFailed":
		return []string{fmt.Sprintf("`candor logs %d --stderr` shows the errors of the task, and `candor rerun %d` runs the failed tasks again", j.ID, j.ID)}
	case "TimeLimit":
		return []string{"a longer time limit for the stage, or smaller tasks"}
	case "LimitExceeded", "MemoryLimit", "DiskLimit", job.EndMemoryKilled.String():
		return []string{"a larger limit for the stage, or tasks that need less"}
	case "CannotStart":
		return []string{"a user of the tasks, a command, an interpreter and a working directory that exist on every node; the user must be allowed to use them"}
	}
	return nil
}

func classes(s *job.JobSpec) int {
	seen := map[messages.Name]bool{}
	for i := range s.Stages {
		seen[s.Stages[i].Class] = true
	}
	return len(seen)
}

// draining returns how many of a job's tasks will be ended because their nodes drain, and when.
func draining(b *book.Book, j *book.Job) (tasks int, until messages.Time) {
	for i := range j.Stages {
		if j.Stages[i].Running == 0 {
			continue
		}
		for k := range j.Stages[i].Tasks {
			t := &j.Stages[i].Tasks[k]
			if n := b.Nodes()[t.Node]; t.Phase == book.Claimed && n.Drain != 0 && n.Drain != book.ToTheirEnd {
				tasks++
				until = messages.Earlier(until, n.Drain)
			}
		}
	}
	return tasks, until
}

func summaryIn(b *book.Book, j *book.Job) job.JobSummary {
	s := summary(j)
	switch r := reached(b, j); {
	case s.Reason != "Waiting":
	case unlicensed(b, j) != "":
		s.Reason = "WaitingForLicenses"
	case r != nil:
		s.Reason = boundReason(r)
	}
	return s
}

func summary(j *book.Job) job.JobSummary {
	s := j.Summary()
	s.Reason = reason(j)
	s.Message = cmp.Or(j.Cause, j.Message) // the cause of the job's end
	if j.State.Final() {
		s.Used = j.Use()
	} else {
		s.Hold = j.HoldID()
	}
	return s
}
