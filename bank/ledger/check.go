package ledger

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// These are the limits on the texts of a transfer, in bytes.
const (
	MaxID     = 256
	MaxReason = 512
	maxName   = 64 // in bytes: 63 of a messages.Name, and a '$' in front
)

// Check returns an error for a transfer that no state of the ledger would accept, because it is malformed. The ledger
// does not remember the refusal of such a transfer.
func Check(t *money.Transfer) *messages.Error {
	if why := checkTexts(t); why != "" {
		return invalid(t, why)
	}
	if t.Amount > messages.MaxCredits {
		return messages.Errorf(messages.TooLarge, "transfer %q: amount %v is above %v credits, the maximum for one transfer", clip(t.ID), t.Amount, messages.MaxCredits)
	}
	if why := checkKind(t); why != "" {
		return invalid(t, why)
	}
	if t.Debit == money.IssuerAccount || t.Credit == money.IssuerAccount {
		return messages.Errorf(messages.PermissionDenied, "transfer %q: only the requests \"grant\" and \"withdraw\" move credits from and to %s", clip(t.ID), money.IssuerAccount)
	}
	return nil
}

func invalid(t *money.Transfer, why string) *messages.Error {
	return messages.Errorf(messages.Invalid, "transfer %q: %s", clip(t.ID), why)
}

// checkTexts returns what is wrong with the texts of a transfer, or "". The texts are kept for ever, so their length is
// bounded.
func checkTexts(t *money.Transfer) string {
	switch {
	case t.ID == "":
		return "id is empty: choose one and keep it before sending"
	case !textual(t.ID, MaxID):
		return "id must be at most 256 bytes of printable text"
	case originOf(t.ID) != ordinary:
		return "id begins with a prefix that only the bank uses: choose another"
	case !textual(t.Pending, MaxID):
		return "pending must be at most 256 bytes of printable text"
	case !textual(t.Reason, MaxReason):
		return "reason must be at most 512 bytes of printable text"
	case len(t.Debit) > maxName || len(t.Credit) > maxName || len(t.Member) > maxName:
		return "debit, credit and member must be names of accounts, of at most 63 letters"
	}
	return ""
}

// checkKind returns what is wrong with the fields of a transfer, or "". The fields of the transfer's kind must be set,
// and no others.
func checkKind(t *money.Transfer) string {
	switch {
	case t.Kind > money.Extend:
		return "kind is unknown: use posted, hold, post, void or extend"
	case t.Amount < 0:
		return "amount is negative: swap debit and credit instead"
	case t.Expires < 0:
		return "expires is negative: give an instant, or 0 for never"
	case t.Timeout < 0:
		return "timeout is negative: give a span, or 0 for none"
	case t.Timeout != 0 && t.Timeout < 1000:
		return "timeout is below a microsecond: give a longer span"
	case t.Timeout != 0 && t.Expires != 0:
		return "expires and timeout are both given: leave one 0"
	case t.Timeout != 0 && t.Kind != money.Hold && t.Kind != money.Extend:
		return "timeout is only for hold and extend: leave it 0"
	case resolves(t.Kind):
		return checkResolution(t)
	case t.Pending != "":
		return "pending is only for post, void and extend: leave it empty"
	case t.Amount == 0:
		return "amount is 0: give one above 0"
	case t.Debit == "":
		return "debit is empty: name the account that pays"
	case t.Debit == t.Credit:
		return "debit and credit are the same account: name two"
	}
	return checkMaking(t)
}

// Posted and Hold use some fields differently. checkMaking returns what is wrong with these fields, or "".
func checkMaking(t *money.Transfer) string {
	switch {
	case t.Kind == money.Hold && t.Member == "":
		return "member is empty: name the account that answers for the hold"
	case t.Kind == money.Posted && t.Credit == "":
		return "credit is empty: name the account that receives"
	case t.Kind == money.Posted && (t.Member != "" || t.Expires != 0):
		return "member and expires are only for holds: leave them empty"
	}
	return ""
}

// checkResolution returns what is wrong with the fields of Post, Void or Extend, or "".
func checkResolution(t *money.Transfer) string {
	switch {
	case t.Pending == "":
		return "pending is empty: name the hold"
	case t.Member != "":
		return "member is only for holds: leave it empty"
	case t.Kind != money.Extend && t.Expires != 0:
		return "expires is only for hold and extend: leave it 0"
	case t.Kind != money.Post && t.Credit != "":
		return "credit is only for posted, hold and post: leave it empty"
	}
	return ""
}

// checkChain checks each transfer of a chain, and that the chain is complete. It returns
// the position of the wrong transfer.
func checkChain(chain []money.Transfer) (int, *messages.Error) {
	for i := range chain {
		if err := Check(&chain[i]); err != nil {
			return i, err
		}
	}
	last := len(chain) - 1
	if chain[last].Linked {
		return last, invalid(&chain[last], "linked is set, but no transfer follows: leave it out in the last one of a chain")
	}
	if last == 0 {
		return 0, nil
	}
	seen := make(map[string]bool, len(chain))
	for i := range chain {
		if seen[chain[i].ID] {
			return i, invalid(&chain[i], "id is used twice in one chain: choose another")
		}
		seen[chain[i].ID] = true
	}
	return 0, nil
}

// textual reports whether s is printable on one line and has at most `most` bytes.
func textual(s string, most int) bool {
	if len(s) > most {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c > '~' {
			return utf8.ValidString(s[i:]) && strings.IndexFunc(s[i:], unicode.IsControl) < 0
		}
	}
	return true
}

func clip(s string) string { return messages.Short(s, 96) }
