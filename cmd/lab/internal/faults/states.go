package faults

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/history"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
)

// automaton is the state machine that a group replicates: the book or the bank's state.
type automaton interface {
	apply(data []byte) any
	capture() []byte
	restore([]byte) error
	hash() [32]byte
	at() (now messages.Time, leapt, carried bool) // latest time of the applied commands, and two flags of the last command
}

type bookState struct {
	*site
	on *machine // nil means the reference state
	*book.Book
	leapt   bool
	carried bool
}

func newBookState(s *site, m *machine) *bookState {
	return &bookState{site: s, on: m, Book: book.New()}
}

func (b *bookState) apply(data []byte) any {
	if data == nil {
		return nil
	}
	c, err := book.Decode(data)
	if err != nil {
		return err
	}
	b.leapt, b.carried = c.Leap > 0, c.TimeUnknown
	if b.Bug == LocalClock && b.on != nil {
		c.At = c.At.Add(b.on.offset)
	}
	if b.Bug == NoDedupe && c.Submit != nil {
		c.Submit.Key += fmt.Sprint("#", b.LastJob())
	}
	if b.Bug == StaleAttempt && c.Exchange != nil {
		b.stale(c)
	}
	return b.Apply(c)
}

// The method `stale` inserts a bug: the end of an old attempt of a task also ends the task's present attempt.
func (b *bookState) stale(c *book.Command) {
	for _, f := range c.Exchange.Finished {
		for _, n := range b.Nodes() {
			if h, held := n.Claims[f.Attempt.Task]; held && h.Attempt != f.Attempt.Number {
				f.Attempt.Number = h.Attempt
				b.Apply(&book.Command{At: c.At, Exchange: &book.Exchange{Node: n.Name, Session: n.Session, Seq: n.Seq + 1, Finished: []agentmsg.Finished{f}}})
			}
		}
	}
}

func (b *bookState) capture() []byte {
	var out bytes.Buffer
	if _, err := b.Capture().WriteTo(&out); err != nil {
		b.violate("the book cannot be captured: %v", err)
	}
	return out.Bytes()
}

func (b *bookState) restore(image []byte) error { return b.Restore(bytes.NewReader(image)) }
func (b *bookState) hash() [32]byte             { return b.Hash() }

type bankState struct {
	*site
	store    *history.Store
	ledger   *ledger.Ledger
	clearing *clearing.State
}

// newBankState returns the bank state of a machine. If m is nil, it returns the reference state for the checkers; the
// files of this state have no faults.
func newBankState(s *site, m *machine) *bankState {
	b := &bankState{site: s, store: history.New(newFiles(), segmentBytes, nil)}
	if m != nil {
		b.store = m.store
	}
	b.ledger = ledger.Open(b.store)
	b.clearing = clearing.New(s.name, b.ledger, seal)
	return b
}

func (b *bankState) apply(data []byte) any {
	switch {
	case data == nil:
		return nil
	case data[0] != clearing.Mark:
		return b.ledger.Apply(data)
	}
	if b.Bug == NoLimit {
		b.trustSouth()
	}
	if b.Bug == PaidTwice {
		b.payAgain(data)
	}
	return b.clearing.Apply(data)
}

// trustSouth is a bug that a test inserts into the bank, to see that the checks find it. The bank allows the liar south
// to owe far more than its terms allow, and closes every dispute with south at once.
func (b *bankState) trustSouth() {
	if !b.clearing.Knows(south) {
		return
	}
	share := 100 * messages.Credit
	c := clearing.Command{At: b.ledger.Now(), By: operator, Peer: &clearingmsg.PeerRequest{Peer: south, Keys: []string{south}, Limit: share, Share: &share}}
	data, err := c.Encode()
	if err != nil {
		b.violate("the planted command cannot be encoded: %v", err)
	}
	b.clearing.Apply(data)
}

// payAgain is an inserted bug: a repeated payment is carried out again.
func (b *bankState) payAgain(data []byte) {
	c, _ := b.asked[string(data)].(*clearing.Command)
	if c == nil || c.Instructions == nil {
		return
	}
	m := &c.Instructions.Instructions
	for _, p := range b.clearing.Peers().Peers {
		for i, in := range m.List {
			if n := m.First + uint64(i); p.Peer == m.From && in.Kind == clearingmsg.InstructPay && n <= p.Received.Number {
				t := money.Transfer{ID: fmt.Sprint("again/", m.From, n, c.At), Debit: clearing.PeerAccount(m.From), Credit: in.Account, Amount: in.Amount}
				l := ledger.Command{Verb: ledger.Transfers, At: c.At, By: "$clearing", Rank: ledger.Clearing, Transfers: []money.Transfer{t}}
				b.ledger.Apply(l.Encode())
			}
		}
	}
}

func (b *bankState) capture() []byte {
	var out bytes.Buffer
	if _, err := b.clearing.Capture().WriteTo(&out); err != nil {
		b.violate("the clearing cannot be captured: %v", err)
	}
	if _, err := b.ledger.Capture().WriteTo(&out); err != nil {
		b.violate("the ledger cannot be captured: %v", err)
	}
	return out.Bytes()
}

func (b *bankState) restore(image []byte) error {
	r := bytes.NewReader(image)
	if err := b.clearing.Restore(r); err != nil {
		return err
	}
	return b.ledger.Restore(r)
}

func (b *bankState) hash() [32]byte {
	c, l := b.clearing.Hash(), b.ledger.Hash()
	return sha256.Sum256(append(c[:], l[:]...))
}

// seal is a cheap replacement for signatures. Each site's key is its name, so every site could forge every signature.
// Forgery is not simulated.
func seal(key string, data, signature []byte) bool {
	s, _ := sealer(key).Sign(data)
	return bytes.Equal(s, signature)
}

type sealer string

func (s sealer) Sign(data []byte) ([]byte, error) {
	h := sha256.Sum256(append([]byte(s+"\x00"), data...))
	return h[:8], nil
}

func (b *bookState) at() (messages.Time, bool, bool) { return b.Book.Now(), b.leapt, b.carried }

func (b *bankState) at() (messages.Time, bool, bool) { return b.ledger.Now(), false, false }
