package desk

import (
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// These are the limits on the slots and classes that a node may offer.
const (
	maxSlots     = 1 << 16 // slots of a class on one node
	maxClasses   = 32      // classes of one node
	maxAbilities = 32
)

// Register checks the registration of a node, and returns the command for it.
func (d *Desk) Register(node messages.Name, r *agent.RegisterRequest) (*book.Command, error) {
	if err := checkNode(node, r); err != nil {
		return nil, err
	}
	if err := messages.CheckLevels("the agent of node "+node, r.Level, "the auctioneer of the site", messages.Level); err != nil {
		return nil, err
	}
	return &book.Command{Register: &book.Register{Node: node, Session: r.Session, Slots: r.Slots, Running: r.Running,
		Abilities: r.Abilities, Resources: r.Resources, Units: d.units(node, r.Slots), Labels: r.Labels, MostSuspended: r.MostSuspended, Level: r.Level}}, nil
}

// Registered returns the answer to a registration that is in the book, and renews the node's lease. The argument `end`
// has the attempts that the agent must end.
func (d *Desk) Registered(now Instant, node messages.Name, r *agent.RegisterRequest, end []messages.Attempt) agent.RegisterReply {
	d.nodes.registered(node, r.Session, now.Mono)
	delete(d.nodes.informed, node)
	return agent.RegisterReply{Lease: d.Lease, Term: d.Term, Stop: stops(end), Markets: d.serving(node, r.Slots), Level: messages.Level}
}

func checkNode(node messages.Name, r *agent.RegisterRequest) error {
	if !messages.ValidName(node) {
		return messages.Errorf(messages.Invalid, "node %q is not a valid name", node)
	}
	if r.Session == 0 {
		return messages.Errorf(messages.Invalid, "session: must not be 0; choose one at random when the agent starts")
	}
	if len(r.Slots) == 0 || len(r.Slots) > maxClasses {
		return messages.Errorf(messages.Invalid, "slots: a node offers between 1 and %d classes, not %d", maxClasses, len(r.Slots))
	}
	for i, s := range r.Slots {
		twice := slices.ContainsFunc(r.Slots[:i], func(o job.ClassSlots) bool { return o.Class == s.Class })
		if !messages.ValidFreeName(s.Class) || s.Slots < 1 || s.Slots > maxSlots || twice {
			return messages.Errorf(messages.Invalid, "slots[%d]: name each class once, with 1 to %d slots", i, maxSlots)
		}
	}
	if len(r.Abilities) > maxAbilities || slices.ContainsFunc(r.Abilities, func(a messages.Name) bool { return !messages.ValidName(a) }) {
		return messages.Errorf(messages.Invalid, "abilities: must be at most %d names", maxAbilities)
	}
	if len(r.Labels) > job.MaxMarks || slices.ContainsFunc(r.Labels, func(l messages.Name) bool { return !messages.ValidFreeName(l) }) {
		return messages.Errorf(messages.Invalid, "labels: must be at most %d words", job.MaxMarks)
	}
	if r.Resources != nil {
		if err := r.Resources.Validate("resources"); err != nil {
			return err
		}
	}
	if r.MostSuspended < 0 || r.MostSuspended > agent.MaxSuspended {
		return messages.Errorf(messages.Invalid, "most_suspended: %d must be from 1 to %d suspended tasks; leave it out for the default", r.MostSuspended, agent.MaxSuspended)
	}
	return nil
}

// MustCommit reports whether an exchange must be committed. An exchange without finished tasks and claims only renews
// the lease.
func MustCommit(b *book.Book, now messages.Time, node messages.Name, x *agent.Exchange) bool {
	if len(x.Finished)+len(x.Claims) > 0 {
		return true
	}
	n := b.Node(node)
	return n != nil && n.Examines(now)
}

// DecidingWithin is the longest time that a claim waits for a decision. It equals the longest pause of a leader between
// two steps.
const DecidingWithin = messages.Duration(500e6)

// AwaitsDecision reports whether the answer to an exchange should wait for the next step of the desk. This is so if
// three conditions hold. The exchange has no finished tasks. The market of one of its claims is about to decide. This
// market has too few unreserved tasks for the claim now.
func (d *Desk) AwaitsDecision(x *agent.Exchange) (wait bool) {
	if len(x.Finished) > 0 {
		return false // the market needs these reports before it decides
	}
	for i := range x.Claims {
		if m := d.trading.market(x.Claims[i].Market); m != nil && m.TooFewUnreserved(&x.Claims[i]) {
			d.book.Read(func(b *book.Book) { wait = wait || m.deciding || m.Stale(d.now.Wall) || b.Touched() })
		}
	}
	return wait
}

// Deciding reports whether a decision of a market is being committed.
func (d *Desk) Deciding() bool {
	return slices.ContainsFunc(d.trading.markets, func(m *traded) bool { return m.deciding })
}

// AllReserved reports whether an exchange can wait for the next log entry, because it could not get a task now. It can
// wait if it reports no ended task, if its node has no tasks, and if all tasks that it could claim are reserved for
// other claims.
func (d *Desk) AllReserved(node messages.Name, x *agent.Exchange) (all bool) {
	if len(x.Finished) > 0 {
		return false
	}
	d.book.Read(func(b *book.Book) {
		n := b.Node(node)
		all = n != nil && len(n.Claims) == 0
	})
	return all && !slices.ContainsFunc(x.Claims, func(c agent.Claim) bool {
		m := d.trading.market(c.Market)
		return m == nil || !m.AllReserved(&c)
	})
}

// Exchange returns the command for an exchange. The command has the finished tasks, and the claims with the jobs that
// the leader chose. The answer to the agent has a limited size: claims whose grants do not fit are cut off. Invalid
// claims are dropped, because the agent may not know yet that a market was removed.
//
// The book serves the claims in the order of the list. The first claim for a job is moved ahead of claims for fewer
// slots, unless those claims are for tasks that are known to be brief. Later claims for the same job are not moved:
// otherwise a job whose tasks take whole nodes would leave nothing to others. A node keeps slots free for a wide task
// only if enough slots will be free soon, or if the market itself keeps slots free for the task.
//
// When the outcome is known, the caller calls Unreserve with the [Ungranted] jobs.
func (d *Desk) Exchange(node messages.Name, x *agent.Exchange) *book.Command {
	out := &book.Exchange{Node: node, Session: x.Session, Seq: x.Seq, Finished: brief(x.Finished), Sent: x.Sent}
	if len(x.Claims) > 0 {
		var widths []int // the number of slots of the widest task of each claim in out.Claims
		d.book.Read(func(b *book.Book) {
			for _, c := range x.Claims[:min(len(x.Claims), market.MostRequests)] {
				if m := d.Market(c.Market); m != nil && m.Class(c.Class) >= 0 && c.Slots >= 1 && c.Slots <= maxSlots && Serves(&m.Config, node) {
					claim := d.resolve(b, m, node, x.Finished, &c)
					width := m.Widest(&claim)
					if n := b.Node(node); width > 1 && n != nil && !claim.Fits && !m.ReservesSlots() {
						claim.Fits = !market.HasRoomSoon(b, d.now.Wall, n, c.Class, width, x.Finished)
					}
					at := len(widths) // a wide task goes before narrow tasks, because they could take the slots that it needs; brief tasks stay before it
					for at > 0 && market.Fresh(b, &claim) && widths[at-1] < width && !market.Brief(b, &out.Claims[at-1]) {
						at--
					}
					out.Claims, widths = slices.Insert(out.Claims, at, claim), slices.Insert(widths, at, width)
				}
			}
			wanted := out.Claims
			out.Claims = market.CutToReply(b, node, wanted)
			d.Unreserve(cutOff(wanted, out.Claims))
		})
	}
	return &book.Command{Exchange: out}
}

// resolve chooses the jobs for a claim. The claim may use the slots of tasks that ended.
func (d *Desk) resolve(b *book.Book, m *market.Market, node messages.Name, ended []agent.Finished, c *agent.Claim) book.Claim {
	var lent messages.Duration
	if n := b.Node(node); n != nil && d.Level >= 2 {
		lent = market.Lent(b, d.now.Wall, n, c.Class)
	}
	claim := m.ReserveClaim(b, node, c, lent, d.rng)
	if len(claim.Jobs) > 0 || len(ended) == 0 || m.Stale(d.now.Wall) {
		return claim
	}
	if i, ok := b.Position(node); ok {
		if next, ok := m.ReserveFreedSlots(b, i, ended, c); ok {
			return next
		}
	}
	return claim
}

// cutOff returns the jobs of the claims in `wanted` that are not in `carried`. Usually there are none. There are some
// if the answer to the node is too small for all claims.
func cutOff(wanted, carried []book.Claim) (ids []messages.JobID) {
	jobs := 0
	for i := range wanted {
		jobs += len(wanted[i].Jobs)
	}
	for i := range carried {
		jobs -= len(carried[i].Jobs)
	}
	if jobs == 0 {
		return nil
	}
	kept := map[messages.JobID]bool{}
	for i := range carried {
		for _, id := range carried[i].Jobs {
			kept[id] = true
		}
	}
	for i := range wanted {
		for _, id := range wanted[i].Jobs {
			if !kept[id] {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// Ungranted returns the jobs for which the leader reserved tasks, but from which the node got no task. If the market
// itself chooses a job for each claim, these are all jobs without a granted task. In other markets, these are the jobs
// after the last one with a granted task.
func Ungranted(x *book.Exchange, grants []agent.Grant) (ids []messages.JobID) {
	granted := make(map[messages.JobID]bool, len(grants))
	for i := range grants {
		granted[grants[i].Attempt.Task.Job] = true
	}
	for i := range x.Claims {
		jobs, directs := x.Claims[i].Jobs, x.Claims[i].Most != nil
		for n := len(jobs); n > 0 && (directs || !granted[jobs[n-1]]); n-- {
			if !granted[jobs[n-1]] {
				ids = append(ids, jobs[n-1])
			}
		}
	}
	return ids
}

// Unreserve ends the reservations for jobs that a claim did not get, so that other claims can get them.
func (d *Desk) Unreserve(ungranted []messages.JobID) {
	for _, m := range d.trading.markets {
		for _, id := range ungranted {
			m.Unreserve(id)
		}
	}
}

const mostDetails = 4 * book.MaxKept

// brief shortens the reports of finished tasks for the book. Only the first tasks that did not end well keep their
// details, in one line each: all details could exceed the size of a command.
func brief(finished []agent.Finished) []agent.Finished {
	out, details := slices.Clone(finished), 0
	for i := range out {
		f := &out[i]
		if f.Detail == "" {
			continue
		}
		if details++; details > mostDetails || f.Reason() == job.NoReason {
			f.Detail = ""
			continue
		}
		f.Detail = job.Printable(f.Detail, book.MaxDetail)
	}
	return out
}

// Answer returns the answer to an exchange. If `grants` is nil, the exchange was not committed. In this case Answer
// returns an error if the node's session is over.
func Answer(b *book.Book, node messages.Name, x *agent.Exchange, grants []agent.Grant) (reply agent.ExchangeReply, err error) {
	n := b.Node(node)
	current := n != nil && n.Session == x.Session
	if grants == nil && !(current && n.Up) {
		return reply, messages.Errorf(messages.Fenced, "session %x of node %s is over; stop its tasks and register again", x.Session, node)
	}
	reply = agent.ExchangeReply{Seq: x.Seq, Grants: grants, Programs: market.Programs(b, node, grants)}
	if current {
		reply.Stop, reply.Suspended, reply.Version = stops(n.Stop), n.Halted(), n.Version
		reply.Last = lastWords(b, n, reply.Stop)
	}
	return reply, nil
}

// A node that registered before an operator applied new markets still knows the old ones. If an operator has ever
// applied markets, Inform adds the node's markets to the answer to the node's first exchange with this desk. A repeated
// answer has the markets too.
func (d *Desk) Inform(node messages.Name, slots []job.ClassSlots, reply *agent.ExchangeReply) {
	if first, known := d.nodes.informed[node]; known && first != reply.Seq {
		return
	}
	d.nodes.informed[node] = reply.Seq
	if reply.Markets = d.serving(node, slots); reply.Markets == nil {
		reply.Markets = []agent.NodeMarket{{}} // one entry without a class: on the wire an empty list means no change
	}
}

// Informs reports whether an operator has replaced the markets of the configuration by others. If so, the desk tells
// each node its markets.
func (m *Markets) Informs() bool { return m.applied }

// Vector returns the current vector of a market, for an agent that missed a change.
func (d *Desk) Vector(name messages.Name) (agent.Vector, error) {
	m := d.trading.market(name)
	if m == nil {
		return agent.Vector{}, d.Missing("market: ", name)
	}
	return m.publisher.Whole(m.Market), nil
}

// Published returns the number of the last vector of a market.
func (d *Desk) Published(name messages.Name) uint64 { return d.trading.market(name).publisher.Seq() }
