package ledger

import (
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
)

// chains carries out chains of linked transfers: all transfers of a chain, or none.
type chains struct {
	records *records
	books   *books
	plans   *planner
	expiry  *expiry
	steps   []step // memory that is used again for each chain
}

func (cs *chains) run(c *Command) []money.TransferResult {
	batch := c.Transfers
	results := make([]money.TransferResult, len(batch))
	for start := 0; start < len(batch); {
		end := start + 1
		for end < len(batch) && batch[end-1].Linked {
			end++
		}
		cs.chain(c, start, end, results[start:end])
		start = end
	}
	return results
}

// chain carries out a chain of linked transfers: either all of them, or none. They have the indices from `start` to
// `end` − 1 in the command. Most chains have one transfer.
func (cs *chains) chain(c *Command, start, end int, results []money.TransferResult) {
	chain := c.Transfers[start:end]
	if culprit, err := checkChain(chain); err != nil {
		refuseAll(chain, culprit, err, results)
		return
	}
	if c.Rank != Clearing {
		if culprit, err := reservedIn(chain); err != nil {
			refuseAll(chain, culprit, err, results)
			return
		}
	}
	if cs.recallChain(chain, results) {
		return
	}
	steps := cs.steps[:0]
	for i := range chain {
		s, err := cs.plans.prepare(c.By, &chain[i])
		if err == nil {
			err = s.permitted(c)
		}
		if err != nil {
			cs.books.undoAll(steps)
			refuseAll(chain, i, err, results)
			cs.rememberRefusals(c, start, chain, results)
			return
		}
		s.chained = len(chain) > 1
		cs.books.do(&s)
		steps = append(steps, s)
	}
	for i := range steps {
		steps[i].stamp = c.stamp(start + i)
		cs.books.commit(c.By, &steps[i])
		results[i].Amount = steps[i].result()
	}
	cs.steps = steps
	cs.expiry.sweepMoved()
}

// reservedIn returns the position of the first transfer in the chain that only the clearing may make, and an error.
// Such a transfer names a peer's account, for example "clearing-west", or an identifier under ClearingPrefix. If there
// is none, the error is nil.
func reservedIn(chain []money.Transfer) (int, *messages.Error) {
	for i := range chain {
		t := &chain[i]
		for _, name := range []messages.Name{t.Debit, t.Credit, t.Member} {
			if strings.HasPrefix(name, clearing.PeerAccountPrefix) {
				return i, messages.Errorf(messages.PermissionDenied, "transfer %q: account %q is for settlements with another site, and only the two banks move its credits", clip(t.ID), clip(name))
			}
		}
		if strings.HasPrefix(t.ID, ClearingPrefix) || strings.HasPrefix(t.Pending, ClearingPrefix) {
			return i, messages.Errorf(messages.PermissionDenied, "transfer %q: identifiers that begin with %q are for settlements with other sites, and only the banks make or resolve such transfers", clip(t.ID), ClearingPrefix)
		}
	}
	return 0, nil
}

// refuseAll is called when one transfer of a chain was refused; the argument `culprit` is its position. It sets the
// results of all transfers of the chain to the error of this transfer.
func refuseAll(chain []money.Transfer, culprit int, err *messages.Error, results []money.TransferResult) {
	for i := range results {
		results[i].Error = err
		if i != culprit {
			results[i].Error = messages.Errorf(err.Kind, "transfer %q was not done, because it is linked to a transfer that was refused: %s", clip(chain[i].ID), err.Message)
		}
	}
}

func (cs *chains) rememberRefusals(c *Command, start int, chain []money.Transfer, results []money.TransferResult) {
	for i := range chain {
		cs.books.refuse(c.By, &chain[i], results[i].Error, c.stamp(start+i))
	}
}

// stamp returns the proof of transfer i. It is empty if the command has no proof.
func (c *Command) stamp(i int) stamp {
	if c.Proof == nil {
		return stamp{}
	}
	return stamp{session: c.Proof.Session, mark: c.mark(i)}
}

// recallChain writes the answers that the transfers of a chain got earlier into `results`. It returns false if none of
// the chain's identifiers was answered before.
func (cs *chains) recallChain(chain []money.Transfer, results []money.TransferResult) bool {
	known := false
	for i := range chain {
		known = known || cs.records.recorded(chain[i].ID) != 0
	}
	if !known {
		return false
	}
	for i := range chain {
		results[i] = cs.records.recall(&chain[i])
	}
	return true
}
