package mailbox

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/candor-grid/candor/messages/beat"
)

// introduce sends a replica a description of this leader's log. In each term, the leader must do this before it sends
// the replica anything else. The replica answers whether the leader's log has every entry that the replica has
// acknowledged.
func (g *gate) introduce(id raft.ServerID, to raft.ServerAddress, term uint64) error {
	if in, has := g.introduced.Load(id); has && in == term {
		return nil
	}
	last, _ := g.end()
	q := g.standing.tellsLog(last)
	q.Leads, q.Introduces, q.Notice = term, true, g.notice(string(id))
	a, err := g.exchange.ask(to, q)
	if err == nil && a.Asks != 0 {
		q.Asked = a.Asks
		q.Sum, _ = g.standing.sumAt(a.Asks)
		a, err = g.exchange.ask(to, q)
	}
	if err == nil && a.Term > term {
		return nil // Raft learns the term from the answer to its own message
	}
	g.answered.Store(id, term)
	switch {
	case err != nil:
		return fmt.Errorf("mailbox: cannot tell replica %s about this log: %w", id, err)
	case a.Refutes != "" && term == g.raft.CurrentTerm():
		g.whileOpen(func() { g.standing.refuted(a.Refutes) })
		return errors.New(a.Refutes)
	case !a.Same:
		return errors.New(a.Why)
	}
	g.standing.noteLevel(string(id), a.Report)
	g.introduced.Store(id, term)
	return nil
}

// knows asks another replica two questions, before it may be asked for its vote. Do both replicas belong to one group?
// Does the other replica know this replica's disk?
func (g *gate) knows(id raft.ServerID, to raft.ServerAddress) error {
	last, _ := g.end()
	mine := g.standing.tellsLog(last)
	mine.Report, mine.Reigns = g.report(), nil
	a, err := g.exchange.ask(to, mine)
	switch {
	case err != nil:
		return fmt.Errorf("mailbox: cannot ask replica %s about its log: %w", id, err)
	case a.Why != "":
		return errors.New(a.Why)
	case mine.Settled > 0 && a.Settled > 0 && !mine.Origin.same(a.Origin):
		return fmt.Errorf("mailbox: replica %s has another group's log: one of the two replicas was restored from a backup, the other was not", id)
	}
	return nil
}

// meets answers a hello, the message with which a leader or a candidate introduces itself.
func (g *gate) meets(from string, q hello) (a hello) {
	if !g.whileOpen(func() { a = g.answer(from, q) }) {
		a.Why, a.Report = errNotRunning.Error(), g.report() // without this report, a leader would take the answer for the answer of an older release
	}
	return a
}

func (g *gate) answer(from string, q hello) (a hello) {
	last, _ := g.end()
	term := g.raft.CurrentTerm()
	switch {
	case q.Leads == 0:
		a = g.standing.tellsLog(last)
		a.Reigns = nil
		if err := g.standing.mayMeet(from, q.Report); err != nil {
			a.Why = err.Error()
		}
		return a
	case q.Introduces:
		// A replica may have come back with an older log. The replica must learn this before the leader sends it the
		// missing entries.
		if a = g.standing.meet(from, q, last); a.Same {
			g.standing.noteLeader(q.Notice, q.Leads, last)
		}
	default:
		a.Same = g.standing.noteLeader(q.Notice, q.Leads, last)
	}
	a.Report = g.report()
	if term > q.Leads {
		a.Term = term
	}
	return a
}

// tell runs on every replica. A leader regularly tells all other replicas what it knows of their disks, and collects
// their reports. Any other replica regularly sends the questions that it would ask before an election, but less often
// than a leader sends. So its connections to the other replicas are open when an election begins.
func (g *gate) tell() {
	var busy sync.Map // replicas to which a message is being sent, by ID
	for tick := 0; ; tick++ {
		select {
		case <-g.gone:
			return
		case <-time.After(beat.Until(tellEvery)):
		}
		leads, term := g.raft.State() == raft.Leader, g.raft.CurrentTerm()
		if !leads && tick%askEvery != 0 {
			continue
		}
		for _, s := range g.servers() {
			if _, still := busy.LoadOrStore(s.ID, true); still || string(s.ID) == g.config.ID {
				continue
			}
			go func() {
				if leads {
					g.tellOne(s.ID, s.Address, term)
				} else {
					_ = g.knows(s.ID, s.Address)
				}
				busy.Delete(s.ID)
			}()
		}
	}
}

// tellEvery is the shortest time between two calls of the method tell by a leader.
const tellEvery = 500 * time.Millisecond

// askEvery is how many times longer a replica that does not lead waits between its questions: it asks once in
// askEvery·tellEvery, which is 2 s.
const askEvery = 4

// tellOne makes sure that this leader has introduced itself to one replica. Then it sends the replica a greeting, and
// stores the report in the replica's answer.
func (g *gate) tellOne(id raft.ServerID, to raft.ServerAddress, term uint64) {
	if g.hangs() != nil || g.introduce(id, to, term) != nil {
		return
	}
	a, err := g.exchange.ask(to, hello{Leads: term, Notice: g.notice(string(id))})
	if err != nil || !a.Same {
		g.introduced.Delete(id)
	}
	if o := g.leadership.current.Load(); err == nil && o != nil && o.term == term {
		g.whileOpen(func() { g.standing.noteReport(string(id), a.Report, term, g.raft.CommitIndex()) })
	}
}

// InstallSnapshot sends a snapshot to a replica. First it sends the list of reigns. A reign is the part of the log that
// one leader wrote, so the list tells who wrote each entry of the snapshot.
func (g *gate) InstallSnapshot(id raft.ServerID, to raft.ServerAddress, q *raft.InstallSnapshotRequest, p *raft.InstallSnapshotResponse, image io.Reader) error {
	g.introduced.Delete(id)
	if err := g.introduce(id, to, q.Term); err != nil {
		return err
	}
	return g.below.InstallSnapshot(id, to, q, p, image)
}

// heardAll reports whether each other replica has answered this leader or could not be reached.
func (g *gate) heardAll(term uint64) bool {
	return !slices.ContainsFunc(g.servers(), func(s raft.Server) bool {
		answered, has := g.answered.Load(s.ID)
		return string(s.ID) != g.config.ID && (!has || answered != term)
	})
}
