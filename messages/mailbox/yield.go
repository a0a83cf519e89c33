package mailbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages/beat"
)

// A replica whose disk has no room, or whose writes hang, is a bad leader: the group
// refuses everything, or waits, while others could go on. So is one that lacks a file which
// others get from their leader, and one that cannot reach another actor that a leader needs.
// Such a replica is weak. It hands its lead to a replica that is not weak. A leader whose writes
// hang cannot even hand over, since Raft itself waits for the disk. It sends no heartbeats, so
// that the others elect another leader.

// weak returns why this replica should not lead; nil: it may.
func (e *engine) weak() error {
	if err := e.hangs(); err != nil {
		return err
	}
	if e.guard.low.Load() {
		return fmt.Errorf("mailbox: the disk of replica %s has %d MiB free, and %d are needed", e.config.ID, e.guard.free.Load()>>20, e.config.MinFreeBytes>>20)
	}
	if err := e.lacks(); err != nil {
		return fmt.Errorf("mailbox: replica %s: %w", e.config.ID, err)
	}
	return nil
}

// hangs returns an error while a write has not returned for too long for a leader.
func (e *engine) hangs() error { return e.guard.overdue(time.Now(), e.config.limits.slowAfter) }

// yielder hands the lead over while this replica is weak.
type yielder struct {
	*engine
	leadership *leadership
	standing   *standing
}

// yield looks after the lead until the replica stops.
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

// handOver hands the lead to another replica because of what is wrong with this one.
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
		y.config.Log.Warn("handed the lead over", zap.String("to", string(to.ID)), zap.NamedError("why", why))
		return
	}
	y.config.Log.Warn("cannot hand the lead over", zap.String("to", string(to.ID)), zap.NamedError("why", why), zap.Error(err))
}

// noSpace refuses a command of a leader without room. Where another replica has room, or has
// not yet told, the command can be sent again at once: the other leads in a moment.
func (y *yielder) noSpace() error {
	to, found := y.strongest()
	switch {
	case found:
		return fmt.Errorf("%w: replica %s has room on its disk, and leads in a moment", ErrNotLeader, to.ID)
	case len(y.voters()) > 1 && y.guard.lowFor() < lately:
		return fmt.Errorf("%w: the disk of replica %s has too little room; it looks who else may lead", ErrNotLeader, y.config.ID)
	}
	return ErrNoSpace
}

// strongest is the replica with a vote that is not weak and has most of the log, by what
// it reported lately.
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
