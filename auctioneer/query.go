package auctioneer

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/listing"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

const (
	defaultLimit = 100
	mostLimit    = 1000
	mostTop      = 20
)

// listJobs fills a page. It reads only some jobs at a time, so that commands can be applied meanwhile.
func (l *queries) listJobs(ctx context.Context, caller messages.Name, r job.JobsRequest) (reply job.JobsReply, err error) {
	page, err := listing.New(&r)
	if err != nil {
		return reply, err
	}
	account := cmp.Or(r.Account, caller)
	if (r.All || account != caller) && !l.operates(caller) {
		return reply, messages.Errorf(messages.PermissionDenied, "only operators may list the jobs of other accounts")
	}
	if r.All {
		account = ""
	}
	if err := l.verify(ctx); err != nil {
		return reply, err
	}
	for below, full := messages.JobID(math.MaxUint64), false; below != 0 && !full; {
		if err := ctx.Err(); err != nil {
			return reply, err
		}
		l.replica.read(func(b *book.Book) { below, full = l.show(page, b, account, below) })
	}
	unreadable := 0
	if l.Archive != nil {
		if unreadable, err = l.older(ctx, page, account); err != nil {
			return reply, err
		}
	}
	l.replica.read(func(b *book.Book) {
		reply = page.Reply(func(id messages.JobID) (job.JobSummary, bool) { return l.summaryOf(b, id) })
	})
	reply.Unreadable = unreadable
	if l.Archive != nil {
		reply.Complete = l.Archive.About().Complete
	}
	return reply, nil
}

// shownAtOnce is how many jobs a query reads before it lets commands be applied.
const shownAtOnce = 5000

// show adds the jobs of an account ("" for all) below a number to a page, newest first. It returns the number to
// continue with, or 0 at the end.
func (l *queries) show(page *listing.Page, b *book.Book, account messages.Name, below messages.JobID) (next messages.JobID, full bool) {
	looked := 0
	waiting := page.Lists(job.Waiting)
	for id := range b.Listed(account).Below(below) {
		if looked == shownAtOnce {
			return next, false
		}
		looked, next = looked+1, id
		if !page.Names(id) || !waiting && b.Packed(id) {
			continue
		}
		if s, ok := l.summaryOf(b, id); ok && page.Add(&s) {
			return 0, true
		}
	}
	return 0, false
}

// summaryOf returns the line of a job in a list, whether it runs here or at a peer.
func (l *queries) summaryOf(b *book.Book, id messages.JobID) (s job.JobSummary, ok bool) {
	if j := b.Job(id); j != nil {
		return summaryIn(b, j), true
	}
	if r := b.Remote(id); r != nil {
		return l.remote.summary(r), true
	}
	if l.Archive != nil && b.Past(id) != nil { // the job was archived after it was added to the page
		r, err := l.Archive.Find(id)
		return r.Summary, err == nil
	}
	return s, false
}

func (l *queries) job(ctx context.Context, caller messages.Name, r job.JobRequest) (reply job.JobDetail, err error) {
	if err := l.await(ctx, caller, r); err != nil {
		return reply, err
	}
	if away := l.remoteJob(caller, r.Job); away != nil {
		return l.remote.job(ctx, away)
	}
	return l.detail(ctx, l.seenBy(caller, r.Job))
}

// finding says about which job a query asks. The job is found in the book or the archive, if the caller may see it.
type finding struct {
	in  func(*book.Book) (*book.Job, error)
	old func(missing error) (book.Ended, error)
}

func (l *queries) seenBy(caller messages.Name, id messages.JobID) finding {
	return finding{
		in:  func(b *book.Book) (*book.Job, error) { return l.rules().Visible(b, caller, id) },
		old: func(missing error) (book.Ended, error) { return l.find(caller, id, missing) },
	}
}

// lookAt calls f with the job of a query, after confirming that this replica still leads.
func (l *queries) lookAt(ctx context.Context, find finding, f func(*book.Book, *book.Job) error) error {
	var missing error
	err := l.look(ctx, func(b *book.Book) error {
		j, err := find.in(b)
		if missing = err; err != nil {
			return nil
		}
		return f(b, j)
	})
	if err != nil || missing == nil {
		return err
	}
	e, err := find.old(missing)
	if err != nil || e.Job == nil {
		return cmp.Or(err, missing)
	}
	l.replica.read(func(b *book.Book) { err = f(b, e.Job) })
	return err
}

func (l *queries) detail(ctx context.Context, find finding) (reply job.JobDetail, err error) {
	err = l.lookAt(ctx, find, func(b *book.Book, j *book.Job) error {
		reply = job.JobDetail{JobSummary: summaryIn(b, j), Spec: *j.Spec, Stages: j.StageStatuses(), Shares: j.PastShares(), Notices: j.Notices}
		reply.Message = joined(reply.Message, setbacks(b, j))
		reply.Kept = l.keeps(j)
		return nil
	})
	if err == nil && reply.Shares == nil && !reply.State.Final() {
		reply.Shares = l.shares(reply.Market, reply.Job)
	}
	return reply, err
}

// keeps reports whether the market of a job hides the job's outputs and logs, because the job has not ended yet.
func (l *queries) keeps(j *book.Job) bool {
	m := l.inForce().Find(j.Spec.Market)
	return m != nil && registry.Of(m).Keeps && !j.State.Final()
}

// kept tells a node whether the market still holds back the output of a job from its owner. If the job has left the
// book, its output can be read.
func (l *queries) kept(ctx context.Context, _ messages.Name, r job.JobRequest) (reply job.KeptReply, err error) {
	err = l.look(ctx, func(b *book.Book) error {
		j := b.Job(r.Job)
		reply.Kept = j != nil && l.keeps(j)
		return nil
	})
	return reply, err
}

func (l *queries) shares(market messages.Name, id messages.JobID) (out []job.ClassShare) {
	l.with(func(d *desk.Desk) {
		if m := d.Market(market); m != nil {
			out = m.Shares(l.Clock(), id)
		}
	})
	return out
}

// reasonOf returns why a node that is up takes no tasks, or only some kinds of tasks: a drain, a quarantine, or a pause
// by its agent. It returns "" if no reason is known.
func reasonOf(n *book.Node) string {
	if !n.Up {
		return ""
	}
	reason := n.Health.Reason
	if n.Drain != 0 {
		reason = cmp.Or(n.DrainReason, reason)
	}
	return strings.Join(slices.DeleteFunc([]string{reason, agent.Paused(n.Abilities)}, func(s string) bool { return s == "" }), "; ")
}

func (l *queries) nodes(ctx context.Context, _ messages.Name, _ messages.Empty) (reply marketmsg.NodesReply, err error) {
	err = l.look(ctx, func(b *book.Book) error {
		for _, n := range b.Nodes() {
			if n.Removed {
				continue
			}
			s := marketmsg.NodeStatus{Node: n.Name, State: "Lost", Slots: n.Slots, Since: n.Since, Finished: n.Finished, Abilities: without(n.Abilities, agent.AbilitySharedEnv),
				Suspended: n.Suspended(), MostSuspended: n.SuspendedLimit(), Level: n.Level}
			switch {
			case n.Up && n.Drain != 0:
				s.State, s.Window = "Draining", n.Window
				if n.Drain != book.ToTheirEnd {
					s.DrainBy = n.Drain
				}
			case n.Up && n.Health.Quarantined != 0:
				s.State, s.Since, s.ProbeAt = "Quarantined", n.Health.Quarantined, n.Health.Retry
			case n.Up:
				s.State = "Up"
			}
			if s.Reason = reasonOf(n); n.Stopped && !n.Up {
				s.State = "Stopped"
			}
			for i, c := range n.Slots {
				s.Used = append(s.Used, job.ClassSlots{Class: c.Class, Slots: n.Used[i]})
			}
			if s.Labels = n.Labels; n.Resources != nil {
				sold := n.Sold()
				s.Resources, s.Sold = n.Resources, &sold
			}
			reply.Nodes = append(reply.Nodes, s)
		}
		reply.Licenses, reply.Windows = b.Licenses(), b.Windows()
		return nil
	})
	slices.SortFunc(reply.Nodes, func(a, b marketmsg.NodeStatus) int { return cmp.Compare(a.Node, b.Node) })
	return reply, err
}

func without(names []messages.Name, name messages.Name) []messages.Name {
	return slices.DeleteFunc(slices.Clone(names), func(n messages.Name) bool { return n == name })
}

func (l *queries) listMarkets(ctx context.Context, caller messages.Name, _ messages.Empty) (reply marketmsg.MarketsReply, err error) {
	if err := l.verify(ctx); err != nil {
		return reply, err
	}
	reply.Slurm = l.Slurm
	charged := map[messages.Name]bool{} // markets that charge by time
	l.with(func(d *desk.Desk) {
		reply.Version = d.Version + 1
		for _, config := range d.Configs {
			m := d.Market(config.Name).SeenBy(caller, l.operates(caller))
			t := registry.Of(&config)
			s := marketmsg.MarketStatus{Market: config, Bid: t.Bid, Raises: t.Raises.Names(), Gains: t.Gains, Reserves: t.Reserves, Prices: m.Prices(), Term: l.number, Seq: d.Published(config.Name), Top: m.Top(l.Clock(), mostTop)}
			s.Running = m.Started()
			s.Waiting = m.Jobs() - s.Running
			s.Next = m.Next()
			charged[config.Name] = len(m.Orders().Tariffs) > 0
			reply.Markets = append(reply.Markets, s)
		}
	})
	l.replica.read(func(b *book.Book) {
		if err = b.Unchanged(reply.Version); err != nil {
			return // the leader begins a new term, and its list could still have a removed market
		}
		for _, p := range b.Promises() {
			if i := slices.IndexFunc(reply.Markets, func(m marketmsg.MarketStatus) bool { return m.Market.Name == p.Market }); i >= 0 {
				reply.Markets[i].Promises = &marketmsg.Promises{Kept: p.Kept, Broken: p.Broken}
			}
		}
		for i := range reply.Markets {
			if charged[reply.Markets[i].Market.Name] { // the book may still have tariffs of an earlier mechanism
				reply.Markets[i].Tariffs = market.SealTariffs(tariffs(b, reply.Markets[i].Market.Name), reply.Markets[i].Prices)
			}
			for k := range reply.Markets[i].Top {
				top := &reply.Markets[i].Top[k]
				if j := b.Job(top.Job); j != nil && (top.Account == caller || l.operates(caller)) {
					top.Name = j.Spec.Name
				}
			}
		}
	})
	return reply, err
}

func (l *queries) status(context.Context, messages.Name, messages.Empty) (messages.StatusReply, error) {
	s := l.box.Status()
	return messages.StatusReply{Actor: messages.Auctioneer, Site: l.Site, Replica: l.Replica, Leader: s.Leader, Term: s.Term,
		Applied: s.Applied, Replicas: s.Replicas}, nil
}

func (l *queries) reservations(ctx context.Context, caller messages.Name, r marketmsg.ReservationsRequest) (reply marketmsg.ReservationsReply, err error) {
	if m := l.inForce(); r.Market != "" && m.Find(r.Market) == nil {
		return reply, m.Missing("market: ", r.Market)
	}
	err = l.look(ctx, func(b *book.Book) error {
		for j := range b.Ordered {
			if o := j.Order; r.Market == "" || j.Spec.Market == r.Market {
				place := marketmsg.ReservedSlots{Market: j.Spec.Market,
					Class: o.Class, Slots: o.Slots, Start: o.At, End: o.At.Add(j.Spec.Length), State: j.State}
				if j.Account == caller || l.operates(caller) {
					place.Job, place.Account = j.ID, j.Account
				}
				reply.Reservations = append(reply.Reservations, place)
			}
		}
		return nil
	})
	slices.SortFunc(reply.Reservations, func(a, b marketmsg.ReservedSlots) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Job, b.Job))
	})
	return reply, err
}

// await waits until the job of a request has ended, but at most as long as the request says. It does not wait for a job
// that the caller may not see.
func (l *queries) await(ctx context.Context, caller messages.Name, r job.JobRequest) error {
	if r.Wait < 0 {
		return messages.Errorf(messages.Invalid, "wait: must not be negative")
	}
	if r.Wait == 0 {
		return nil
	}
	ended, leave := l.endings.enter(caller, r.Job)
	defer leave()
	if ended == nil {
		return nil
	}
	sees, over := l.remote.find(caller, r.Job) != nil, false
	l.replica.read(func(b *book.Book) {
		_, err := l.rules().Visible(b, caller, r.Job)
		sees, over = sees || err == nil, !unfinished(b, r.Job)
	})
	if !sees || over {
		return nil
	}
	enough := time.NewTimer(min(r.Wait, job.MostWait).Std())
	defer enough.Stop()
	select {
	case <-ended:
	case <-enough.C:
	case <-l.life.Done():
		return messages.Errorf(messages.NotLeader, "another leader takes over; ask again")
	case <-ctx.Done():
	}
	return nil
}

func limit(n int) (int, error) {
	if n < 0 || n > mostLimit {
		return 0, messages.Errorf(messages.TooLarge, "limit: must be between 1 and %d, or 0 for %d", mostLimit, defaultLimit)
	}
	return cmp.Or(n, defaultLimit), nil
}
