package mailbox

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/hashicorp/raft"
)

// introduce tells a replica, before anything of a term is sent to it that this replica leads, which
// log this leader has. The replica answers whether the log has what was acknowledged there.
func (g *gate) introduce(id raft.ServerID, to raft.ServerAddress, term uint64) error {
	if in, has := g.introduced.Load(id); has && in == term {
		return nil
	}
	last, _ := g.end()
	q := g.standing.tellsLog(last)
	q.Leads = term
	a, err := g.exchange.ask(to, q, g.config.Timeout)
	if err == nil && a.Term > term {
		return nil // Raft learns the term with the answer to its own message
	}
	g.answered.Store(id, term)
	switch {
	case err != nil:
		return fmt.Errorf("mailbox: cannot tell replica %s about this log: %w", id, err)
	case a.Refutes != "" && term == g.raft.CurrentTerm():
		g.standing.refuted(a.Refutes)
		return errors.New(a.Refutes)
	case !a.Same:
		return errors.New(a.Why)
	}
	g.introduced.Store(id, term)
	return nil
}

// knows asks a replica, before this one asks it for its vote, whether both are of one group.
func (g *gate) knows(id raft.ServerID, to raft.ServerAddress) error {
	last, _ := g.end()
	mine := g.standing.tellsLog(last)
	mine.Reigns = nil
	a, err := g.exchange.ask(to, mine, g.config.Timeout)
	switch {
	case err != nil:
		return fmt.Errorf("mailbox: cannot ask replica %s about its log: %w", id, err)
	case mine.Settled > 0 && a.Settled > 0 && !mine.Origin.same(a.Origin):
		return fmt.Errorf("mailbox: replica %s has another group's log: one of the two was restored from a backup without the other", id)
	}
	return nil
}

// meets answers a replica that leads, or is to ask for a vote.
func (g *gate) meets(from string, q hello) hello {
	last, _ := g.end()
	if q.Leads == 0 {
		a := g.standing.tellsLog(last)
		a.Reigns = nil
		return a
	}
	a := g.standing.meet(from, q, last)
	if term := g.raft.CurrentTerm(); term > q.Leads {
		a.Term = term
	}
	return a
}

// InstallSnapshot sends a snapshot. The replica keeps the reigns of what the snapshot holds, so
// this leader tells them again.
func (g *gate) InstallSnapshot(id raft.ServerID, to raft.ServerAddress, q *raft.InstallSnapshotRequest, p *raft.InstallSnapshotResponse, image io.Reader) error {
	g.introduced.Delete(id)
	if err := g.introduce(id, to, q.Term); err != nil {
		return err
	}
	return g.below.InstallSnapshot(id, to, q, p, image)
}

// heardAll reports whether each other replica has answered this leader, or could not be reached.
func (g *gate) heardAll(term uint64) bool {
	return !slices.ContainsFunc(g.servers(), func(s raft.Server) bool {
		answered, has := g.answered.Load(s.ID)
		return string(s.ID) != g.config.ID && (!has || answered != term)
	})
}
