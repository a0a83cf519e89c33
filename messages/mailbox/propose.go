package mailbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/candor-grid/candor/messages"
)

const (
	maxBatch    = 4096 // largest number of commands in one log entry
	maxInFlight = 3    // largest number of entries in flight; with more entries in flight, each entry would be smaller
)

type company struct{}

// Patiently returns a context for patient commands. A patient command may wait until it can share the log entry of
// another command, but no longer than the argument `within`. The cost of a log entry hardly depends on the number of
// its commands.
func Patiently(ctx context.Context, within time.Duration) context.Context {
	return context.WithValue(ctx, company{}, within)
}

// batch is the commands of one log entry, and their waiting callers.
type batch struct {
	entry    []byte
	commands int
	opened   time.Time
	done     chan struct{} // closed when results or err are set
	results  []any
	err      error
}

func (b *batch) finish(results []any, err error) {
	b.results, b.err = results, err
	close(b.done)
}

// queue collects commands into batches until they are taken for the log.
type queue struct {
	config *Config
	kick   chan struct{} // gets a token when there is a batch to take; sending the token never blocks

	mu      sync.Mutex
	batches []*batch
	due     bool // one of the commands must not wait longer for other commands
	bytes   int
	usual   int           // bytes of the last batch; the next one will probably be similar
	newest  chan struct{} // closed when the newest batch has its results; nil if there was no batch
	room    chan struct{} // closed when the queue becomes smaller; nil if nobody waits for this
	closed  error
}

// add copies a command into the last batch, or into a new one if the last batch is full. The argument `waits` is how
// long the command may wait for other commands. If the queue is full, add returns a channel to wait on.
func (q *queue) add(command []byte, waits time.Duration) (b *batch, i int, full <-chan struct{}, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed != nil {
		return nil, 0, nil, q.closed
	}
	size := framed(len(command))
	if q.bytes > 0 && q.bytes+size > q.config.limits.queueBytes {
		if q.room == nil {
			q.room = make(chan struct{})
		}
		q.hasten()
		return nil, 0, q.room, nil
	}
	b = q.last(size)
	b.entry = appendCommand(b.entry, command)
	b.commands++
	q.bytes += size
	if waits > 0 {
		time.AfterFunc(waits, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			if slices.Contains(q.batches, b) { // if the batch is not in the queue any more, it was already taken
				q.hasten()
			}
		})
	} else {
		q.hasten()
	}
	return b, b.commands - 1, nil, nil
}

// hasten makes the queued commands due: they no longer wait for further commands.
func (q *queue) hasten() {
	if len(q.batches) == 0 {
		return
	}
	if !q.due {
		q.due, q.batches[0].opened = true, time.Now()
	}
	select {
	case q.kick <- struct{}{}:
	default:
	}
}

func (q *queue) last(size int) *batch {
	if n := len(q.batches); n > 0 {
		b := q.batches[n-1]
		if b.commands < maxBatch && len(b.entry)+size <= q.config.limits.batchBytes {
			return b
		}
	}
	b := &batch{entry: newEntry(max(size, q.usual)), opened: time.Now(), done: make(chan struct{})}
	q.batches, q.newest = append(q.batches, b), b.done
	return b
}

// take removes the first batch and returns it. It returns nil if there is no batch. It also returns nil if every
// command in the batch may still wait for more commands in the same entry of the log.
func (q *queue) take() *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.batches) == 0 || !q.due && q.closed == nil {
		return nil
	}
	b := q.batches[0]
	q.batches[0] = nil
	q.batches = q.batches[1:]
	q.due = len(q.batches) > 0
	q.usual = min(len(b.entry)-1, q.config.limits.batchBytes)
	q.bytes -= len(b.entry) - 1
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
	return b
}

// close refuses new commands, and also the commands that still wait in the queue.
func (q *queue) close(err error) {
	q.mu.Lock()
	q.closed = err
	q.mu.Unlock()
	for b := q.take(); b != nil; b = q.take() {
		b.finish(nil, err)
	}
}

// flight is a batch that was handed to Raft, and for which Raft has not answered yet.
type flight struct {
	batch  *batch
	future raft.ApplyFuture
}

// proposer passes commands to Raft, many in one entry, and gives each caller the result of its own command.
type proposer struct {
	*engine
	leadership *leadership
	commit     prometheus.Observer // seconds from the first command of an entry until its result
	levels     *levels
	noSpace    func() error // returns an error while the disk is too full for commands

	queue     *queue
	slots     chan struct{} // has one token for each entry that may be in flight
	flights   chan flight
	collected chan struct{} // closed when the last batch has its results
}

func newProposer(e *engine, l *leadership, v *levels, commit prometheus.Observer, noSpace func() error) *proposer {
	return &proposer{engine: e, leadership: l, levels: v, commit: commit, noSpace: noSpace, queue: &queue{config: e.config, kick: make(chan struct{}, 1)}, slots: make(chan struct{}, maxInFlight),
		flights: make(chan flight, maxInFlight), collected: make(chan struct{})}
}

// Propose appends a command; see [Mailbox].
func (p *proposer) Propose(ctx context.Context, command []byte) (any, error) {
	if err := p.admit(ctx, command); err != nil {
		return nil, err
	}
	b, i, err := p.enqueue(ctx, command)
	if err != nil {
		return nil, err
	}
	return b.outcome(ctx, i)
}

// ProposeInOrder implements Mailbox.
func (p *proposer) ProposeInOrder(ctx context.Context, commands [][]byte) (results []any, errs []error) {
	results, errs = make([]any, len(commands)), make([]error, len(commands))
	batches, places := make([]*batch, len(commands)), make([]int, len(commands))
	for k, c := range commands {
		if errs[k] = p.admit(ctx, c); errs[k] == nil {
			batches[k], places[k], errs[k] = p.enqueue(ctx, c)
		}
	}
	for k, b := range batches {
		if errs[k] == nil {
			results[k], errs[k] = b.outcome(ctx, places[k])
		}
	}
	return results, errs
}

// Decided implements [Mailbox]. Batches of commands get their results in the order in which they were begun. So Decided
// only needs to wait for the batch that was begun last.
func (p *proposer) Decided(ctx context.Context) error {
	p.queue.mu.Lock()
	newest, closed := p.queue.newest, p.queue.closed
	if newest != nil {
		p.queue.hasten()
	}
	p.queue.mu.Unlock()
	switch {
	case closed != nil: // batches that were not taken end earlier than batches that were taken
		return closed
	case newest == nil:
		return nil
	}
	select {
	case <-newest:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *batch) outcome(ctx context.Context, i int) (any, error) {
	select {
	case <-b.done:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrUnknown, ctx.Err())
	}
	if b.err != nil {
		return nil, b.err
	}
	return b.results[i], nil
}

func (p *proposer) admit(ctx context.Context, command []byte) error {
	switch {
	case ctx.Err() != nil:
		return notAppended(ctx.Err())
	case len(command) > p.config.limits.command:
		return messages.Errorf(messages.TooLarge, "a command of %d bytes is above the limit of %d", len(command), p.config.limits.command)
	case p.leadership.current.Load() == nil:
		return p.orClosed(ErrNotLeader)
	case p.guard.low.Load():
		return p.noSpace()
	}
	level, err := p.check(command)
	if err == nil && level > p.levels.agreed() {
		return p.levels.refusal(level)
	}
	return err
}

func (p *proposer) enqueue(ctx context.Context, command []byte) (*batch, int, error) {
	waits, _ := ctx.Value(company{}).(time.Duration)
	for {
		b, i, full, err := p.queue.add(command, waits)
		if full == nil {
			return b, i, err
		}
		select {
		case <-full:
		case <-ctx.Done():
			return nil, 0, notAppended(ctx.Err())
		}
	}
}

// dispatch passes batches to Raft, at most maxInFlight at a time. While maxInFlight entries are under way, new commands
// still join the next batch.
func (p *proposer) dispatch() {
	defer close(p.flights)
	for {
		select {
		case <-p.queue.kick:
		case <-p.stopping:
			return
		}
		for p.dispatchOne() {
		}
	}
}

func (p *proposer) dispatchOne() bool {
	select {
	case p.slots <- struct{}{}:
	case <-p.stopping:
		return false
	}
	b := p.queue.take()
	if b == nil {
		<-p.slots
		return false
	}
	p.flights <- flight{b, p.raft.Apply(b.entry, 0)}
	return true
}

// collect waits for each batch's results, in log order.
func (p *proposer) collect() {
	defer close(p.collected)
	for f := range p.flights {
		err := await(f.future, p.unknown)
		if err != nil {
			f.batch.finish(nil, proposeError(err))
		} else {
			f.batch.finish(split(f.future.Response(), f.batch.commands))
		}
		p.commit.Observe(time.Since(f.batch.opened).Seconds())
		<-p.slots
	}
}

// split returns the results from the applier's response, one for each command. If the response has no results, the
// outcome of the committed entry is unknown. Then split returns an error.
func split(response any, commands int) ([]any, error) {
	switch r := response.(type) {
	case []any:
		if len(r) == commands {
			return r, nil
		}
	case error:
		return nil, fmt.Errorf("%w: %w", ErrUnknown, r)
	}
	return nil, fmt.Errorf("%w: the state machine did not return a result for each of %d commands", ErrUnknown, commands)
}

// await waits for the result of a future, and returns its error. When Raft stops, it drops entries that are committed
// but not applied yet, and never answers their futures. Then await returns errGone.
func await(f raft.Future, gone <-chan struct{}) error {
	result := make(chan error, 1)
	go func() { result <- f.Error() }()
	select {
	case err := <-result:
		return err
	case <-gone:
		return errGone
	}
}

// awaitFor does the same as await, with a time limit.
func awaitFor(f raft.Future, most time.Duration) error {
	tooLong := make(chan struct{})
	timer := time.AfterFunc(most, func() { close(tooLong) })
	defer timer.Stop()
	return await(f, tooLong)
}

var errGone = errors.New("mailbox: the replica stopped before the outcome was known")

// proposeError converts an error of Raft into an error for the callers whose commands are in the entry. If Raft
// returned the error before it changed its log, the commands were certainly not appended. After every other error, they
// may have been appended.
func proposeError(err error) error {
	switch {
	case errors.Is(err, raft.ErrNotLeader),
		errors.Is(err, raft.ErrLeadershipTransferInProgress),
		errors.Is(err, raft.ErrEnqueueTimeout):
		return notAppended(err)
	default: // ErrLeadershipLost, ErrRaftShutdown, ErrAbortedByRestore, a failed write
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
}

func notAppended(cause error) error { return fmt.Errorf("%w: %w", ErrNotLeader, cause) }
