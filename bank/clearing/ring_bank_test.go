package clearing

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

// bug is a fault that a test inserts, to show that the checks find it.
type bug int

const (
	sound         bug = iota
	noDedupe          // a repeated number is carried out again
	refundTimeout     // a payment without an answer in time is refunded
	skippedSync       // answers are sent before they are on disk
)

func (b bug) String() string {
	return [...]string{"none", "a removed dedupe", "a refund on time-out", "a skipped sync"}[b]
}

// bank is one bank of the ring: its state in memory, and the content of its disk.
type bank struct {
	site   messages.Name
	offset messages.Time // how much its clock is ahead of the true time
	bug    bug
	// The field proves is true if the bank requires signatures. It is false if the test inserts a bug into the bank,
	// because the bug makes transfers that nobody has signed.
	proves bool

	ledger *ledger.Ledger
	state  *State

	log     [][]byte // entries since the snapshot
	synced  int      // how many entries of log a crash cannot lose
	image   []byte   // the snapshot
	waiting []parcel // messages to be sent when the log is on disk
}

func newBank(site messages.Name, planted bug) *bank {
	return openBank(&bank{site: site, bug: planted, proves: planted == sound})
}

func openBank(b *bank) *bank {
	b.reset()
	if b.proves {
		b.propose(append([]byte{markLedger}, signs().keys(b.site)...))
	}
	return b
}

func (b *bank) reset() {
	b.ledger = ledger.New()
	if b.proves {
		b.ledger.Trust(signs().root(b.site))
	}
	b.state = New(b.site, b.ledger, seal)
}

// seal is a cheap replacement for signatures. The key of a site is the site's name, so anybody could forge a signature.
// Other tests check forged signatures.
func seal(key string, data, signature []byte) bool {
	s, _ := sealer(key).Sign(data)
	return bytes.Equal(s, signature)
}

type sealer string

func (s sealer) Sign(data []byte) ([]byte, error) {
	h := sha256.Sum256(append([]byte(s+"\x00"), data...))
	return h[:8], nil
}

// These marks begin a log entry that is not a command of the clearing.
const (
	markLedger = 'l' // a command of the ledger
	markRefund = 'r' // a step of the inserted bug: refund everything that waits
)

// propose appends an entry to the log and applies it.
func (b *bank) propose(entry []byte) Result {
	b.log = append(b.log, entry)
	return b.apply(entry)
}

func (b *bank) apply(entry []byte) Result {
	switch entry[0] {
	case markLedger:
		r := b.ledger.Apply(entry[1:])
		return Result{Error: r.Error}
	case markRefund:
		b.refund()
		return Result{}
	}
	if b.bug == noDedupe {
		b.forgetNumbers(entry)
	}
	return b.state.Apply(entry)
}

func (b *bank) command(c Command) Result {
	if b.proves {
		signs().sign(b.site, &c, b.ledger.Now())
	}
	entry, err := c.Encode()
	if err != nil {
		panic(err)
	}
	return b.propose(entry)
}

func (b *bank) asks(c ledger.Command) Result {
	if b.proves {
		signs().signCommand(b.site, &c, b.ledger.Now())
	}
	return b.propose(append([]byte{markLedger}, c.Encode()...))
}

// forgetNumbers is an inserted bug. It removes the instructions of a log entry, and all later ones, from this bank's
// book of all instructions from the other bank.
func (b *bank) forgetNumbers(entry []byte) {
	c, err := decode(entry)
	if err != nil || c.Instructions == nil {
		return
	}
	m := &c.Instructions.Instructions
	p := b.state.peers.byName[m.From]
	before, known := p.In.at(m.First - 1)
	if !known || m.First > p.In.Total.Number || m.First <= p.Known {
		return
	}
	p.In.Lines = p.In.Lines[:before.Number-p.In.Base.Number]
	p.In.Total = before
	p.Outcomes = p.Outcomes[:before.Number-p.Known]
}

// refund is a bug that a test inserts into a bank, to see that the checks find it. The bank frees the holds of payments
// that the receiving bank has not answered yet.
func (b *bank) refund() {
	for _, name := range b.state.peers.order {
		p := b.state.peers.byName[name]
		for i := range p.outbox {
			if it := &p.outbox[i]; it.Instruction.Kind == clearing.InstructPay && it.Hold != "" {
				b.state.money.must(moneymsg.Transfer{Kind: moneymsg.Void, Pending: it.Hold})
				it.Hold = ""
			}
		}
	}
}

// emit puts a message into the queue. The bank may send the message only after the log on its disk has every entry that
// was applied before the call of emit.
func (b *bank) emit(p parcel) {
	p.after = len(b.log)
	b.waiting = append(b.waiting, p)
}

// sync writes the log to disk and returns the messages that may be sent now.
func (b *bank) sync() []parcel {
	b.synced = len(b.log)
	out := b.waiting
	b.waiting = nil
	return out
}

// released returns the messages that may be sent now: the records from which a message follows must be on the disk. A
// bank with the bug skippedSync returns all messages.
func (b *bank) released() []parcel {
	var out, rest []parcel
	for _, p := range b.waiting {
		if p.after <= b.synced || b.bug == skippedSync {
			out = append(out, p)
		} else {
			rest = append(rest, p)
		}
	}
	b.waiting = rest
	return out
}

// crash simulates a power loss of the bank: the bank loses its memory and the end of its log that was not synced, and
// starts again. The argument `kept` is the number of unsynced entries that survive.
func (b *bank) crash(kept int) error {
	b.log = b.log[:min(len(b.log), b.synced+kept)]
	b.synced = len(b.log)
	b.waiting = nil
	return b.restart()
}

// restart builds the state from the snapshot and the log after it.
func (b *bank) restart() error {
	b.reset()
	if b.image != nil {
		r := bytes.NewReader(b.image)
		if err := b.state.Restore(r); err != nil {
			return err
		}
		b.ledger.Trust(nil) // nothing is checked here, because that would take too long at each crash; the method snapshot checks
		if err := b.ledger.Restore(r); err != nil {
			return err
		}
		if b.proves {
			b.ledger.Trust(signs().root(b.site))
		}
	}
	for _, entry := range b.log {
		b.apply(entry)
	}
	return nil
}

// snapshot replaces the log by a snapshot of the state. It checks that the log leads to the present state, and that the
// new snapshot does too.
func (b *bank) snapshot() error {
	state, books := b.state.Hash(), b.ledger.Hash()
	if err := b.restart(); err != nil {
		return err
	}
	if b.state.Hash() != state || b.ledger.Hash() != books {
		return fmt.Errorf("%s: its log replays to another state", b.site)
	}
	if b.proves {
		if err := derives(b.state, b.ledger); err != nil {
			return fmt.Errorf("%s: %w", b.site, err)
		}
	}
	var out bytes.Buffer
	if _, err := b.state.Capture().WriteTo(&out); err != nil {
		return err
	}
	if _, err := b.ledger.Capture().WriteTo(&out); err != nil {
		return err
	}
	b.image, b.log, b.synced = out.Bytes(), nil, 0
	if err := b.restart(); err != nil {
		return err
	}
	if b.state.Hash() != state || b.ledger.Hash() != books {
		return fmt.Errorf("%s: its snapshot restores to another state", b.site)
	}
	return nil
}

func (b *bank) now(world messages.Time) messages.Time { return world + b.offset }
