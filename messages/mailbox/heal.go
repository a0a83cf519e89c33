package mailbox

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
)

// healer brings doubtful replicas up to date, as long as this replica leads.
type healer struct {
	*engine
	leadership *leadership
	members    *members
	standing   *standing
	gate       *gate
}

// heal is the leader's part: each replica that is doubtful loses its vote, catches up,
// and gets its vote back.
func (h *healer) heal() {
	tick := time.NewTicker(h.config.Timeout)
	defer tick.Stop()
	for {
		select {
		case <-h.gone:
			return
		case <-h.standing.kick:
		case <-tick.C:
		}
		if h.leadership.current.Load() == nil {
			continue
		}
		for id, q := range h.standing.sick(2 * h.config.Timeout) {
			if err := h.takeIn(id, q); err != nil && !errors.Is(err, ErrNotLeader) {
				h.config.Log.Warn("a doubtful replica is not up to date yet", zap.String("peer", id), zap.Error(err))
			}
		}
	}
}

// takeIn takes a doubtful replica in again. Its vote goes first, by an entry that the
// others commit: so this leader is none that was replaced meanwhile with a vote that
// the replica has forgotten.
func (h *healer) takeIn(id string, q reply) error {
	all, err := h.members.Members()
	if err != nil {
		return err
	}
	i := indexOf(all, id)
	if i < 0 {
		return nil
	}
	if all[i].Votes {
		if err := await(h.raft.DemoteVoter(raft.ServerID(id), 0, h.config.Timeout), h.gone); err != nil {
			return err
		}
	}
	h.gate.out(id, true)
	o := h.leadership.current.Load()
	if o == nil {
		return ErrNotLeader
	}
	if now := h.standing.sick(2 * h.config.Timeout)[id]; now.Disk != q.Disk || now.LastTerm != o.term || now.Last < h.raft.CommitIndex() {
		return nil // looked at again with its next word
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server := raft.ServerAddress(joinAddress(id, all[i].Address))
	if err := h.members.change(ctx, h.raft.AddVoter(raft.ServerID(id), server, 0, 0)); err != nil {
		return err
	}
	r := h.standing.promises.now()
	known, _ := r.known(id)
	h.standing.take(id, q.Disk, max(known.Version, q.Version)+1)
	h.standing.heals(id)
	h.gate.out(id, false)
	return nil
}
