package ledger

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/proof"
)

// The type what is the kind of a record. New kinds are added at the end.
type what uint8

const (
	opened     what = iota + 1 // the account in the field account was opened
	membership                 // the user in the field member was added to the account, or removed from it
	done                       // the transfer in the field asked was carried out
	refused                    // the transfer in the field asked was refused; the answer stays the same for ever
	lapsed                     // the hold with the identifier asked.Pending expired
	changed                    // the change in the field change was made to an account
	trusted                    // the field signed has a statement of the site about its keys
	requested                  // the field signed has a request that was carried out; the next records follow from it
	said                       // signed.Payload is a statement signed by a peer's bank; the next records follow from it
)

// marked is a bit in the first byte of a record. It is set if the record ends with a stamp, which proves who made the
// transfer.
const marked = 0x40

// stamp proves who made a transfer. The zero value proves nothing.
type stamp struct {
	session uint64
	mark    proof.Mark
}

// record is the decoded form of a record of the journal. Not every kind of record uses every field: the comment on a
// field names the kinds that use it.
type record struct {
	what what
	at   messages.Time
	by   messages.Name
	rank Rank // rank of the account in the field by

	account messages.Name // used by the kinds opened and membership
	member  messages.Name // used by the kind membership
	remove  bool          // used by the kind membership
	change  change        // used by the kind changed

	asked   money.Transfer // used by the kinds done and refused; the kind lapsed uses only Kind and Pending
	outcome outcome        // used by the kinds done and lapsed
	refusal messages.Error // used by the kind refused

	// The record debits one account and credits another one. debitLink points to the previous entry of the debited
	// account, and creditLink points to the previous entry of the credited account.
	debitLink, creditLink link

	stamp stamp // used by the kinds done and refused

	signed messages.SignedRequest // used by the kinds trusted, requested and said
	verb   string                 // used by the kinds requested and said
	token  proof.Token            // decoded from signed, if that was done already
	digest digest                 // digest of signed, if it was computed already
}

// key returns the identifier under which the index has the record, or "".
func (r *record) key() string {
	switch r.what {
	case done, refused:
		return r.asked.ID
	case lapsed:
		return lapseKey(r.asked.Pending)
	}
	return ""
}

// lapseKey returns the index key of a lapsed hold. No transfer can have this identifier.
func lapseKey(hold string) string { return "\x00" + hold }

type outcome struct {
	debit  messages.Name
	credit messages.Name    // "" if no credits move
	amount messages.Credits // amount moved from debit to credit
	held   messages.Credits // change of the debited account's reserve
	job    messages.JobID
	// debitAfter and creditAfter describe the two accounts after the transfer.
	debitAfter, creditAfter standing
}

// standing is the balance of an account, and the part of it that is reserved.
type standing struct{ balance, reserved messages.Credits }

func (s standing) available() messages.Credits { return s.balance - s.reserved }

// resolves reports whether a transfer of this kind ends or extends a hold that an earlier transfer made.
func resolves(k money.TransferKind) bool {
	return k == money.Post || k == money.Void || k == money.Extend
}

// ranked is a bit that is set in the first byte of every record. A record without it is malformed.
const ranked = 0x80

func (c *codec) record(r *record) {
	first := byte(r.what) | ranked
	if r.stamp.session != 0 {
		first |= marked
	}
	octet(c, &first)
	if r.what = what(first &^ (ranked | marked)); first&ranked == 0 {
		c.fail()
	}
	number(c, &r.at)
	c.text(&r.by)
	octet(c, &r.rank)
	switch r.what {
	case trusted, requested, said:
		c.text(&r.verb)
		c.signed(&r.signed)
	case opened, membership:
		c.text(&r.account)
		c.text(&r.member)
		c.flag(&r.remove)
	case changed:
		c.change(&r.change)
	case refused:
		c.transfer(&r.asked)
		octet(c, &r.refusal.Kind)
		if c.reads {
			r.refusal.Message = remembered(r.refusal.Kind)
		}
	case done, lapsed:
		c.transfer(&r.asked)
		c.outcome(&r.asked, &r.outcome)
		c.link(&r.debitLink)
		if r.outcome.credit != "" {
			c.link(&r.creditLink)
		}
	default:
		c.fail()
	}
	if first&marked != 0 {
		if c.uint(&r.stamp.session); r.stamp.session == 0 || r.what != done && r.what != refused {
			c.fail()
		}
		c.raw(r.stamp.mark[:])
	}
}

// outcome encodes the outcome of a transfer, or decodes it, depending on the codec. It leaves out the fields that
// follow from the transfer itself.
func (c *codec) outcome(t *money.Transfer, o *outcome) {
	if t.Kind != money.Posted && t.Kind != money.Hold {
		c.text(&o.debit)
		c.text(&o.credit)
		number(c, &o.held)
		c.uint((*uint64)(&o.job))
	}
	if c.reads {
		o.follow(t)
	}
	c.standing(&o.debitAfter)
	if o.credit != "" {
		c.standing(&o.creditAfter)
	}
}

// follow sets the fields of the outcome that follow from the transfer.
func (o *outcome) follow(t *money.Transfer) {
	switch t.Kind {
	case money.Posted:
		*o = outcome{debit: t.Debit, credit: t.Credit, amount: t.Amount, job: t.Job}
	case money.Hold:
		*o = outcome{debit: t.Debit, held: t.Amount, job: t.Job}
	case money.Post:
		o.amount = t.Amount
	}
}

func (c *codec) standing(s *standing) {
	number(c, &s.balance)
	number(c, &s.reserved)
}

// decodeRecord decodes a record. It returns false if b is malformed.
func decodeRecord(b []byte) (record, bool) {
	var rec record
	c := decoder(b)
	c.record(&rec)
	return rec, c.ok()
}

// remembered returns the message of a refusal that the bank remembers. The journal has only the kind of the refusal,
// not a text: texts differ between releases, but the state of all replicas must be equal.
func remembered(kind messages.Kind) string {
	return "this was refused when it was first asked for: " + whyRefused(kind) + "; to try again, choose a new identifier or key"
}

func whyRefused(kind messages.Kind) string {
	why := map[messages.Kind]string{
		messages.Insufficient:     "the account, the hold or the member's limit did not cover it",
		messages.NotFound:         "an account or a hold that it names did not exist",
		messages.PermissionDenied: "the account was frozen, or the caller was not permitted",
		messages.Expired:          "its time, or its hold's, had passed",
		messages.Ended:            "its hold was already resolved",
		messages.Exhausted:        "the account had the maximum of holds or expiring grants",
		messages.TooLarge:         "the amount exceeded what an account can count",
		messages.Invalid:          "it contradicted its hold",
	}[kind]
	if why == "" {
		why = "it could not be done"
	}
	return why
}

// result returns the answer that the maker of a recorded transfer got.
func (r *record) result() money.TransferResult {
	if r.what == refused {
		refusal := r.refusal
		return money.TransferResult{Error: &refusal}
	}
	return money.TransferResult{Amount: resultAmount(&r.asked, r.outcome.amount, r.outcome.held)}
}
