package mailbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages/beat"
)

// A replica is weak in three cases. Its disk has no room, or its writes hang. It lacks a file that replicas get from
// their leader. Or it cannot reach an actor that a leader needs. A weak leader would make the group wait, so it hands
// leadership to a replica that is not weak. A leader whose writes hang cannot hand over, because Raft waits for the
// disk. It stops its heartbeats instead, and the others elect another leader.

// weak returns why this replica should not lead, or nil.
func (e *engine) weak() error {
	if err := e.hangs(); err != nil {
		return err
	}
	if e.guard.low.Load() {
		return fmt.Errorf("mailbox: the disk of replica %s has %d MiB free and needs %d MiB", e.config.ID, e.guard.free.Load()>>20, e.config.MinFreeBytes>>20)
	}
	if err := e.lacks(); err != nil {
		return fmt.Errorf("mailbox: replica %s: %w", e.config.ID, err)
	}
	return nil
}

func (e *engine) hangs() error { return e.guard.overdue(time.Now(), e.config.limits.slowAfter) }

// If this replica leads and is weak (see the method `weak`), yielder hands leadership over to another replica.
type yielder struct {
	*engine
	leadership *leadership
	standing   *standing
}

// yield checks from time to time whether this replica leads although it is weak, for example because its disk has no
// room. If so, it hands leadership over. It runs until the replica stops.
func (y *yielder) yield() {
	for {
		select {
		case <-y.gone:
			return
		case <-y.guard.turned:
		case <-time.After(beat.Until(y.config.Timeout / 2)):
		}
		if o := y.leadership.current.Load(); o != nil {
			y.handOver(y.weak())
		}
	}
}

// handOver hands leadership to another replica. The argument `why` says what is wrong with this replica.
func (y *yielder) handOver(why error) {
	if why == nil || y.hangs() != nil {
		return
	}
	to, found := y.strongest()
	if !found {
		return
	}
	err := awaitFor(y.raft.LeadershipTransferToServer(to.ID, to.Address), 2*y.config.Timeout)
	if err == nil || errors.Is(err, raft.ErrNotLeader) {
		y.config.Log.Warn("handed leadership over to another replica", zap.String("to", string(to.ID)), zap.NamedError("why", why))
		return
	}
	y.config.Log.Warn("cannot hand the lead over", zap.String("to", string(to.ID)), zap.NamedError("why", why), zap.Error(err))
}

// noSpace returns the error for commands while the leader's disk has no room. It is ErrNotLeader if another replica may
// have room: the other replica will soon lead, and the caller can ask again at once.
func (y *yielder) noSpace() error {
	to, found := y.strongest()
	switch {
	case found:
		return fmt.Errorf("%w: replica %s has room on its disk and takes the lead; try again in a moment", ErrNotLeader, to.ID)
	case len(y.voters()) > 1 && y.guard.lowFor() < lately:
		return fmt.Errorf("%w: the disk of replica %s has too little room; the replica looks for another leader", ErrNotLeader, y.config.ID)
	}
	return ErrNoSpace
}

// strongest returns the voter with the longest log, by recent reports. It leaves out two kinds of replicas. The first
// kind lacks entries that the replica promised to have. The second kind says why it should not lead (Weak).
func (y *yielder) strongest() (to raft.Server, found bool) {
	reports, most := y.standing.since(y.standing.heard, lately), uint64(0)
	for _, s := range y.servers() {
		q, told := reports[string(s.ID)]
		if s.Suffrage == raft.Voter && told && q.Weak == "" && q.Standing == standingWhole && q.Last >= most {
			to, found, most = s, true, q.Last
		}
	}
	return to, found
}
