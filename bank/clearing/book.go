package clearing

import (
	"bytes"
	"crypto/sha256"
	"math"

	"github.com/candor-grid/candor/messages"
)

// Bounds on what is kept for each peer and direction.
const (
	// MaxOutstanding is the most instructions that may wait for an answer.
	MaxOutstanding = 4096
	// keptLines is how many numbers a book goes back. The outcomes that are
	// remembered are among them.
	keptLines = 2 * MaxOutstanding
)

// book is the history of one direction: the running total, and the latest
// lines, each with the digest of all up to it. The sender enters a number when
// it learns the outcome, the receiver when it makes it.
type book struct {
	total messages.RunningTotal
	base  messages.RunningTotal // before the first of lines
	lines []line
}

// line is one number, and the running total after it.
type line struct {
	shown messages.ClearingLine
	total messages.RunningTotal
}

// newBook begins the book of instructions from a site to another.
func newBook(from, to messages.Name) book {
	start := sha256.Sum256([]byte(domainBook + "\x00" + from + "\x00" + to))
	total := messages.RunningTotal{Digest: start[:]}
	return book{total: total, base: total}
}

// after is the running total with one more number.
func after(total messages.RunningTotal, i *messages.Instruction, o *messages.TransferResult) messages.RunningTotal {
	h := sha256.New()
	h.Write(total.Digest)             //nolint:errcheck // a hash takes everything
	h.Write(signed(domainBook, i))    //nolint:errcheck // a hash takes everything
	h.Write(signed(domainReceipt, o)) //nolint:errcheck // a hash takes everything
	owes := owes(i.Kind, o.Amount)
	next := messages.RunningTotal{Number: total.Number + 1, Owed: total.Owed + owes, Volume: total.Volume, Digest: h.Sum(nil)}
	if i.Kind == messages.InstructPay || i.Kind == messages.InstructCharge {
		next.Volume += o.Amount
	}
	return next
}

// After is the running total with one more number, as both banks work it out.
func After(total messages.RunningTotal, i *messages.Instruction, o *messages.TransferResult) messages.RunningTotal {
	return after(total, i, o)
}

// owes is what an instruction adds to what its sender owes the receiver.
func owes(k messages.InstructionKind, moved messages.Credits) messages.Credits {
	switch k {
	case messages.InstructPay:
		return moved
	case messages.InstructCharge, messages.InstructSettle:
		return -moved
	}
	return 0
}

// holds reports whether the volume can count one more amount.
func (b *book) holds(amount messages.Credits) bool {
	return b.total.Volume <= math.MaxInt64-amount
}

// enter adds a number with its outcome.
func (b *book) enter(i *messages.Instruction, o *messages.TransferResult) {
	b.total = after(b.total, i, o)
	if len(b.lines) >= keptLines+keptLines/4 {
		drop := len(b.lines) - keptLines
		b.base = b.lines[drop-1].total
		b.lines = append([]line(nil), b.lines[drop:]...)
	}
	b.lines = append(b.lines, line{total: b.total, shown: messages.ClearingLine{
		Number: b.total.Number, Kind: i.Kind, Asked: i.Amount, Moved: o.Amount, Refused: o.Error != nil, Digest: b.total.Digest,
	}})
}

// at returns the running total at a number; false if the book does not go
// back or forth so far.
func (b *book) at(number uint64) (messages.RunningTotal, bool) {
	switch {
	case number == b.base.Number:
		return b.base, true
	case number < b.base.Number || number > b.total.Number:
		return messages.RunningTotal{}, false
	}
	return b.lines[number-b.oldest()].total, true
}

// oldest is the first number that has a line, or would have.
func (b *book) oldest() uint64 { return b.base.Number + 1 }

// page returns up to limit lines from a number on.
func (b *book) page(from uint64, limit int) []messages.ClearingLine {
	out := []messages.ClearingLine{}
	first := max(from, b.oldest())
	for n := first; n <= b.total.Number && len(out) < limit; n++ {
		out = append(out, b.lines[n-b.oldest()].shown)
	}
	return out
}

// same compares running totals.
func same(a, b messages.RunningTotal) bool {
	return a.Number == b.Number && a.Owed == b.Owed && a.Volume == b.Volume && bytes.Equal(a.Digest, b.Digest)
}
