package mailbox

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
)

// engine has the running Raft of this replica, and records how far its start or stop has got.
type engine struct {
	config *Config
	guard  *guard
	raft   *raft.Raft   // the library's Raft; nil until OpenRaft has opened it
	lacks  func() error // returns why the machine should not lead; nil if it may
	check  func(command []byte) (level int, err error)

	opened   chan struct{} // closed when OpenRaft has returned
	stopping chan struct{} // closed when no more commands may be proposed
	gone     chan struct{} // closed when Raft has stopped
	unknown  chan struct{} // closed when the outcomes of all entries in flight are given up as unknown
}

// orClosed returns why the mailbox is closed or why its disk failed, or else err.
func (e *engine) orClosed(err error) error {
	if broken := e.guard.broken.Load(); broken != nil {
		return fmt.Errorf("%w: %w", ErrClosed, *broken)
	}
	select {
	case <-e.stopping:
		return ErrClosed
	default:
		return err
	}
}

// transferOut hands leadership to another replica, if one can take it. It waits at most two election timeouts.
func (e *engine) transferOut() {
	if e.raft.State() != raft.Leader || len(e.voters()) == 1 {
		return
	}
	if err := awaitFor(e.raft.LeadershipTransfer(), 2*e.config.Timeout); err != nil && !errors.Is(err, raft.ErrNotLeader) {
		e.config.Log.Warn("leadership was not handed over; the group elects a leader by itself", zap.Error(err))
	}
}

func (e *engine) servers() []raft.Server {
	f := e.raft.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	return slices.Clone(f.Configuration().Servers) // Raft gives the same slice to every caller
}

// isMember reports whether a replica is in the group, with or without a vote.
func (e *engine) isMember(id string) bool {
	return slices.ContainsFunc(e.servers(), func(s raft.Server) bool { return string(s.ID) == id })
}

func (e *engine) voters() (ids []string) {
	for _, s := range e.servers() {
		if s.Suffrage == raft.Voter {
			ids = append(ids, string(s.ID))
		}
	}
	return ids
}
