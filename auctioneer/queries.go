package auctioneer

import (
	"context"

	"github.com/candor-grid/candor/auctioneer/archive"
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/listing"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// queries answers questions of users and operators about jobs, nodes and markets.
type queries struct {
	*term
	remote *remote
}

// remoteJob finds a job that another site runs or ran. It returns nil if there is none that the caller may see.
func (l *queries) remoteJob(caller messages.Name, id messages.JobID) *book.RemoteJob {
	if away := l.remote.find(caller, id); away != nil {
		return away
	}
	away := false
	l.replica.read(func(b *book.Book) { away = b.Job(id) == nil })
	if !away || l.Archive == nil || !l.Archive.Has(id) {
		return nil
	}
	e, err := l.find(caller, id, messages.Errorf(messages.NotFound, "there is no job %d", id))
	if err != nil {
		return nil // the caller then searches the jobs of this site, and gets the same error there
	}
	return e.Remote
}

// older adds archived jobs to a page, and returns how many records could not be read.
func (l *queries) older(ctx context.Context, page *listing.Page, account messages.Name) (unreadable int, err error) {
	wanted := func(e archive.Extent) bool { return page.Wants(e.Oldest, e.Newest, e.Submitted, e.Ended) }
	return l.Archive.Scan(account, wanted, page.Names, func(j *job.JobSummary) error {
		page.AddArchived(j)
		return ctx.Err()
	})
}

// copyAtOnce is the maximum number of bytes of an archive in one answer.
const copyAtOnce = 512 << 10

// archived handles the request of another replica for a part of this replica's archive.
func (l *queries) archived(_ context.Context, caller messages.Name, r job.ArchiveRequest) (reply job.ArchiveReply, err error) {
	if caller != messages.ServiceIdentity(messages.Auctioneer) {
		return reply, messages.Errorf(messages.PermissionDenied, "only replicas of the auctioneer copy the archive of jobs; list jobs instead")
	}
	if l.Archive == nil {
		return reply, nil
	}
	reply.Complete = l.Archive.About().Complete
	reply.Segment, reply.Size, reply.Data, err = l.Archive.Part(r.Segment, r.Offset, copyAtOnce)
	return reply, err
}

// past sends the new samples of this replica's histories to another replica, which asks for them.
func (l *queries) past(_ context.Context, caller messages.Name, r market.PastRequest) (market.PastReply, error) {
	if caller != messages.ServiceIdentity(messages.Auctioneer) {
		return market.PastReply{}, messages.Errorf(messages.PermissionDenied, "only replicas of the auctioneer copy the histories; ask for the history of a market instead")
	}
	return l.histories.part(r.From, r.After), nil
}

// history returns the history of a market or a node. A caller who may see the present state may see the history.
func (l *queries) history(ctx context.Context, caller messages.Name, r market.HistoryRequest) (reply market.HistoryReply, err error) {
	if err := r.Validate(); err != nil {
		return reply, err
	}
	if r.Over == 0 {
		r.Over = 3600 * aSecond
	}
	if m := l.inForce(); r.Market != "" && m.Find(r.Market) == nil {
		return reply, m.Missing("market: ", r.Market)
	}
	if err := l.verify(ctx); err != nil {
		return reply, err
	}
	now := l.Clock()
	l.histories.mu.Lock()
	defer l.histories.mu.Unlock()
	reply.Since = l.histories.since
	if m := l.histories.markets[r.Market]; m != nil {
		m.tell(&reply, now, r.Over, caller, l.operates(caller))
	} else if n := l.histories.nodes[r.Node]; n != nil {
		n.tell(&reply, now, r.Over)
	}
	return reply, nil
}
