package clearing

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// InstructionKind is the kind of a request from one bank to another.
type InstructionKind uint8

// The kinds of instruction. The list is append-only.
const (
	InstructPay    InstructionKind = iota // pay Amount to Account; the sender then owes Amount
	InstructCharge                        // charge Amount from the authorisation ID; the receiver then owes it; 0 frees the credits
	InstructSettle                        // settlement of Cycle: accept up to Amount of the sender's debt
	InstructRevoke                        // give up authorisation ID, unless it is charged already
	InstructPart                          // the sender has settled everything, and will send nothing more
)

var instructionNames = []string{"pay", "charge", "settle", "revoke", "part"}

// String returns the kind's name.
func (k InstructionKind) String() string { return messages.NameOf(instructionNames, k, "unknown") }

// MarshalText writes the kind's name.
func (k InstructionKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a kind's name.
func (k *InstructionKind) UnmarshalText(b []byte) error {
	return messages.ReadName(k, "instruction kind", instructionNames, b)
}

// Instruction is a numbered request from one bank to another. The numbers count the requests in this direction.
type Instruction struct {
	Kind    InstructionKind  `json:"kind"`
	ID      string           `json:"id,omitempty"`      // charge, revoke: the authorisation's; pay: the payer, as account/caller/key
	Account messages.Name    `json:"account,omitempty"` // pay: the payee; charge: the payee at the sender, "" for its own account
	Amount  messages.Credits `json:"amount"`
	Expires messages.Time    `json:"expires,omitempty"` // revoke: when the authorisation ends
	Cycle   uint64           `json:"cycle,omitempty"`   // settle
	Job     messages.JobID   `json:"job,omitempty"`     // charge: the job at the sender
	Reason  string           `json:"reason,omitempty"`
}

// Validate checks the fields of an instruction.
func (i *Instruction) Validate() error {
	if err := messages.CheckLine("reason", i.Reason, MaxClearingReason); err != nil {
		return err
	}
	if i.Amount != 0 || i.Kind == InstructPay {
		if err := checkAmount(i.Amount); err != nil {
			return err
		}
	}
	switch i.Kind {
	case InstructPay:
		return messages.NeedFreeName("account", i.Account)
	case InstructCharge, InstructRevoke:
		return checkIdentifier(i.ID)
	case InstructSettle:
		if i.Cycle == 0 {
			return messages.Errorf(messages.Invalid, "cycle: is 0; cycles are numbered from 1")
		}
	case InstructPart:
	default:
		return messages.Errorf(messages.Invalid, "kind: %d is unknown; the peer may be of a newer release", i.Kind)
	}
	return nil
}

// Instructions of one sender to one receiver are numbered. RunningTotal adds up all instructions up to the one with the
// number in the field Number. Digest is a hash chain over these instructions and their outcomes. Two banks with the
// same Digest have equal histories up to this instruction.
type RunningTotal struct {
	Number uint64           `json:"number"`
	Owed   messages.Credits `json:"owed"`   // What the sender owes the receiver; negative: the receiver owes
	Volume messages.Credits `json:"volume"` // sum of payments and charges
	Digest []byte           `json:"digest"` // 32 bytes
}

// Instructions is a list of consecutive instructions from one bank to another. First is the number of the first
// instruction in the list. The sender has already stored the outcomes of some earlier instructions. Known is the
// running total after the last instruction whose outcome the sender has stored. The receiver may forget these outcomes,
// because the sender does not ask for them again.
type Instructions struct {
	From  messages.Name `json:"from"`
	To    messages.Name `json:"to"`
	First uint64        `json:"first"`
	List  []Instruction `json:"list"`
	Known RunningTotal  `json:"known"`
	At    messages.Time `json:"at"` // by the sender's clock
	// Incarnation increases each time the sender is restored from an older backup.
	Incarnation uint64 `json:"incarnation,omitempty"`
}

// SignedInstructions are instructions, signed by their sender.
type SignedInstructions struct {
	Instructions Instructions `json:"instructions"`
	Signature    []byte       `json:"signature"`
}

// Receipt has the results of instructions, from number First on, and the receiver's running total after the last of
// them.
type Receipt struct {
	From     messages.Name          `json:"from"` // the site that received the instructions
	To       messages.Name          `json:"to"`
	First    uint64                 `json:"first"`
	Outcomes []money.TransferResult `json:"outcomes"`
	Total    RunningTotal           `json:"total"`
	At       messages.Time          `json:"at"`
}

// SignedReceipt is a receipt, signed by the receiver of the instructions.
type SignedReceipt struct {
	Receipt   Receipt `json:"receipt"`
	Signature []byte  `json:"signature"`
}

// LinesRequest asks a bank for its book of one direction, to find where two books differ.
type LinesRequest struct {
	Sender messages.Name `json:"sender"` // the site that sent the instructions: the caller's site or the one asked
	From   uint64        `json:"from"`   // the first number of the page
	Limit  int           `json:"limit,omitempty"`
}

// Validate checks the fields of the request.
func (r *LinesRequest) Validate() error {
	if !messages.ValidName(r.Sender) {
		return messages.BadName("sender", r.Sender)
	}
	if r.Limit < 0 || r.Limit > MaxBookLines {
		return messages.Errorf(messages.TooLarge, "limit %d: ask for 1 to %d lines, and ask for later lines with the field from", r.Limit, MaxBookLines)
	}
	return nil
}

// ClearingLine is one line of a book: the instruction, its outcome, and the digest of all lines up to it.
type ClearingLine struct {
	Number  uint64           `json:"number"`
	Kind    InstructionKind  `json:"kind"`
	Asked   messages.Credits `json:"asked"`
	Moved   messages.Credits `json:"moved"`
	Refused bool             `json:"refused"`
	Digest  []byte           `json:"digest"`
}

// Lines is a page of a book. A book lists the instructions that one bank sent to another.
type Lines struct {
	Site   messages.Name  `json:"site"` // the site that keeps the book
	Peer   messages.Name  `json:"peer"`
	Sender messages.Name  `json:"sender"`
	Oldest uint64         `json:"oldest"` // the first number that the book still keeps
	Last   uint64         `json:"last"`
	List   []ClearingLine `json:"list"`
	At     messages.Time  `json:"at"`
}

// SignedLines is a page of a book, with the signature of the site that keeps the book. A book lists the instructions
// that one bank sent to another.
type SignedLines struct {
	Lines     Lines  `json:"lines"`
	Signature []byte `json:"signature"`
}
