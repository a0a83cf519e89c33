package faults

import (
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// submit admits a bid, holds its budget, and then enters the job. The request may be repeated.
func (l *leader) submit(who messages.Name, key string, spec *job.JobSpec, answer func(any)) {
	if j := l.book().ByKey(who, key); j != nil && l.Bug != NoDedupe {
		answer(j.ID)
		return
	}
	if err := l.admit(who, spec); err != nil {
		answer(err)
		return
	}
	version, seen := l.desk.Version+1, l.book().LastEffect()+1
	hold := "job/" + who + "/" + key
	t := money.Transfer{ID: hold, Kind: money.Hold, Debit: who, Credit: money.SiteAccount, Amount: spec.Budget, Member: who, Timeout: holdFor}
	l.transfer(l.r.host.name, l.gone, []money.Transfer{t}, func(came []money.TransferResult, _ error) {
		if err := came[0].Error; err != nil {
			answer(err)
			return
		}
		s := &book.Submit{Account: who, Key: key, Digest: []byte(key), Payer: who, Spec: spec, Hold: hold, Held: spec.Budget, MarketsVersion: version, Seen: seen}
		l.propose(&book.Command{Submit: s}, func(result any) {
			if receipt, ok := result.(book.Receipt); ok {
				answer(receipt.Job)
			}
		})
	})
}

func (l *leader) admit(who messages.Name, spec *job.JobSpec) error {
	now, m := l.r.clock(), l.desk.Market(l.site.market.Name)
	return m.Admit(now, m.Bid(0, who, now, spec, nil))
}

func (l *leader) register(a *agent, q *agentmsg.RegisterRequest, answer func(*agentmsg.RegisterReply, error)) {
	c, err := l.desk.Register(a.name, q)
	if err != nil {
		answer(nil, err)
		return
	}
	l.propose(c, func(result any) {
		if err, refused := result.(error); refused {
			answer(nil, err)
		} else if !l.gone() {
			reply := l.desk.Registered(l.instant(), a.name, q, result.([]messages.Attempt))
			l.site.heard[a.name] = l.now
			if l.Bug == LeaseEarly {
				reply.Lease = lease
			}
			answer(&reply, nil)
		}
	})
}

// exchange answers an agent's request. If the market will soon decide about a claim in the request, the answer waits
// for the decision. If nothing must be committed, the answer waits until a majority confirms that this leader still
// leads.
func (l *leader) exchange(a *agent, x *agentmsg.Exchange, answer func(*agentmsg.ExchangeReply, error)) {
	heard := desk.Heard{Node: a.name, At: l.instant().Mono}
	if !desk.MustCommit(l.book(), l.r.clock(), a.name, x) {
		l.r.verify(func() { l.reply(x, heard, nil, answer) })
		return
	}
	until := l.now.Add(desk.DecidingWithin)
	var try func()
	try = func() {
		switch {
		case l.gone():
		case l.now < until && l.desk.AwaitsDecision(x):
			l.late = append(l.late, try)
			l.plan(until.Sub(l.now))
		default:
			l.commitExchange(a, x, heard, answer)
		}
	}
	try()
}

func (l *leader) commitExchange(a *agent, x *agentmsg.Exchange, heard desk.Heard, answer func(*agentmsg.ExchangeReply, error)) {
	c := l.desk.Exchange(a.name, x)
	if l.Bug == BlindToHoles {
		for i := range c.Exchange.Finished { // inserted bug: quick failures of tasks are hidden
			if f := &c.Exchange.Finished[i]; f.Outcome == agentmsg.Unstartable || f.Outcome == agentmsg.Exited {
				f.Outcome, f.Started = agentmsg.Exited, 0
			}
		}
	}
	l.propose(c, func(result any) {
		grants, _ := result.([]agentmsg.Grant)
		l.desk.Unreserve(desk.Ungranted(c.Exchange, grants))
		if err, refused := result.(error); refused {
			answer(nil, err)
		} else {
			l.reply(x, heard, grants, answer)
		}
	})
}

func (l *leader) reply(x *agentmsg.Exchange, heard desk.Heard, grants []agentmsg.Grant, answer func(*agentmsg.ExchangeReply, error)) {
	if l.gone() {
		return
	}
	if l.Bug == RerunMoved {
		for i := range grants {
			grants[i].Position = 0
		}
	}
	reply, err := desk.Answer(l.book(), heard.Node, x, grants)
	if err != nil {
		answer(nil, err)
		return
	}
	if n := l.book().Node(heard.Node); l.desk.Informs() && n != nil && n.Session == x.Session {
		l.desk.Inform(heard.Node, n.Slots, &reply)
	}
	if l.Bug == DirectiveOnce {
		reply.Stop, reply.Suspended, reply.Version = nil, nil, 0
	}
	l.site.heard[heard.Node] = max(l.site.heard[heard.Node], epoch.Add(heard.At))
	l.tell(heard)
	answer(&reply, nil)
}
