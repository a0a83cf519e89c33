package clearing

import (
	"bytes"
	"crypto/sha256"
	"math"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

// These limits hold for the instructions to one peer. The same limits hold for the instructions from one peer.
const (
	// MaxOutstanding is the maximum number of instructions that may wait for an answer.
	MaxOutstanding = 4096
	// keptLines is the number of lines that a book keeps: enough for all outcomes that are remembered.
	keptLines = 2 * MaxOutstanding
)

// book is the history of the instructions in one direction: the running total, and the latest lines. Each line has a
// digest of all lines before it. The sender enters an instruction when it learns whether the receiver has carried it
// out. The receiver enters an instruction when it carries it out. The fields are exported only so that they can be
// written into an image.
type book struct {
	Base  clearing.RunningTotal // running total before the first of Lines
	Total clearing.RunningTotal
	Lines []line
}

// line is one instruction in a book. Owed and Volume are the running totals up to and including this instruction.
type line struct {
	Shown        clearing.ClearingLine
	Owed, Volume messages.Credits
}

func (l *line) total() clearing.RunningTotal {
	return clearing.RunningTotal{Number: l.Shown.Number, Owed: l.Owed, Volume: l.Volume, Digest: l.Shown.Digest}
}

func newBook(from, to messages.Name) book {
	return bookFrom(Beginning(from, to))
}

// bookFrom returns a book whose first line follows the given running total. It does not have the earlier lines.
func bookFrom(total clearing.RunningTotal) book { return book{Base: total, Total: total} }

// Beginning returns the running total before the first instruction from one site to another.
func Beginning(from, to messages.Name) clearing.RunningTotal {
	start := sha256.Sum256([]byte(domainBook + "\x00" + from + "\x00" + to))
	return clearing.RunningTotal{Digest: start[:]}
}

// A running total sums up the instructions that one bank has sent to another. After returns the total with one more
// instruction. The sending and the receiving bank compute the same total.
func After(total clearing.RunningTotal, i *clearing.Instruction, o *moneymsg.TransferResult) clearing.RunningTotal {
	h := sha256.New()
	h.Write(total.Digest)             //nolint:errcheck // writing to a hash cannot fail
	h.Write(signed(domainBook, i))    //nolint:errcheck // writing to a hash cannot fail
	h.Write(signed(domainReceipt, o)) //nolint:errcheck // writing to a hash cannot fail
	owes := owes(i.Kind, o.Amount)
	next := clearing.RunningTotal{Number: total.Number + 1, Owed: total.Owed + owes, Volume: total.Volume, Digest: h.Sum(nil)}
	if i.Kind == clearing.InstructPay || i.Kind == clearing.InstructCharge {
		next.Volume += o.Amount
	}
	return next
}

// owes returns the amount that an instruction adds to the sender's debt to the receiver.
func owes(k clearing.InstructionKind, moved messages.Credits) messages.Credits {
	switch k {
	case clearing.InstructPay:
		return moved
	case clearing.InstructCharge, clearing.InstructSettle:
		return -moved
	}
	return 0
}

// holds reports whether the book can take an instruction of this amount: the sum of all amounts must not overflow.
func (b *book) holds(amount messages.Credits) bool {
	return b.Total.Volume <= math.MaxInt64-amount
}

func (b *book) enter(i *clearing.Instruction, o *moneymsg.TransferResult) {
	b.Total = After(b.Total, i, o)
	if len(b.Lines) >= keptLines+keptLines/4 {
		drop := len(b.Lines) - keptLines
		b.Base = b.Lines[drop-1].total()
		b.Lines = append([]line(nil), b.Lines[drop:]...)
	}
	b.Lines = append(b.Lines, line{Owed: b.Total.Owed, Volume: b.Total.Volume, Shown: clearing.ClearingLine{
		Number: b.Total.Number, Kind: i.Kind, Asked: i.Amount, Moved: o.Amount, Refused: o.Error != nil, Digest: b.Total.Digest,
	}})
}

// The method `at` returns the running total after the instruction with the number `number`. It returns false if the
// book does not have this number.
func (b *book) at(number uint64) (clearing.RunningTotal, bool) {
	switch {
	case number == b.Base.Number:
		return b.Base, true
	case number < b.Base.Number || number > b.Total.Number:
		return clearing.RunningTotal{}, false
	}
	return b.Lines[number-b.oldest()].total(), true
}

func (b *book) oldest() uint64 { return b.Base.Number + 1 }

// page returns at most `limit` lines of the book, from the line with the number `from` on. If the book no longer has
// this line, page begins with the oldest line.
func (b *book) page(from uint64, limit int) []clearing.ClearingLine {
	out := []clearing.ClearingLine{}
	first := max(from, b.oldest())
	for n := first; n <= b.Total.Number && len(out) < limit; n++ {
		out = append(out, b.Lines[n-b.oldest()].Shown)
	}
	return out
}

func same(a, b clearing.RunningTotal) bool {
	return a.Number == b.Number && a.Owed == b.Owed && a.Volume == b.Volume && bytes.Equal(a.Digest, b.Digest)
}
