package courier

import (
	"context"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
)

// Reconcile compares both books with those of a peer, and returns where each
// first differs, if not as far as both go back and forth.
func (c *Courier) Reconcile(ctx context.Context, peer messages.Name) (messages.ReconcileReply, error) {
	reply := messages.ReconcileReply{Peer: peer}
	for _, sender := range []messages.Name{c.config.Site, peer} {
		ours, err := c.book(peer, sender)
		if err != nil {
			return messages.ReconcileReply{}, err
		}
		theirs, err := c.theirBook(ctx, peer, sender)
		if err != nil {
			return messages.ReconcileReply{}, err
		}
		reply.Books = append(reply.Books, compare(sender, ours, theirs))
	}
	return reply, nil
}

func compare(sender messages.Name, ours, theirs []messages.ClearingLine) messages.ReconciledBook {
	b := messages.ReconciledBook{Sender: sender, Ours: end(ours), Theirs: end(theirs)}
	if d, differ := clearing.Compare(ours, theirs); differ {
		b.Difference = &messages.BookDifference{Number: d.Number, Earlier: d.Earlier, Ours: d.Ours, Theirs: d.Theirs}
	}
	return b
}

// end is the last number of a book, 0 if it has none.
func end(lines []messages.ClearingLine) uint64 {
	if len(lines) == 0 {
		return 0
	}
	return lines[len(lines)-1].Number
}

// book is this site's book of one direction, page by page.
func (c *Courier) book(peer, sender messages.Name) ([]messages.ClearingLine, error) {
	return pages(sender, func(r messages.LinesRequest) (page messages.Lines, err error) {
		c.config.Host.Read(func(s *clearing.State) { page, err = s.Lines(peer, r) })
		return page, err
	})
}

// theirBook is the peer's book of one direction, each page of which it signs.
func (c *Courier) theirBook(ctx context.Context, peer, sender messages.Name) ([]messages.ClearingLine, error) {
	return pages(sender, func(r messages.LinesRequest) (messages.Lines, error) {
		var signed messages.SignedLines
		if err := c.ask(ctx, peer, messages.VerbLines, &r, &signed); err != nil {
			return messages.Lines{}, err
		}
		var refused *clearing.Rejected
		c.config.Host.Read(func(s *clearing.State) { refused = s.ScreenLines(&signed, peer, sender) })
		if refused != nil {
			return messages.Lines{}, c.refuse(refused)
		}
		return signed.Lines, nil
	})
}

// maxBook bounds the lines that are fetched of a book: more than any keeps.
const maxBook = 20 * messages.MaxBookLines

// pages collects the pages of a book, as far as it went when it was begun.
func pages(sender messages.Name, page func(messages.LinesRequest) (messages.Lines, error)) (all []messages.ClearingLine, err error) {
	for next, last := uint64(1), uint64(1); next <= last && len(all) < maxBook; {
		p, err := page(messages.LinesRequest{Sender: sender, From: next})
		if err != nil {
			return nil, err
		}
		if next == 1 {
			last = p.Last
		}
		if len(p.List) == 0 {
			break
		}
		if len(all) > 0 && p.List[0].Number != next {
			return nil, messages.Errorf(messages.Conflict, "the page from number %d on begins with %d", next, p.List[0].Number)
		}
		all = append(all, p.List...)
		next = p.List[len(p.List)-1].Number + 1
	}
	return all, nil
}
