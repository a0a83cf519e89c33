package auctioneer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/spelling"
)

// paused describes nodes that are up and offer slots that the job wants, but take no tasks now. The result
// `all` is true if such nodes exist and no other node that is up offers such slots.
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
		if !n.Up || !desk.Serves(m, n.Name) || !slices.ContainsFunc(n.Slots, func(s job.ClassSlots) bool { return wanted[s.Class] }) {
			continue
		}
		up++
		if why := takesNone(n); why != "" {
			stuck = append(stuck, "node "+n.Name+" "+why)
		}
	}
	all = up > 0 && len(stuck) == up
	if more := len(stuck) - named; more > 0 {
		stuck = append(stuck[:named], spelling.Number(more, "other node takes no tasks either", "other nodes take no tasks either"))
	}
	return joined(stuck...), all
}

// tooWide describes tasks that need more slots than the largest available node has, for example because GPUs of a
// larger node are broken. It also describes allocations for which too few such nodes are large enough. The result is ""
// if the tasks of a stage can start. A node that already has a task of the job counts, even if it drains.
func (l *queries) tooWide(b *book.Book, j *book.Job) (text, change string) {
	m := l.inForce().Find(j.Spec.Market)
	for i := range j.Stages {
		s := &j.Spec.Stages[i]
		if m == nil || j.Claimable(i) == 0 && !j.Stages[i].Broken {
			continue
		}
		largest, most, able, needs := "", 0, 0, 1
		if s.Allocation {
			needs = s.Tasks
		}
		for _, n := range b.Nodes() {
			takes := stateOf(n) == "Up" && takesNone(n) == "" || slices.ContainsFunc(slices.Collect(maps.Keys(n.Claims)), func(t messages.TaskRef) bool { return t.Job == j.ID })
			if !takes || !desk.Serves(m, n.Name) || !n.Suits(s) {
				continue
			}
			for _, c := range n.Slots {
				if c.Class == s.Class && c.Slots > most {
					largest, most = n.Name, c.Slots
				}
				if c.Class == s.Class && c.Slots >= s.Slots() {
					able++
				}
			}
		}
		switch {
		case able >= needs || most == 0 && !(s.Allocation && s.NamesNodes()):
			return "", ""
		case s.Allocation && most >= s.Slots(), most == 0:
			text = fmt.Sprintf("the job takes %d nodes with %d slots of %s each, and %s", needs, s.Slots(), s.Class,
				spelling.Number(able, "node that it may use is that large and takes tasks", "nodes that it may use are that large and take tasks"))
			change = spelling.Number(needs-able, "more such node", "more such nodes") + " that the job may use"
			if k := len(s.Nodes); k > 0 {
				change += ": it may use only " + spelling.Number(k, "node", "nodes") + ", such as " + s.Nodes[0]
			}
		default:
			text = fmt.Sprintf("a task takes %d slots of %s on one node, and the largest node that takes tasks, %s, has %d", s.Slots(), s.Class, largest, most)
			change = fmt.Sprintf("a node with %d slots of %s that takes tasks", s.Slots(), s.Class)
		}
	}
	return text, change
}

// If a job will have spent its budget within soonSpent, the explanation of the job says so.
const soonSpent = messages.Duration(10 * time.Minute)

// spent returns when a job will have spent its budget at present prices, or 0 if it costs nothing now.
func spent(b *book.Book, j *book.Job, now messages.Time) messages.Time {
	const look = messages.Duration(time.Minute)
	cost, _ := b.Used(j, now)
	then, _ := b.Used(j, now.Add(look))
	if then <= cost || cost >= j.Left() {
		return 0
	}
	return now.Add(messages.Duration((j.Left() - cost).Float() / (then - cost).Float() * float64(look)))
}

// why explains a job, from the book if it has ended, and otherwise from its market.
func (l *queries) why(ctx context.Context, caller messages.Name, r job.JobRequest) (reply marketmsg.WhyReply, err error) {
	if away := l.remoteJob(caller, r.Job); away != nil {
		return l.remote.why(ctx, away)
	}
	return l.reasons(ctx, l.seenBy(caller, r.Job), l.operates(caller))
}

func (l *queries) reasons(ctx context.Context, find finding, operator bool) (reply marketmsg.WhyReply, err error) {
	var market, owner messages.Name
	var assumed, notice string
	var cost messages.Credits
	var slotTime messages.Duration
	now := l.Clock()
	err = l.lookAt(ctx, find, func(b *book.Book, j *book.Job) error {
		market, owner = j.Spec.Market, j.Account
		if classes(j.Spec) > 1 { // with one class, the weights have no effect
			assumed = j.Assumed
		}
		reply = marketmsg.WhyReply{Job: j.ID, State: j.State, Reason: reason(j), Shares: j.PastShares()}
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
		expected(b, l.inForce().Find(market), j, &reply)
		notice = joined(outbid(j), setbacks(b, j))
		_, running, _ := j.Count()
		works := running // without the claims that wait for the other members of their gang
		for i := range j.Stages {
			works -= j.Stages[i].Gathering
			if j.Stages[i].Broken {
				works -= j.Stages[i].Leaving // attempts of a start that failed
			}
		}
		if running > 0 {
			notice = joined(unlicensed(b, j), inBounds(reached(b, j)), notice)
		}
		if reply.Reason != "Maintenance" {
			notice = joined(keptSlots(b, l.inForce().Find(market), j), notice)
		}
		shut, alone := closed(b, j)
		if alone && works == 0 && reply.Message == "" {
			reply.Reason, reply.Message, reply.Change = "NodesPaused", shut, []string{"a node that takes tasks again"}
		} else {
			notice = joined(shut, notice)
		}
		stuck, all := l.paused(b, j)
		if all && works == 0 {
			reply.Reason, reply.Message, reply.Change = "NodesPaused", stuck, []string{"a node that takes tasks again"}
		} else if shut == "" { // otherwise it names these nodes
			notice = joined(stuck, notice)
		}
		if wide, change := l.tooWide(b, j); wide != "" && works == 0 && reply.Message == "" {
			reply.Reason, reply.Message, reply.Change = mechanism.WaitingForSlots, wide, []string{change}
		}
		if m := l.inForce().Find(market); m != nil && registry.Of(m).Owes == mechanism.ForTime {
			if end := spent(b, j, now); end != 0 && end < now.Add(soonSpent) {
				notice = joined(fmt.Sprintf("at present prices its budget is spent at %v, and the job ends then; `candor change %v --budget` raises the budget", end, j.ID), notice)
			}
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
			reply.Reason, reply.Message = "MarketClosed", "the market "+market+" no longer exists"
		}
	}
	reply.Message = joined(reply.Message, notice)
	if assumed != "" {
		reply.Message += "; the utility function of the job is assumed (" + assumed + ")"
	}
	return reply, err
}

// explain adds the market's explanation of an active job. The argument `cost` is what the job owes until now.
func (l *queries) explain(now messages.Time, reply *marketmsg.WhyReply, m market.Seen, cost messages.Credits, slotTime messages.Duration) {
	l.with(func(d *desk.Desk) {
		m.Charged(reply.Job, cost, slotTime)
		reply.Shares, reply.Prices = m.Shares(now, reply.Job), m.Prices()
		x, known := m.Explain(now, reply.Job)
		if !known {
			reply.Message = "the job was submitted just now"
			return
		}
		reply.Reason, reply.Message, reply.Change = x.Reason, x.Message, x.Change
		if x.Reason == mechanism.WaitingForStage && d.Shut(reply.Job) {
			reply.Reason, reply.Message = mechanism.WaitingForTurn, "other jobs of the owner go first: the owner may use only a limited number of slots, and only a few of its jobs compete for these slots at a time"
			reply.Change = []string{"the start or the end of these jobs"}
		}
	})
}
