package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/proof"
)

// witness checks by the records of a journal alone that everything which issues
// or moves money was asked for by whom it says: each record is under the mark of
// a session, or follows a request that its maker signed, or is what the rules
// force (a hold that lapses, a grant that expires), which a replay checks.
type witness struct {
	trust  trust
	asked  *Command // what the last signed request asks for; nil: of the clearing
	before stamp    // of the record before, if it is linked to the next
	peers  Peers    // nil: what peers signed is not checked
	Report ProofReport
}

// Peers checks what the banks of other sites signed, and that what moves credits to and
// from their accounts follows from that.
type Peers interface {
	// Asked takes a request of this site whose proof was checked.
	Asked(verb string, payload []byte) error
	// Said takes what the bank of a peer signed, or is said to have signed.
	Said(by messages.Name, verb string, statement []byte) error
	// Moved takes a movement of the clearing. It reports whether what a peer signed, or an
	// operator's request that needs no peer, is known to lead to the movement.
	Moved(t *messages.Transfer, debit, credit messages.Name, amount messages.Credits) (proven bool, err error)
}

// ProofReport says what of a journal is proven.
type ProofReport struct {
	From     uint64 // the first record from which on everything is; 0: nothing is
	Requests uint64 // that were signed
	Marked   uint64 // transfers under the marks of sessions
	Forced   uint64 // records that the rules force
	Clearing uint64 // records of settlements with other sites
	Said     uint64 // statements that peers' banks signed
	Unheard  uint64 // movements to or from peers' accounts from before the journal had what peers signed
	Unread   uint64 // marks that need the site's keys to be checked
}

// add takes the next record; an error says what is not proven.
func (w *witness) add(number uint64, rec *record) error {
	if known := w.trust.root.From; known != 0 && w.trust.from == 0 && number >= known && rec.what != trusted {
		return fmt.Errorf("record %d is not proven, and the site wanted proofs from record %d on: this is another journal, or it was written anew", number, known)
	}
	if w.trust.from == 0 && rec.what != trusted {
		if rec.what == requested || rec.stamp.session != 0 {
			return fmt.Errorf("record %d has a proof, and the site has not said which keys are its own", number)
		}
		return nil
	}
	if err := w.check(number, rec); err != nil {
		return fmt.Errorf("record %d: %w", number, err)
	}
	return nil
}

func (w *witness) check(number uint64, rec *record) error {
	before := w.before
	w.before = stamp{}
	switch rec.what {
	case trusted:
		return w.learn(number, rec)
	case requested:
		return w.vouch(number, rec)
	case said:
		if w.peers == nil {
			return nil
		}
		w.Report.Said++
		return w.peers.Said(rec.by, rec.verb, rec.signed.Payload)
	case lapsed:
		w.Report.Forced++
		return nil
	case done, refused:
		if rec.stamp.session != 0 {
			if rec.asked.Linked {
				w.before = rec.stamp
			}
			return w.marked(rec, before)
		}
		return w.moved(rec)
	}
	return w.changed(rec)
}

func (w *witness) learn(number uint64, rec *record) error {
	k, err := w.trust.readKeys(&rec.signed)
	if err != nil {
		return err
	}
	w.trust.learn(&k)
	w.trust.succeed(k.Succession, number)
	if w.trust.from == 0 {
		w.trust.from, w.Report.From = number, number
	}
	return nil
}

func (w *witness) vouch(number uint64, rec *record) error {
	token, rank, err := w.trust.vouch(rec.verb, rec.by, &rec.signed, rec.at)
	if err != nil {
		return err
	}
	if err := entitled(rec.verb, rank); err != nil {
		return err
	}
	rec.token = token
	w.trust.note(rec, number)
	w.Report.Requests++
	if w.peers != nil {
		if err := w.peers.Asked(rec.verb, rec.signed.Payload); err != nil {
			return err
		}
	}
	w.asked = nil
	for verb, name := range requestNames {
		if name == rec.verb {
			c := Command{Verb: verb, By: rec.by, Asked: &rec.signed}
			if err := c.readAsked(); err != nil {
				return err
			}
			w.asked = &c
		}
	}
	return nil
}

// marked checks the mark of a transfer.
func (w *witness) marked(rec *record, before stamp) error {
	s, err := w.trust.session(rec.stamp.session, rec.by, rec.at)
	if err != nil {
		return err
	}
	if s.rank != rec.rank && s.rank != Operator {
		return fmt.Errorf("it is by %v, and its session is of %v", rec.rank, s.rank)
	}
	exchange := w.trust.exchange()
	if exchange == nil {
		w.Report.Unread++
		return nil
	}
	marker, err := s.open(w.trust.root.Site, exchange)
	if err != nil {
		return err
	}
	var last *proof.Mark
	if before.session == rec.stamp.session && before.session != 0 {
		last = &before.mark
	}
	if !proof.Equal(rec.stamp.mark, marker.Bytes(last, proof.AppendTransfer(nil, &rec.asked))) {
		return fmt.Errorf("transfer %q: its mark is not that of %q over this transfer", clip(rec.asked.ID), clip(rec.by))
	}
	w.Report.Marked++
	return nil
}

// moved checks a movement that is under no mark: of the bank's own making, on a
// request, or the clearing's.
func (w *witness) moved(rec *record) error {
	t := &rec.asked
	var want messages.Transfer
	c := w.asked
	if c == nil || c.By != rec.by {
		c = &Command{By: rec.by}
	}
	switch originOf(t.ID) {
	case returned:
		w.Report.Forced++
		return nil
	case ordinary:
		return w.ofClearing(rec)
	case granted, paid, withdrawn:
		want = c.movement()
	case corrected:
		want = *t // its parties are those of what it corrects, which a replay checks
		want.ID, want.Pending, want.Reason = correctPrefix+c.Correct.Transfer, c.Correct.Transfer, c.Correct.Reason
		if c.Correct.Amount != 0 {
			want.Amount = c.Correct.Amount
		}
	}
	if want.Kind = t.Kind; want != *t {
		return fmt.Errorf("nothing proves that %q asked for transfer %q of %s from %q to %q", clip(rec.by), clip(t.ID), t.Amount.Words(), clip(t.Debit), clip(t.Credit))
	}
	return nil
}

// ofClearing checks a transfer of the clearing: it is between a peer's account and
// another, or of a hold of the clearing's own. Who asked for it the clearing
// checked, by a peer's signature or a request that stands before.
func (w *witness) ofClearing(rec *record) error {
	t := &rec.asked
	own := strings.HasPrefix(t.ID, ClearingPrefix) &&
		(strings.HasPrefix(t.Pending, ClearingPrefix) || strings.HasPrefix(t.Debit, messages.PeerAccountPrefix) || strings.HasPrefix(t.Credit, messages.PeerAccountPrefix))
	if rec.rank != Clearing || !own {
		return fmt.Errorf("nothing proves that %q asked for transfer %q of %s from %q to %q", clip(rec.by), clip(t.ID), t.Amount.Words(), clip(t.Debit), clip(t.Credit))
	}
	w.Report.Clearing++
	o := &rec.outcome
	if w.peers == nil || rec.what != done || o.amount == 0 {
		return nil
	}
	proven, err := w.peers.Moved(t, o.debit, o.credit, o.amount)
	if !proven {
		w.Report.Unheard++
	}
	return err
}

// changed checks the opening and the change of an account.
func (w *witness) changed(rec *record) error {
	account := rec.account + rec.change.account
	if rec.rank == Clearing && strings.HasPrefix(account, messages.PeerAccountPrefix) {
		w.Report.Clearing++
		return nil
	}
	if c := w.asked; c != nil && c.By == rec.by && c.names(rec, account) {
		return nil
	}
	return fmt.Errorf("nothing proves that %q asked for the change of account %q", clip(rec.by), clip(account))
}

// names reports whether a command asks for what a record says of an account.
func (c *Command) names(rec *record, account messages.Name) bool {
	ch := &rec.change
	switch c.Verb {
	case Grant:
		return rec.what == opened && account == c.Grant.Account
	case Project:
		if account != c.Project.Account || ch.setting == asProject && ch.text != c.Project.Title {
			return false
		}
		owner := slices.Contains(c.Project.Owners, rec.member+ch.member)
		return rec.what == opened || ch.setting == asProject || owner && !rec.remove && (rec.what == membership || ch.setting == memberRole && ch.number == int64(messages.RoleOwner))
	case Member:
		m := &c.Member
		if account != m.Account || rec.member+ch.member != m.Member {
			return false
		}
		return rec.what == membership && rec.remove == m.Remove ||
			ch.setting == memberRole && m.Role != nil && ch.number == int64(*m.Role) ||
			ch.setting == memberLimit && m.Limit != nil && ch.number == int64(*m.Limit)
	case Freeze:
		return ch.setting == freeze && account == c.Freeze.Account && (freezer(ch.number) != thawed) == c.Freeze.Frozen
	case Credit:
		return ch.setting == creditLimit && account == c.Credit.Account && ch.number == int64(c.Credit.Credit) && ch.text == c.Credit.Reason
	}
	return false
}
