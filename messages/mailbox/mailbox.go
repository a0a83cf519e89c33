package mailbox

import (
	"context"
	"errors"
	"io"
)

// Machine is the replicated state of an actor. The mailbox calls its methods one at a time. If other goroutines read
// the machine at the same time, it must use a lock.
type Machine interface {
	// Check returns the level that a replica needs to carry out a command, or an error if Apply could not read it.
	// Propose calls Check in the goroutines of its callers. If Apply could not read a command, or if the command needs
	// a higher level than the replicas agreed on (see [messages.Level]), the command does not reach the log.
	Check(command []byte) (level int, err error)
	// Apply carries out the commands of one log entry in order, and returns a result for each command, also for a
	// refused command. Apply is deterministic. It must not change the bytes of the commands. If it keeps a command, the
	// whole entry stays in memory. An error means that this build cannot read a command, or does not know its rules. An
	// error ends the replica, since other replicas may have carried out the command.
	Apply(index uint64, commands [][]byte) ([]any, error)
	// Capture returns an image of the state. Later calls of Apply do not change the image. No call of Apply runs at the
	// same time as Capture. Capture must be quick; another goroutine writes the image.
	Capture() Image
	// Restore replaces the state with an image.
	Restore(r io.Reader) error
	// Weak returns an error if this replica should not lead, for example because it lacks a file that replicas get from
	// their leader. A weak replica hands leadership to a replica that is not weak.
	Weak() error
}

// Agreeing is a machine that wants to know the level on which the replicas agreed. The mailbox calls Agreed when it
// reads this level in a snapshot or in an entry of the log.
type Agreeing interface{ Agreed(level int) }

// Image is a copy of a replica's state at one moment.
type Image interface {
	WriteTo(w io.Writer) (int64, error)
	// Digest writes the part of the image that must be equal on all replicas.
	Digest(w io.Writer) error
}

// Mailbox is one replica's access to the log.
type Mailbox interface {
	// Propose appends a command, which it copies. It returns the result of applying the command on this replica.
	// Commands proposed together share log entries. Propose returns one of four errors. ErrNotLeader: the command was
	// certainly not appended here. ErrUnknown: the command may be applied now or later. ErrNoSpace: the log's disk is
	// almost full. ErrClosed: the command was not appended, because the mailbox is closed.
	Propose(ctx context.Context, command []byte) (any, error)
	// ProposeInOrder proposes several commands, and returns for each what Propose would return. They are applied in
	// order; other commands may come between them.
	ProposeInOrder(ctx context.Context, commands [][]byte) ([]any, []error)
	// Decided waits for all commands that were proposed on this replica before the call, also for commands whose
	// callers no longer wait. It returns when each command was applied, or can no longer be appended by this replica in
	// the present term. It does not say which of these happened. To learn this, call Verify after Decided, and then
	// read the state. The error is ErrClosed, or the context's.
	Decided(ctx context.Context) error
	// Verify returns nil if this replica was the leader at some moment after the call began, and its state has
	// everything that was committed before that moment. Call Verify first, then read the state. The read is
	// linearizable, even if leadership is lost in between. Calls at the same time share one round of messages to the
	// replicas. The error is ErrNotLeader, ErrClosed, or the error of the context. After an error, the caller knows
	// nothing about the state.
	Verify(ctx context.Context) error
	// Leadership reports each change: leadership was gained (after the barrier of a new term was applied here), or
	// lost. The channel keeps only the latest change, for one receiver. So the receiver may read two gains in a row.
	// The channel is never closed.
	Leadership() <-chan Leadership
	// Status describes the group as this replica sees it.
	Status() Status
	// Close stops the replica. A leader first hands leadership to another replica. Waiting calls return. Closing again
	// does nothing.
	Close() error
}

// Leadership says whether this replica leads, and in which term.
type Leadership struct {
	Leads bool
	Term  uint64
}

// Status describes the group as one replica sees it.
type Status struct {
	ID       string
	Leader   string // ID; "" if unknown
	Term     uint64
	Applied  uint64 // index of the last applied log entry
	Entries  uint64 // number of log entries applied since the start
	Commands uint64 // number of commands applied since the start
	Replicas []string
	// Committed is the index of the last log entry that this replica knows to be committed.
	Committed uint64
}

// These are errors of Propose and Verify.
var (
	ErrNotLeader = errors.New("mailbox: not the leader")
	ErrUnknown   = errors.New("mailbox: outcome unknown")
	ErrNoSpace   = errors.New("mailbox: the log's disk is almost full")
	ErrClosed    = errors.New("mailbox: closed")
)
