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
	what  what
	rules rules // under which it was made, and in whose format it is written
	at    messages.Time
	by    messages.Name
	rank  Rank // of by; under the first rules, as far as by and the rest show it

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

	signed messages.SignedRequest // trusted, requested
	verb   string                 // requested
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

// ranked is set in the first byte of a record that says the rank of who asked:
// every one that was made under the second rules.
const ranked = 0x80

func (w *writer) record(r *record) {
	first := byte(r.what)
	if r.rules >= secondRules {
		first |= ranked
	}
	if r.stamp.session != 0 {
		first |= marked
	}
	w.byte(first)
	w.int(int64(r.at))
	w.text(r.by)
	if r.rules >= secondRules {
		w.byte(byte(r.rank))
	}
	switch r.what {
	case trusted, requested:
		w.text(r.verb)
		w.signed(&r.signed)
	case opened, membership:
		w.text(r.account)
		w.text(r.member)
		w.flag(r.remove)
	case changed:
		w.change(&r.change)
	case refused:
		w.transfer(&r.asked)
		w.byte(byte(r.refusal.Kind))
		if r.rules < secondRules {
			w.text(r.refusal.Message)
		}
	case done, lapsed:
		w.transfer(&r.asked)
		w.outcome(&r.asked, &r.outcome)
		w.link(r.debitLink)
		if r.outcome.credit != "" {
			w.link(r.creditLink)
		}
	}
	if r.stamp.session != 0 {
		w.uint(r.stamp.session)
		w.b = append(w.b, r.stamp.mark[:]...)
	}
}

// outcome writes only what does not follow from the transfer itself.
func (w *writer) outcome(t *messages.Transfer, o *outcome) {
	if resolves(t.Kind) {
		w.text(o.debit)
		w.text(o.credit)
		w.int(int64(o.held))
		w.uint(uint64(o.job))
	}
	w.standing(o.debitAfter)
	if o.credit != "" {
		w.standing(o.creditAfter)
	}
}

func (w *writer) standing(s standing) {
	w.int(int64(s.balance))
	w.int(int64(s.reserved))
}

// decodeRecord reads a record; false if it cannot be one.
func decodeRecord(b []byte) (record, bool) {
	r := reader{s: string(b)}
	first := r.byte()
	rec := record{what: what(first &^ (ranked | marked)), rules: firstRules, at: messages.Time(r.int()), by: r.text()}
	if first&ranked != 0 {
		rec.rules, rec.rank = secondRules, Rank(r.byte())
	}
	switch rec.what {
	case trusted, requested:
		rec.verb, rec.signed = r.text(), r.signed()
	case opened, membership:
		rec.account, rec.member, rec.remove = r.text(), r.text(), r.flag()
	case changed:
		rec.change = r.change()
	case refused:
		r.transfer(&rec.asked)
		rec.refusal.Kind = messages.Kind(r.byte())
		if rec.rules < secondRules {
			rec.refusal.Message = r.text()
		} else {
			rec.refusal.Message = remembered(rec.refusal.Kind)
		}
	case done, lapsed:
		r.transfer(&rec.asked)
		r.outcome(&rec.asked, &rec.outcome)
		rec.debitLink = r.link()
		if rec.outcome.credit != "" {
			rec.creditLink = r.link()
		}
	default:
		r.fail()
	}
	if first&marked != 0 {
		if rec.stamp.session = r.uint(); rec.stamp.session == 0 || rec.what != done && rec.what != refused {
			r.fail()
		}
		copy(rec.stamp.mark[:], r.raw(proof.MarkSize))
	}
	if rec.rules == firstRules {
		rec.rank = rec.likelyRank()
	}
	return rec, r.ok()
}

func (r *reader) outcome(t *messages.Transfer, o *outcome) {
	switch t.Kind {
	case messages.Posted:
		*o = outcome{debit: t.Debit, credit: t.Credit, amount: t.Amount, job: t.Job}
	case messages.Hold:
		*o = outcome{debit: t.Debit, held: t.Amount, job: t.Job}
	default:
		*o = outcome{debit: r.text(), credit: r.text(), held: messages.Credits(r.int()), job: messages.JobID(r.uint())}
	}
	if t.Kind == messages.Post {
		o.amount = t.Amount
	}
	o.debitAfter = r.standing()
	if o.credit != "" {
		o.creditAfter = r.standing()
	}
}

func (r *reader) standing() standing {
	return standing{balance: messages.Credits(r.int()), reserved: messages.Credits(r.int())}
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
