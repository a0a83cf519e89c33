package clearing

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/candor-grid/candor/messages"
)

// Refusal names why something was refused that an honest peer on a working
// network does not send, or sends only as a late duplicate.
type Refusal uint8

// The reasons. Ordinary is none of them: a request that the books cannot cover,
// for one, is refused and not counted. The list is append-only: counts are
// part of the state.
const (
	Ordinary     Refusal = iota
	Malformed            // it cannot be read, or breaks a rule that needs no state
	Misaddressed         // it is signed for another site
	Stranger             // it is of a site that is no peer
	Signature            // it was altered, or signed with a key that is not the sender's
	Stale                // the authorisation has ended
	Future               // it was issued after this bank's time, by more than clocks may differ
	Amount               // more than was authorised, or no amount at all
	Recharged            // the authorisation was charged before, or given back
	Replayed             // the authorisation was accepted before, to pay for something else
	Poached              // the authorisation is for another site
	Gap                  // numbers before it are missing
	Repeated             // a late duplicate, the outcome of which its sender has
	Rewritten            // under a number or identifier that had other content before
	Totals               // its running total is not what this book comes to
	Lost                 // it builds on numbers that this book does not have
	Flood                // more is outstanding than a peer may have
	Disputed             // the books do not agree, and it asks for credit
	Parted               // the sites have parted, or are about to
	Restored             // this site or the other was restored, and lost what is built on

	Reasons // how many there are
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

// Rejected is a refusal with its reason, which begins the message.
type Rejected struct {
	Reason Refusal
	Err    *messages.Error
}

// Error is that of the error, so that a Rejected is one.
func (r *Rejected) Error() string { return r.Err.Error() }

// Unwrap gives the error with its kind.
func (r *Rejected) Unwrap() error { return r.Err }

// reject makes a refusal whose message begins with the reason.
func reject(reason Refusal, kind messages.Kind, format string, args ...any) *Rejected {
	return &Rejected{reason, messages.Errorf(kind, "%s: %s", reason, fmt.Sprintf(format, args...))}
}

// ordinary passes on a refusal of the ledger or of a rule; nil stays nil.
func ordinary(err error) *Rejected {
	if err == nil {
		return nil
	}
	return &Rejected{Ordinary, messages.AsError("", err)}
}

// malformed refuses what breaks a rule that needs no state; nil stays nil.
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

// final is the remembered answer to an instruction that was refused, in words that
// depend on the kind alone: they are part of the digests of both banks' books.
func (r *Rejected) final() messages.TransferResult {
	return messages.TransferResult{Error: &messages.Error{Kind: r.Err.Kind, Message: finalWords(r.Err.Kind)}}
}

// finalWords says why an instruction was refused. The words may be added to, never
// altered; see final.
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

// maxMessage bounds, in bytes, the message of a refusal that is remembered.
const maxMessage = 256

// clip bounds text that is kept, or that a stranger sent, and leaves nothing in
// it that cannot stand in one line of a statement.
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
