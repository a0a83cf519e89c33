package ledger

import (
	"strings"

	"github.com/candor-grid/candor/messages"
)

// transfers carries out a batch, chain by chain.
func (l *Ledger) transfers(c *Command) []messages.TransferResult {
	batch := c.Transfers
	results := make([]messages.TransferResult, len(batch))
	for start := 0; start < len(batch); {
		end := start + 1
		for end < len(batch) && batch[end-1].Linked {
			end++
		}
		l.chain(c, start, end, results[start:end])
		start = end
	}
	return results
}

// chain carries out linked transfers, mostly a single one: all or none.
func (l *Ledger) chain(c *Command, start, end int, results []messages.TransferResult) {
	chain := c.Transfers[start:end]
	if culprit, err := checkChain(chain); err != nil {
		refuseAll(chain, culprit, err, results)
		return
	}
	if c.Proof != nil {
		if culprit, err := reservedIn(chain); err != nil {
			refuseAll(chain, culprit, err, results)
			return
		}
	}
	if l.recallChain(chain, results) {
		return
	}
	steps := l.steps[:0]
	for i := range chain {
		s, err := l.prepare(c.By, &chain[i])
		if err == nil {
			err = s.permitted(c)
		}
		if err != nil {
			l.undoAll(steps)
			refuseAll(chain, i, err, results)
			l.rememberRefusals(c, start, chain, results)
			return
		}
		l.do(&s)
		steps = append(steps, s)
	}
	for i := range steps {
		steps[i].stamp = c.stamp(start + i)
		l.commit(c.By, &steps[i])
		results[i].Amount = steps[i].result()
	}
	l.steps = steps
	if l.rules >= secondRules {
		l.sweepMoved()
	} else {
		l.sweepAfter(steps)
	}
}

// reservedIn finds what only the clearing does: to touch the account of a peer, or
// to make or resolve what settles with it. Where no proofs are taken the leader
// refuses it.
func reservedIn(chain []messages.Transfer) (int, *messages.Error) {
	for i := range chain {
		t := &chain[i]
		for _, name := range []messages.Name{t.Debit, t.Credit, t.Member} {
			if strings.HasPrefix(name, messages.PeerAccountPrefix) {
				return i, messages.Errorf(messages.PermissionDenied, "transfer %q: account %q is for settlements with other sites, which only the banks of both make", clip(t.ID), clip(name))
			}
		}
		if strings.HasPrefix(t.ID, ClearingPrefix) || strings.HasPrefix(t.Pending, ClearingPrefix) {
			return i, messages.Errorf(messages.PermissionDenied, "transfer %q: identifiers that begin with %q are those of settlements with other sites, which only the banks of both resolve", clip(t.ID), ClearingPrefix)
		}
	}
	return 0, nil
}

// sweepAfter is sweepMoved under the first rules: it returns what a chain freed of
// grants that had expired.
func (l *Ledger) sweepAfter(steps []step) {
	for i := range steps {
		if s := &steps[i]; s.hold != nil && len(s.debit.lots) > 0 {
			l.sweep(s.debit, l.now)
		}
	}
}

// refuseAll answers every transfer of a chain with the refusal of one.
func refuseAll(chain []messages.Transfer, culprit int, err *messages.Error, results []messages.TransferResult) {
	for i := range results {
		results[i].Error = err
		if i != culprit {
			results[i].Error = messages.Errorf(err.Kind, "transfer %q was not done, for it is linked to one that was refused: %s", clip(chain[i].ID), err.Message)
		}
	}
}

func (l *Ledger) undoAll(steps []step) {
	for i := len(steps) - 1; i >= 0; i-- {
		l.undo(&steps[i])
	}
}

func (l *Ledger) rememberRefusals(c *Command, start int, chain []messages.Transfer, results []messages.TransferResult) {
	for i := range chain {
		l.rememberRefusal(c.By, &chain[i], results[i].Error, c.stamp(start+i))
	}
}

// rememberRefusal writes a refusal down. One that was written down before stands
// as it was, for its wording may be that of another release.
func (l *Ledger) rememberRefusal(by messages.Name, t *messages.Transfer, err *messages.Error, asked stamp) {
	rec := record{what: refused, at: l.now, by: by, asked: *t, refusal: *err, stamp: asked}
	if l.replay != nil {
		l.replay.quote(&rec)
	}
	l.known.add(t.ID, l.write(&rec, nil, nil))
}

// stamp is the proof of a transfer, if it has one.
func (c *Command) stamp(i int) stamp {
	if c.Proof == nil {
		return stamp{}
	}
	return stamp{session: c.Proof.Session, mark: c.mark(i)}
}

// recallChain answers a chain of which some identifier is known; false if
// none is.
func (l *Ledger) recallChain(chain []messages.Transfer, results []messages.TransferResult) bool {
	known := false
	for i := range chain {
		known = known || l.recorded(chain[i].ID) != 0
	}
	if !known {
		return false
	}
	for i := range chain {
		results[i] = l.recall(&chain[i])
	}
	return true
}

// recall returns the remembered result of a transfer, or a Conflict.
func (l *Ledger) recall(t *messages.Transfer) messages.TransferResult {
	number := l.recorded(t.ID)
	if number == 0 {
		return messages.TransferResult{Error: messages.Errorf(messages.Conflict,
			"transfer %q is new, but is linked to one that was answered before without it: send the chain as it was, or under new identifiers", clip(t.ID))}
	}
	rec := l.record(number)
	if !same(rec.asked, *t) {
		return messages.TransferResult{Error: messages.Errorf(messages.Conflict,
			"transfer %q was answered before with other content: choose a new identifier for a new transfer", clip(t.ID))}
	}
	result := rec.result()
	if result.Error == nil && rec.asked.Kind == messages.Extend {
		result.Amount = l.record(l.recorded(rec.asked.Pending)).asked.Amount
	}
	return result
}

// same reports whether two transfers under one identifier have the same
// content. When a hold is to expire is counted from the moment of asking and
// so differs when the same is asked again: the first expiry stands.
func same(a, b messages.Transfer) bool {
	if a.Kind == messages.Hold && b.Kind == messages.Hold {
		a.Expires = b.Expires
	}
	return a == b
}

// commit writes down a step that was done, and remembers its identifier.
func (l *Ledger) commit(by messages.Name, s *step) {
	debit, credit := s.debit, s.credit
	if s.amount == 0 && s.held == 0 {
		debit = nil // an Extend changes no standing
	}
	if s.amount == 0 {
		credit = nil
	}
	rec := record{what: done, at: l.now, by: by, asked: *s.asked, outcome: s.outcome(), stamp: s.stamp}
	l.known.add(s.asked.ID, l.write(&rec, debit, credit))
	l.done++
}

// maker returns a copy of a name that many holds share: most are made by one
// service.
func (l *Ledger) maker(by messages.Name) messages.Name {
	if l.made != by {
		l.made = strings.Clone(by)
	}
	return l.made
}
