package auctioneer

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/spelling"
)

// reason is what the book alone knows of why a job is where it is.
func reason(j *book.Job) string {
	_, running, _ := j.Count()
	switch {
	case j.Refused != "":
		return "ChargeRefused"
	case !j.Active() && j.Reason == "LimitExceeded":
		return j.Limit()
	case j.State == messages.Completed && j.MemoryKilled(nameless) != "":
		return messages.EndMemoryKilled.String()
	case !j.Active():
		return j.Reason
	case j.Parked != nil && running == 0:
		return "OnHold"
	case running > 0 && allSuspended(j):
		return "Suspended"
	case running > 0:
		return "Running"
	case j.Blocked == 1 && j.Spec.Begin != 0 && len(j.Spec.AfterJobs)+len(j.Spec.AfterOK) == 0:
		return "BeginTime"
	case j.Blocked > 0:
		return "WaitingForJobs"
	}
	return "Waiting"
}

func nameless(uint32) messages.Name { return "" }

// allSuspended says whether every claimed task of a job has had to leave its slot.
func allSuspended(j *book.Job) bool {
	for i := range j.Stages {
		if s := &j.Stages[i]; s.Running-s.Ahead > s.Suspended {
			return false
		}
	}
	return true
}

// outbid says how many tasks of a job have had to leave their slots.
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

// expected explains a live job whose fate does not lie with its market now.
func expected(b *book.Book, j *book.Job, reply *messages.WhyReply) {
	_, running, _ := j.Count()
	switch o := j.Order; {
	case j.Parked != nil:
		reply.Message, reply.Change = onHold(j, running)
	case j.Blocked > 0 && j.Spec.Begin > b.Now():
		reply.Reason, reply.Message = "BeginTime", fmt.Sprintf("the job begins at %v", j.Spec.Begin)
		reply.Change = []string{"the time of the beginning"}
		if jobs := b.Awaited(j); len(jobs) > 0 {
			reply.Message += ", and waits for the end of " + named(jobs)
			reply.Change = append(reply.Change, "the end of "+named(jobs))
		}
	case j.Blocked > 0:
		jobs := b.Awaited(j)
		reply.Message = "the job waits for the end of " + named(jobs)
		reply.Change = []string{"the end of " + named(jobs)}
	case running == 0 && gathering(b, j) != "":
		reply.Reason, reply.Message, reply.Change = "Gathering", gathering(b, j), []string{"tasks that end on the node"}
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

// paused says which nodes take no tasks, though they are up and offer slots for tasks of the job that wait, and why;
// all reports whether there are no others.
func (l *queries) paused(b *book.Book, j *book.Job) (text string, all bool) {
	const named = 3
	wanted, m := map[messages.Name]bool{}, l.inForce().Find(j.Spec.Market)
	for i := range j.Stages {
		if j.Claimable(i) > 0 {
			wanted[j.Spec.Stages[i].Class] = true
		}
	}
	if m == nil || len(wanted) == 0 {
		return "", false
	}
	var stuck []string
	up := 0
	for _, n := range b.Nodes() {
		if !n.Up || !desk.Serves(m, n.Name) || !slices.ContainsFunc(n.Slots, func(s messages.ClassSlots) bool { return wanted[s.Class] }) {
			continue
		}
		up++
		if why := messages.Paused(n.Abilities); why != "" {
			stuck = append(stuck, "node "+n.Name+" "+why)
		}
	}
	all = up > 0 && len(stuck) == up
	if more := len(stuck) - named; more > 0 {
		stuck = append(stuck[:named], spelling.Number(more, "other node takes no tasks either", "other nodes take no tasks either"))
	}
	return joined(stuck...), all
}

// gathering says which nodes gather slots for tasks of a job; "" if none does.
func gathering(b *book.Book, j *book.Job) string {
	if !slices.ContainsFunc(j.Stages, func(s book.Stage) bool { return s.Nodes > 0 }) {
		return ""
	}
	var all []string
	for _, n := range b.Nodes() {
		for _, g := range n.Gatherings {
			if g.Job == j.ID {
				s := &j.Spec.Stages[g.Stage]
				all = append(all, fmt.Sprintf("a task waits for %d slots of %s (%v) on one node; %s has %d free and gathers for it until %v", g.Width, g.Class, s.Needs(), n.Name, n.Free(g.Class), g.Since.Add(book.GatherFor)))
			}
		}
	}
	return strings.Join(all[:min(len(all), 3)], "; ")
}

// named lists jobs, but not a thousand of them.
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

// onHold tells who put a job on hold, and what releases it.
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

// why explains a job: an ended one from the book, a live one from its market.
func (l *queries) why(ctx context.Context, caller messages.Name, r messages.JobRequest) (reply messages.WhyReply, err error) {
	if away := l.remoteJob(caller, r.Job); away != nil {
		return l.remote.why(ctx, away)
	}
	return l.reasons(ctx, l.seenBy(caller, r.Job), l.operates(caller))
}

// reasons explains a job to its owner or to an operator.
func (l *queries) reasons(ctx context.Context, find finding, operator bool) (reply messages.WhyReply, err error) {
	var market, owner messages.Name
	var assumed, notice string
	var cost messages.Credits
	var slotTime messages.Duration
	now := l.Clock()
	err = l.lookAt(ctx, find, func(b *book.Book, j *book.Job) error {
		market, owner = j.Spec.Market, j.Account
		if classes(j.Spec) > 1 { // with one class, any weight means the same
			assumed = j.Assumed
		}
		reply = messages.WhyReply{Job: j.ID, State: j.State, Reason: reason(j), Shares: j.PastShares()}
		if !j.Active() {
			reply.Message = epilogue(b, j)
			reply.Change = remedy(j)
			if m := l.inForce().Find(market); !j.State.Final() && m != nil && registry.Of(m).AtDeadline && j.Spec.Deadline > b.Now() {
				notice = fmt.Sprintf("the price is known at the deadline, %v", j.Spec.Deadline)
				if l.keeps(j) {
					notice += "; outputs and logs can be read then"
				}
			}
			return nil
		}
		expected(b, j, &reply)
		notice = joined(outbid(j), setbacks(b, j))
		_, running, _ := j.Count()
		stuck, all := l.paused(b, j)
		if all && running == 0 {
			reply.Reason, reply.Message, reply.Change = "NodesPaused", stuck, []string{"a node that takes tasks again"}
		} else {
			notice = joined(stuck, notice)
		}
		cost, slotTime = b.Used(j, now)
		if j.Visit != nil {
			notice = joined(notice, fmt.Sprintf("the job must end by %v, before the authorisation of its home site ends", federation.LastCall(j.Submitted, j.Visit.Until)))
		}
		if n, until := draining(b, j); n > 0 {
			notice = joined(notice, fmt.Sprintf("%s on nodes that drain: tasks that have not ended by %v run again on other nodes", spelling.Number(n, "of its tasks is", "of its tasks are"), until))
		}
		return nil
	})
	if err == nil && reply.Message == "" {
		if m := l.inForce().Market(market); m != nil {
			l.explain(now, &reply, m.SeenBy(owner, operator), cost, slotTime)
		} else {
			reply.Reason, reply.Message = "MarketClosed", "the market "+market+" does not exist any more"
		}
	}
	reply.Message = joined(reply.Message, notice)
	if assumed != "" {
		reply.Message += "; the utility function of the job is assumed (" + assumed + ")"
	}
	return reply, err
}

// explain adds what the market knows of a live job, which owes some cost by now.
func (l *queries) explain(now messages.Time, reply *messages.WhyReply, m market.Seen, cost messages.Credits, slotTime messages.Duration) {
	l.with(func(*desk.Desk) {
		m.Charged(reply.Job, cost, slotTime)
		reply.Shares, reply.Prices = m.Shares(now, reply.Job), m.Prices()
		x, known := m.Explain(now, reply.Job)
		if !known {
			reply.Message = "the job was submitted just now"
			return
		}
		reply.Reason, reply.Message, reply.Change = x.Reason, x.Message, x.Change
	})
}

// classes counts the classes of slots that a job uses.
func classes(s *messages.JobSpec) int {
	seen := map[messages.Name]bool{}
	for i := range s.Stages {
		seen[s.Stages[i].Class] = true
	}
	return len(seen)
}

// joined are sentences one after the other, but for those that are empty.
func joined(sentences ...string) string {
	return strings.Join(slices.DeleteFunc(sentences, func(s string) bool { return s == "" }), "; ")
}

// setbacks says which attempts of the job's tasks came to nothing without its end, and which ended
// well without all their processes.
func setbacks(b *book.Book, j *book.Job) string {
	name := func(node uint32) messages.Name { return b.Nodes()[node].Name }
	return joined(j.Setbacks(math.MaxInt64, name), j.MemoryKilled(name))
}

// epilogue tells how a job that is over went.
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
		s += fmt.Sprintf("; the site gave %s back, as the node of an attempt was at fault", j.Back.Words())
	}
	return s
}

// cutOutput says how much of the output of a job's tasks was not kept, if any.
func cutOutput(j *book.Job) string {
	cut, lost := 0, int64(0)
	for i := range j.Stages {
		cut, lost = cut+j.Stages[i].Cut, lost+j.Stages[i].Lost
	}
	if cut == 0 {
		return ""
	}
	return fmt.Sprintf("; %s of the output of %s are lost, because the site keeps less", spelling.Number(int(lost), "byte", "bytes"), spelling.Number(cut, "attempt", "attempts"))
}

// remedy says what would have changed the outcome.
func remedy(j *book.Job) []string {
	if len(j.Change) > 0 {
		return j.Change
	}
	switch reason(j) {
	case "TaskFailed":
		return []string{fmt.Sprintf("`candor logs %d --stderr` shows the errors of the task, and `candor rerun %d` runs the failed tasks again", j.ID, j.ID)}
	case "TimeLimit":
		return []string{"a longer time limit for the stage, or smaller tasks"}
	case "LimitExceeded", "MemoryLimit", "DiskLimit", messages.EndMemoryKilled.String():
		return []string{"a larger limit for the stage, or tasks that need less"}
	case "CannotStart":
		return []string{"a command, an interpreter and a working directory that exist on every node, and that the user of the tasks may use"}
	}
	return nil
}
