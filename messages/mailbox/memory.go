package mailbox

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/candor-grid/candor/messages"
)

// Memory is a mailbox of one replica without disk or network. Propose applies its command before it returns. No method
// waits or reads a clock, so Memory works in virtual time. The methods Elect, Depose, LoseNext and Fill simulate an
// election, the loss of leadership, a lost command and a full disk.
type Memory struct {
	mu         sync.Mutex
	machine    Machine
	status     Status
	leads      bool
	full       bool
	closed     bool
	loss       Loss
	late       [][]byte // commands that are not applied yet; see LoseForNow
	leadership chan Leadership
}

var _ Mailbox = (*Memory)(nil)

// Loss is what happens to a command whose caller does not learn the outcome.
type Loss int

// The values for Memory.LoseNext.
const (
	LoseNothing Loss = iota // the command is answered as usual
	LoseAnswer              // the command is applied, and ErrUnknown is returned
	LoseCommand             // the command is not applied, and ErrUnknown is returned
	LoseForNow              // ErrUnknown is returned, and the command is applied before the next one, or by Decided
)

// NewMemory returns a mailbox that leads, in term 1.
func NewMemory(machine Machine) *Memory {
	m := &Memory{machine: machine, leadership: make(chan Leadership, 1),
		status: Status{ID: "memory", Replicas: []string{"memory"}}}
	if a, ok := machine.(Agreeing); ok {
		a.Agreed(messages.Level)
	}
	m.Elect()
	return m
}

// Propose applies a command; see [Mailbox].
func (m *Memory) Propose(ctx context.Context, command []byte) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return nil, ErrClosed
	case ctx.Err() != nil:
		return nil, notAppended(ctx.Err())
	case !m.leads:
		return nil, ErrNotLeader
	case m.full:
		return nil, ErrNoSpace
	}
	if _, err := m.machine.Check(command); err != nil {
		return nil, err
	}
	loss := m.loss
	m.loss = LoseNothing
	switch loss {
	case LoseCommand:
		return nil, ErrUnknown
	case LoseForNow:
		m.late = append(m.late, bytes.Clone(command))
		return nil, ErrUnknown
	}
	m.arrive()
	result, err := m.apply(bytes.Clone(command))
	if loss == LoseAnswer {
		return nil, ErrUnknown
	}
	return result, err
}

// ProposeInOrder applies commands; see [Mailbox].
func (m *Memory) ProposeInOrder(ctx context.Context, commands [][]byte) (results []any, errs []error) {
	results, errs = make([]any, len(commands)), make([]error, len(commands))
	for i, c := range commands {
		results[i], errs[i] = m.Propose(ctx, c)
	}
	return results, errs
}

// arrive applies the commands that were delayed because of LoseForNow.
func (m *Memory) arrive() {
	for _, c := range m.late {
		_, _ = m.apply(c)
	}
	m.late = nil
}

// Decided applies the commands that were delayed because of LoseForNow; see [Mailbox].
func (m *Memory) Decided(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	}
	m.arrive()
	return nil
}

func (m *Memory) apply(command []byte) (any, error) {
	m.status.Applied++
	m.status.Entries++
	m.status.Commands++
	results, err := m.machine.Apply(m.status.Applied, [][]byte{command})
	if err != nil {
		m.closed = true // the process of a real replica would end here
		return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if len(results) != 1 {
		return nil, fmt.Errorf("%w: the state machine returned %d results for one command", ErrUnknown, len(results))
	}
	return results[0], nil
}

// Verify returns nil while the mailbox leads.
func (m *Memory) Verify(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case !m.leads:
		return ErrNotLeader
	}
	return nil
}

// Leadership returns a channel that reports when this mailbox begins or ends to lead. Only Elect, Depose and Close
// cause such changes.
func (m *Memory) Leadership() <-chan Leadership { return m.leadership }

// Status describes a group of one replica.
func (m *Memory) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status
}

// Close gives leadership up and stops.
func (m *Memory) Close() error {
	m.Depose()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// Elect makes the mailbox the leader of the next term. It does nothing if the mailbox leads already.
func (m *Memory) Elect() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leads || m.closed {
		return
	}
	m.status.Term++
	m.setLeads(true)
}

// Depose ends the leadership, as a later term would: Propose and Verify return ErrNotLeader until Elect is called.
func (m *Memory) Depose() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leads {
		m.status.Term++
		m.setLeads(false)
	}
}

func (m *Memory) setLeads(leads bool) {
	m.leads = leads
	m.status.Leader = ""
	if leads {
		m.status.Leader = m.status.ID
	}
	select {
	case <-m.leadership:
	default:
	}
	m.leadership <- Leadership{Leads: leads, Term: m.status.Term}
}

// LoseNext sets what happens to the next command: it is answered as usual, or gets lost in one of the ways of [Loss].
func (m *Memory) LoseNext(l Loss) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loss = l
}

// Fill sets whether the disk counts as full: Propose then returns ErrNoSpace.
func (m *Memory) Fill(full bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.full = full
}

// Image returns the machine's state in the form of a snapshot.
func (m *Memory) Image() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b bytes.Buffer
	_, err := m.machine.Capture().WriteTo(&b)
	return b.Bytes(), err
}
