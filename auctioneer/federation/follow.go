package federation

import (
	"maps"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
)

// changes turns a peer's report about changed jobs into steps of the book.
func (e *Errands) changes(b *book.Book, a *asked, reply any, err error) (steps []book.Step, _ error) {
	d := e.destination(a.Peer)
	page, is := reply.(*clearing.PeerJobsReply)
	if err == nil && !is {
		err = messages.Errorf(messages.Unavailable, "the answer has an unexpected type: %T", reply)
	}
	d.blame(err)
	if err != nil {
		return nil, err
	}
	a.reply = page
	for i := range page.Jobs {
		s := &page.Jobs[i]
		if r := b.Remote(s.Job); r != nil && r.Peer == d.name && (r.Phase == book.Sending || r.Phase == book.There) {
			steps = append(steps, book.Step{Job: s.Job, Status: Heard(s, r), Conclude: true})
		}
	}
	return steps, nil
}

// followed is called after the book has stored a page of the jobs that changed at a peer. If there are more pages, it
// plans the request for the next page. After the last page, it asks separately for each job that the peer did not
// return.
func (e *Errands) followed(now messages.Duration, b *book.Book, d *destination, page *clearing.PeerJobsReply, err error) {
	d.follows = false
	d.news.after(now, err, e.rng)
	if err != nil {
		return
	}
	if page.Whole {
		d.seen = map[messages.JobID]bool{}
	}
	for i := range page.Jobs {
		if r := b.Remote(page.Jobs[i].Job); r != nil {
			e.note(r)
			if d.seen != nil {
				d.seen[r.ID] = true
			}
		}
	}
	d.cursor.Epoch, d.cursor.After = page.Epoch, page.Next
	if page.More || d.seen == nil {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(d.there)) {
		if !d.seen[id] {
			e.sought[id] = true
			e.note(b.Remote(id))
		}
	}
	d.seen = nil
}

// Heard returns a peer's report about a remote job. It corrects values that are impossible. It believes the peer only
// about the state of the job itself.
func Heard(said *job.JobSummary, r *book.RemoteJob) *job.JobSummary {
	s := *said
	s.State = min(s.State, job.Discarded)
	s.Charged = max(0, min(s.Charged, r.Spec.Budget))
	s.Tasks = r.Spec.TaskCount()
	s.Running, s.Done = max(0, min(s.Running, s.Tasks)), max(0, min(s.Done, s.Tasks))
	if !messages.ValidFreeName(s.Market) {
		s.Market = ""
	}
	s.Name, s.Reason, s.Message = "", job.Printable(s.Reason, maxHeard), job.Printable(s.Message, maxExplained)
	s.Started, s.Ended = max(0, s.Started), max(0, s.Ended)
	Tame(&s)
	return &s
}

const (
	maxHeard     = 64  // maximum length of a reason from a peer, in bytes
	maxExplained = 512 // maximum length of a sentence from a peer, in bytes
	maxOffers    = 256 // maximum number of offers from one peer
)

// Screened returns the offers of a peer that are possible, and puts the site's name before the names of contracts. It
// drops an offer in two cases: the offered completion time is in the past (by more than the largest difference of
// clocks), or it is after the last time at which an authorisation can be charged.
func Screened(site messages.Name, offers []clearing.Offer, now messages.Time) []clearing.Offer {
	offers = slices.DeleteFunc(offers[:min(len(offers), maxOffers)], func(o clearing.Offer) bool {
		never := o.Completion != 0 && (o.Completion < now.Add(-clearing.MaxClockSkew) || o.Completion > now.Add(clearing.MaxInterval))
		return !messages.ValidFreeName(o.Market) || o.Price < 0 || o.Budget < 0 || never || len(o.Cheapest) > job.MaxStages
	})
	for i := range offers {
		o := &offers[i]
		Tame(o)
		o.Site, o.Value, o.Basis = site, 0, messages.Clip(o.Basis, 4*maxHeard)
		if o.Completion != 0 {
			o.Completion = max(o.Completion, now)
		}
		if o.Contract != "" {
			o.Contract = site + "/" + messages.Clip(o.Contract, maxHeard)
		}
	}
	return offers
}
