package clearing

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/candor-grid/candor/messages"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

// Refusal is the reason of a refusal. On a working network, messages of an honest peer are never refused for these
// reasons, except for a late duplicate of a message.
type Refusal uint8

// These are the reasons of refusals. Ordinary is for a refusal that shows no fault of the peer, for example because an
// account has too few credits. Ordinary refusals are not counted. New reasons are added at the end, because the counts
// are part of the state.
const (
	Ordinary     Refusal = iota
	Malformed            // the message cannot be decoded, or breaks a rule that needs no state
	Misaddressed         // the message is signed for another site
	Stranger             // the sender is not a peer
	Signature            // the message was altered, or signed with a key that is not the sender's
	Stale                // the authorisation has ended
	Future               // the message is from the future, by more than clocks may differ
	Amount               // the amount is more than was authorised, or not a possible amount
	Recharged            // the authorisation was charged before, or given back
	Replayed             // the authorisation was accepted before, to pay for something else
	Poached              // the authorisation is for another site
	Gap                  // instructions with earlier numbers are missing
	Repeated             // the message is a late duplicate: its sender has the outcome already
	Rewritten            // the number or identifier was used before with other content
	Totals               // the running total in the message differs from the total in this book
	Lost                 // the message refers to numbers that this book does not have
	Flood                // the peer has more instructions or authorisations open than it may have
	Disputed             // the books of the two banks disagree, and the message needs credit
	Parted               // the sites have parted or are parting
	Restored             // this site or the peer lost numbers by a restore, and the message depends on them

	Reasons // the number of reasons
)

var refusalNames = [Reasons]string{"ordinary", "malformed", "misaddressed", "stranger", "signature", "stale", "future", "amount",
	"recharged", "replayed", "poached", "gap", "repeated", "rewritten", "totals", "lost", "flood", "disputed", "parted", "restored"}

// String returns the reason's name.
func (r Refusal) String() string {
	if r < Reasons {
		return refusalNames[r]
	}
	return fmt.Sprintf("refusal%d", uint8(r))
}

// Rejected is a refusal. Its message begins with the reason.
type Rejected struct {
	Reason Refusal
	Err    *messages.Error
}

// Error returns the message.
func (r *Rejected) Error() string { return r.Err.Error() }

// Unwrap returns the error with its kind.
func (r *Rejected) Unwrap() error { return r.Err }

// reject returns a refusal whose message begins with the reason.
func reject(reason Refusal, kind messages.Kind, format string, args ...any) *Rejected {
	return &Rejected{reason, messages.Errorf(kind, "%s: %s", reason, fmt.Sprintf(format, args...))}
}

// ordinary turns an error into a refusal with the reason Ordinary. It returns nil if the error is nil.
func ordinary(err error) *Rejected {
	if err == nil {
		return nil
	}
	return &Rejected{Ordinary, messages.AsError("", err)}
}

// malformed returns the refusal for an error, or nil if there is no error. The refusal has the reason Amount if the
// error is about an amount of credits, and otherwise the reason Malformed.
func malformed(err error) *Rejected {
	if err == nil {
		return nil
	}
	e := messages.AsError("", err)
	reason := Malformed
	if strings.HasPrefix(e.Message, "amount") {
		reason = Amount
	}
	return reject(reason, e.Kind, "%s", e.Message)
}

// final returns the outcome that the bank remembers for a refused instruction. Both banks compute digests of their
// books from the text of the outcome, so both must have the same text. For this reason the text depends only on the
// kind of the refusal.
func (r *Rejected) final() moneymsg.TransferResult {
	return moneymsg.TransferResult{Error: &messages.Error{Kind: r.Err.Kind, Message: finalWords(r.Err.Kind)}}
}

// finalWords returns a text that says why an instruction was refused. New texts may be added, but an existing text may
// never change, because the digests of both banks' books contain it.
func finalWords(kind messages.Kind) string {
	switch kind {
	case messages.NotFound:
		return "the other site's bank refused it: there is no such account or authorisation"
	case messages.Insufficient:
		return "the other site's bank refused it: the amount is not covered there"
	case messages.PermissionDenied:
		return "the other site's bank refused it: it is not allowed there"
	case messages.Expired, messages.Ended:
		return "the other site's bank refused it: it came too late"
	case messages.Exhausted, messages.TooLarge:
		return "the other site's bank refused it: it is more than may be there"
	case messages.Conflict:
		return "the other site's bank refused it: it was done before"
	}
	return "the other site's bank refused it: it could not be done"
}

// maxMessage is the maximum length of the message of a remembered refusal, in bytes.
const maxMessage = 256

// clip shortens a text that is stored or came from a stranger, and replaces characters that cannot stand on one line of
// a statement.
func clip(s string) string {
	if len(s) > maxMessage {
		s = s[:maxMessage]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}
