package mailbox

import (
	"context"
	"errors"
	"io"
)

// Machine is an actor's replicated state. Its methods are called one at a
// time, never concurrently with each other; a machine that is also read by
// others guards itself.
type Machine interface {
	// Check returns an error for a command that Apply could not read. Propose calls it, on the
	// goroutines of its callers, so that no such command reaches the log.
	Check(command []byte) error
	// Apply carries out the commands of one log entry in order, and returns a
	// result for each. It is deterministic, and answers a command that is
	// refused with a result that says so. The commands' bytes are
	// not to be changed, and keeping one keeps the whole entry in memory.
	// The error is for a command that this build cannot read, or that is of rules which it does
	// not know. It ends the replica: other replicas may have carried the command out.
	Apply(index uint64, commands [][]byte) ([]any, error)
	// Capture returns an image of the state that later Applies leave
	// untouched. It is called between Applies and must be quick; the image is
	// written aside.
	Capture() Image
	// Restore replaces the state by an image.
	Restore(r io.Reader) error
	// Weak returns why this replica should not lead, as what it lacks beside the state, which
	// replicas get from their leader; nil: nothing. Such a replica lets another one lead that
	// has no reason not to.
	Weak() error
}

// Image is a captured state.
type Image interface {
	WriteTo(w io.Writer) (int64, error)
	// Digest writes the part of the image that must be the same at each replica.
	Digest(w io.Writer) error
}

// Mailbox is one replica's end of the log.
type Mailbox interface {
	// Propose appends a command and returns the result that applying it gave
	// on this replica. Commands proposed together share log entries. The
	// command is copied before Propose returns.
	// The error is ErrNotLeader if the command was certainly not appended
	// here, ErrUnknown if it may or may not be applied now or later,
	// ErrNoSpace if the log's disk is almost full and command growth is refused,
	// ErrClosed if it was not appended because the mailbox is closed.
	Propose(ctx context.Context, command []byte) (any, error)
	// ProposeInOrder proposes several commands, and returns what Propose would of each. They
	// are applied one after another in their order, maybe with others between them.
	ProposeInOrder(ctx context.Context, commands [][]byte) ([]any, []error)
	// Decided waits until each command that was proposed here before the call is applied, or is
	// never appended by this replica in its term; also one whose proposer has given up. It adds
	// nothing to the log. Verify after that, then read the state: it shows what became of them.
	// The error is ErrClosed, or the context's.
	Decided(ctx context.Context) error
	// Verify returns nil if this replica was the leader at some moment after
	// the call began, and its state holds all that was committed before the
	// call began. Verify first, then read the state: the read is linearizable,
	// even if leadership is lost in between, because it shows everything that
	// was answered before the call and nothing that was not committed. (Reading
	// first costs the same round, and is only right if the reader also knows
	// that one and the same term, past its barrier, covers both the read and the
	// verification.) Concurrent calls share rounds. Any error means that nothing
	// may be concluded: ErrNotLeader, ErrClosed, or the context's.
	Verify(ctx context.Context) error
	// Leadership reports each change: gained after the barrier of a new term has
	// been applied here, and lost. Only the latest is kept, for one receiver, so
	// gained may follow gained with a higher term. The channel is never closed.
	Leadership() <-chan Leadership
	// Status describes the group as this replica sees it.
	Status() Status
	// Close hands leadership over if this replica has it, and stops. Calls
	// that are waiting return. Closing again does nothing.
	Close() error
}

// Leadership says whether this replica leads, and in which term.
type Leadership struct {
	Leads bool
	Term  uint64
}

// Status describes a replica's view of its group.
type Status struct {
	ID       string
	Leader   string // ID; empty if not known
	Term     uint64
	Applied  uint64 // index of the last applied log entry
	Entries  uint64 // log entries applied since start
	Commands uint64 // commands applied since start
	Replicas []string
	// Committed is the index of the last log entry that this replica knows to be committed.
	Committed uint64
}

// Errors of Propose and Verify.
var (
	ErrNotLeader = errors.New("mailbox: not the leader")
	ErrUnknown   = errors.New("mailbox: outcome unknown")
	ErrNoSpace   = errors.New("mailbox: the log's disk is almost full")
	ErrClosed    = errors.New("mailbox: closed")
)
