package courier

import (
	"context"
	"fmt"
	"sync"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
)

type peers struct {
	config   *Config
	proposer *proposer // counts the answers that were refused
}

func (p *peers) names() (names []messages.Name) {
	p.config.Host.Read(func(s *clearing.State) { names = s.Names() })
	return names
}

func (p *peers) ask(ctx context.Context, peer messages.Name, verb string, request, reply any) error {
	payload, err := wire.Marshal(request, wire.Msgpack)
	if err != nil {
		return err
	}
	subject := messages.Subject(peer, messages.Bank, verb, messages.ServiceIdentity(p.config.Site))
	data, err := p.config.Bus.Request(ctx, subject, payload)
	if err != nil {
		return job.Tamed(err)
	}
	return wire.UnmarshalReply(data, reply)
}

// collect asks all peers at the same time for their positions in a cycle. A wrong signature is a fault. Peers that do
// not answer, or have not closed the cycle, are left out.
func (p *peers) collect(ctx context.Context, cycle uint64) (positions []clearingmsg.Position, faults []string) {
	ctx, cancel := context.WithTimeout(ctx, p.config.Attempt.Std())
	defer cancel()
	names := p.names()
	replies := make([]clearingmsg.SignedPosition, len(names))
	errs := make([]error, len(names))
	var asked sync.WaitGroup
	for i, peer := range names {
		asked.Go(func() {
			errs[i] = p.ask(ctx, peer, clearingmsg.VerbPosition, &clearingmsg.CycleRequest{Cycle: cycle}, &replies[i])
		})
	}
	asked.Wait()
	for i, peer := range names {
		if errs[i] != nil {
			continue
		}
		err := p.proposer.check(func(s *clearing.State) *clearing.Rejected { return s.ScreenPosition(&replies[i], peer, cycle) })
		if err != nil {
			faults = append(faults, fmt.Sprintf("the position that %s sent is refused: %s", peer, messages.Detail(err)))
			continue
		}
		positions = append(positions, replies[i].Position)
	}
	return positions, faults
}

// reconcile compares this site's two books with the books of a peer. For each book it returns the number of the first
// line that differs, the range of lines that was compared, and the lines that each bank lost.
func (p *peers) reconcile(ctx context.Context, peer messages.Name) (clearingmsg.ReconcileReply, error) {
	reply, lost := clearingmsg.ReconcileReply{Peer: peer}, false
	for _, sender := range []messages.Name{p.config.Site, peer} {
		var certain uint64
		p.config.Host.Read(func(s *clearing.State) { certain = s.Certain(peer, sender) })
		ours, here, err := p.book(peer, sender)
		if err != nil {
			return clearingmsg.ReconcileReply{}, err
		}
		theirs, there, err := p.theirBook(ctx, peer, sender)
		if err != nil {
			return clearingmsg.ReconcileReply{}, err
		}
		book := clearingmsg.ReconciledBook{Sender: sender, Ours: here, Theirs: there, Difference: clearing.Compare(ours, theirs)}
		book.LostThere = max(certain, there) - there
		p.config.Host.Read(func(s *clearing.State) { book.LostHere = s.LostHere(peer, sender, theirs) })
		lost = lost || book.LostHere > 0
		reply.Books = append(reply.Books, book)
	}
	if err := p.ask(ctx, peer, clearingmsg.VerbTotals, &messages.Empty{}, &reply.Theirs); err != nil {
		return clearingmsg.ReconcileReply{}, err
	}
	return reply, p.proposer.check(func(s *clearing.State) (refused *clearing.Rejected) {
		if refused = s.ScreenTotals(&reply.Theirs, peer); refused != nil {
			return refused
		}
		reply.Waits = s.Uncompared(peer)
		if lost || s.Forgot(&reply.Theirs.Totals) {
			reply.Adoption, _ = s.Adoption(&reply.Theirs.Totals) // an error means that the books differ, so nothing can be adopted
		}
		return nil
	})
}

func (p *peers) book(peer, sender messages.Name) (lines []clearingmsg.ClearingLine, last uint64, err error) {
	return pages(sender, func(r clearingmsg.LinesRequest) (page clearingmsg.Lines, err error) {
		p.config.Host.Read(func(s *clearing.State) { page, err = s.Lines(peer, r) })
		return page, err
	})
}

// theirBook requests the peer's book of one direction, page by page. The peer signs each page.
func (p *peers) theirBook(ctx context.Context, peer, sender messages.Name) (lines []clearingmsg.ClearingLine, last uint64, err error) {
	return pages(sender, func(r clearingmsg.LinesRequest) (clearingmsg.Lines, error) {
		var signed clearingmsg.SignedLines
		if err := p.ask(ctx, peer, clearingmsg.VerbLines, &r, &signed); err != nil {
			return clearingmsg.Lines{}, err
		}
		err := p.proposer.check(func(s *clearing.State) *clearing.Rejected { return s.ScreenLines(&signed, peer, sender) })
		return signed.Lines, err
	})
}

// maxBook is the maximum number of lines that are read from a bank's book of a peer. A book never has so many lines.
const maxBook = 20 * clearingmsg.MaxBookLines

// pages collects the pages of a book. The first page says the last number of the book; pages reads up to this number,
// and returns it.
func pages(sender messages.Name, page func(clearingmsg.LinesRequest) (clearingmsg.Lines, error)) (all []clearingmsg.ClearingLine, last uint64, err error) {
	for next := uint64(1); (next == 1 || next <= last) && len(all) < maxBook; {
		p, err := page(clearingmsg.LinesRequest{Sender: sender, From: next})
		if err != nil {
			return nil, 0, err
		}
		if next == 1 {
			last = p.Last
		}
		if len(p.List) == 0 {
			break
		}
		if len(all) > 0 && p.List[0].Number != next {
			return nil, 0, messages.Errorf(messages.Conflict, "the page from number %d on begins with number %d", next, p.List[0].Number)
		}
		all = append(all, p.List...)
		next = p.List[len(p.List)-1].Number + 1
	}
	return all, last, nil
}
