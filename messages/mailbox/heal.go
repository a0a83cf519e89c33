package mailbox

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
)

// healer brings doubtful replicas (see standing) and replicas without a vote up to date, while this replica leads.
type healer struct {
	*engine
	leadership *leadership
	members    *members
	standing   *standing
	gate       *gate
}

// heal takes the vote from each doubtful replica, waits until the replica has caught up, and gives the vote back. A
// replica may already be without a vote, although it is not doubtful any more. Then heal only waits until the replica
// has caught up, and gives the vote back.
func (h *healer) heal() {
	tick := time.NewTicker(h.config.Timeout)
	defer tick.Stop()
	heard := time.Now() // when this replica last heard a leader, or last told the operator
	for {
		select {
		case <-h.gone:
			return
		case <-h.standing.kick:
		case <-tick.C:
		}
		all, err := h.members.Members()
		if err != nil { // another replica leads, or none does
			if last := h.raft.LastContact(); last.After(heard) {
				heard = last
			}
			if h.tellAlone(time.Since(heard)) {
				heard = time.Now()
			}
			continue
		}
		h.standing.spare.Store(Spare(all) > 0)
		doubtful := h.standing.doubtfulPeers(lately)
		for id, q := range h.standing.since(h.standing.heard, lately) {
			if _, doubts := doubtful[id]; !doubts && hasVote(all, id) {
				continue
			}
			if err := h.readmit(id, q); err != nil && !errors.Is(err, ErrNotLeader) {
				h.config.Log.Warn("a replica that may lack acknowledged entries is not up to date yet", zap.String("peer", id), zap.Error(err))
			}
		}
	}
}

func hasVote(all []Member, id string) bool {
	i := indexOf(all, id)
	return i >= 0 && all[i].Votes
}

// A doubtful replica waits for a leader. It waits for aloneFor times the election timeout, but for at most mostAlone.
// Then it logs that it found none.
const (
	aloneFor  = 10
	mostAlone = 10 * time.Second
)

// A doubtful replica may have forgotten a vote that it gave, so it must not vote. If such a replica has not heard of a
// leader for some time, perhaps no replica of the group can vote. Then tellAlone logs what an operator may have to do,
// and returns true.
func (h *healer) tellAlone(silence time.Duration) bool {
	err := h.standing.doubts()
	if err == nil || silence < min(aloneFor*h.config.Timeout, mostAlone) {
		return false
	}
	h.config.Log.Error("this replica has no leader that could bring it up to date: start the other replicas; if each of them logs this message, restore a backup, or see \"Files that were damaged\" in the runbook",
		zap.Duration("heard of no leader for", silence.Round(time.Second)), zap.Error(err))
	return true
}

// A doubtful replica may have forgotten a vote that it gave. readmit helps such a replica to get its right to vote
// back. The first step is an entry, committed by the other replicas, that takes this right away. After it, no leader
// can be elected with the help of a forgotten vote. The last step gives the right back, when the replica has all
// committed entries. Each call does the step that follows from the replica's latest report.
func (h *healer) readmit(id string, q standingReport) error {
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
	h.gate.catching.Store(id, true)
	o := h.leadership.current.Load()
	if o == nil {
		return ErrNotLeader
	}
	if now := h.standing.since(h.standing.heard, lately)[id]; now.Disk != q.Disk || now.LastTerm != o.term || now.Last < h.raft.CommitIndex() {
		return nil // the next call looks at the next report
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server := raft.ServerAddress(joinAddress(id, all[i].Address))
	if err := h.members.change(ctx, h.raft.AddVoter(raft.ServerID(id), server, 0, 0)); err != nil {
		return err
	}
	r := h.standing.promises.now()
	known, _ := r.known(id)
	h.gate.whileOpen(func() { h.standing.noteDisk(id, q.Disk, max(known.Version, q.Version)+1) })
	h.standing.trust(id)
	h.gate.catching.Delete(id)
	return nil
}
