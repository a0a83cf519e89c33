package ledger

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/proof"
)

// what says what a record of the journal is about. The list is append-only.
type what uint8

const (
	opened     what = iota + 1 // account was opened
	membership                 // member was added to account, or removed
	done                       // asked was carried out
	refused                    // asked was refused, and is to be refused for ever
	lapsed                     // hold asked.Pending came to its expiry
	changed                    // change was made to its account
	trusted                    // signed is what the site said of its keys
	requested                  // signed was asked for, and the records behind it are what it came to
	said                       // signed.Payload is what a peer's bank signed, and the records behind it are what it came to
)

// marked in a record's first byte says that it ends with a stamp.
const marked = 0x40

// stamp proves who asked for a transfer; its zero value proves nothing.
type stamp struct {
	session uint64
	mark    proof.Mark
}

// record is one line of the journal in decoded form.
type record struct {
	what what
	at   messages.Time
	by   messages.Name
	rank Rank // of by

	account messages.Name // opened, membership
	member  messages.Name // membership
	remove  bool          // membership
	change  change        // changed

	asked   messages.Transfer // done, refused; lapsed: only Kind and Pending
	outcome outcome           // done, lapsed
	refusal messages.Error    // refused

	// The entries that the record is, on the statements of the accounts that
	// it debits and credits.
	debitLink, creditLink link

	stamp stamp // done, refused

	signed messages.SignedRequest // trusted, requested, said
	verb   string                 // requested, said
	token  proof.Token            // of signed, where it was read already
	digest digest                 // of signed, where it is looked for
}

// key is the identifier under which the record is found, "" for none.
func (r *record) key() string {
	switch r.what {
	case done, refused:
		return r.asked.ID
	case lapsed:
		return lapseKey(r.asked.Pending)
	}
	return ""
}

// lapseKey is the identifier of a hold's lapsing, which no transfer can have.
func lapseKey(hold string) string { return "\x00" + hold }

// outcome is what a transfer came to.
type outcome struct {
	debit  messages.Name
	credit messages.Name    // "" where credits move nowhere
	amount messages.Credits // moved from debit to credit
	held   messages.Credits // change of what is reserved on debit
	job    messages.JobID
	// The standing of each account after it.
	debitAfter, creditAfter standing
}

// standing is what an account has, and how much of it is set aside.
type standing struct{ balance, reserved messages.Credits }

func (s standing) available() messages.Credits { return s.balance - s.reserved }

// resolves reports whether a kind acts on an existing hold.
func resolves(k messages.TransferKind) bool {
	return k == messages.Post || k == messages.Void || k == messages.Extend
}

// ranked is set in the first byte of every record.
const ranked = 0x80

// record is a record in its canonical bytes.
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

// outcome is only what does not follow from the transfer itself.
func (c *codec) outcome(t *messages.Transfer, o *outcome) {
	if t.Kind != messages.Posted && t.Kind != messages.Hold {
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

// follow is what follows from a transfer that was done.
func (o *outcome) follow(t *messages.Transfer) {
	switch t.Kind {
	case messages.Posted:
		*o = outcome{debit: t.Debit, credit: t.Credit, amount: t.Amount, job: t.Job}
	case messages.Hold:
		*o = outcome{debit: t.Debit, held: t.Amount, job: t.Job}
	case messages.Post:
		o.amount = t.Amount
	}
}

func (c *codec) standing(s *standing) {
	number(c, &s.balance)
	number(c, &s.reserved)
}

// decodeRecord reads a record; false if it cannot be one.
func decodeRecord(b []byte) (record, bool) {
	var rec record
	c := decoder(b)
	c.record(&rec)
	return rec, c.ok()
}

// remembered says what a refusal was for, to whoever asks again. The journal has only
// its kind, for it has to be the same at every replica, and the words are those of a
// release.
func remembered(kind messages.Kind) string {
	return "this was refused when it was asked for first: " + whyRefused(kind) + "; to try again, choose a new identifier or key"
}

// whyRefused puts a kind of refusal in words.
func whyRefused(kind messages.Kind) string {
	why := map[messages.Kind]string{
		messages.Insufficient:     "the account, the hold or the member's limit did not cover it",
		messages.NotFound:         "an account or a hold that it names was not there",
		messages.PermissionDenied: "the account was frozen, or it was not for whoever asked",
		messages.Expired:          "its time, or its hold's, had passed",
		messages.Ended:            "its hold was resolved",
		messages.Exhausted:        "the account had as many holds or expiring grants as there can be",
		messages.TooLarge:         "it was more than can be counted",
		messages.Invalid:          "it did not fit its hold",
	}[kind]
	if why == "" {
		why = "it could not be done"
	}
	return why
}

// result is what the maker of a recorded transfer was told.
func (r *record) result() messages.TransferResult {
	if r.what == refused {
		refusal := r.refusal
		return messages.TransferResult{Error: &refusal}
	}
	return messages.TransferResult{Amount: resultAmount(&r.asked, r.outcome.amount, r.outcome.held)}
}
