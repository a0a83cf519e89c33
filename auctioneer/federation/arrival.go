package federation

import (
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// Arrival is a visiting job that is not in the book yet.
type Arrival struct {
	book.Visit
	authorisation clearing.SignedAuthorisation
	refused       bool // the bank refused the authorisation
}

// A home site may send the same request again. If an earlier copy of this request already brought the job here, Known
// returns this visiting job. Otherwise it returns nil. It returns an error if the number belongs to another job.
func Known(b *book.Book, home messages.Name, r *clearing.PeerSubmitRequest, digest []byte) (*book.Job, error) {
	v := job.Visit{Home: home, Job: r.Job}
	j := b.Visitor(v)
	switch {
	case j == nil:
	case j.Account != messages.VisitorName(r.Account, home) || !slices.Equal(j.Digest, digest):
		return nil, messages.Errorf(messages.Conflict, "job: %v is the number of another job here", v)
	case j.Visit.Until != r.Authorisation.Authorisation.Ends(): // the home site used the number again
		return nil, messages.Errorf(messages.Conflict, "job: %v came here before with another authorisation: site %s used an old job number again; submit the job again", v, home)
	}
	return j, nil
}

// Arrive checks the request of a peer, and returns the arrival of its job.
func Arrive(site, home messages.Name, r *clearing.PeerSubmitRequest) (*Arrival, error) {
	a := &r.Authorisation.Authorisation
	if a.Issuer != home || a.Peer != site {
		return nil, messages.Errorf(messages.PermissionDenied, "authorisation: is from site %q for site %q; the authorisation must be from %q for %q", a.Issuer, a.Peer, home, site)
	}
	return &Arrival{authorisation: r.Authorisation,
		Visit: book.Visit{Visit: job.Visit{Home: home, Job: r.Job}, Authorisation: a.ID, Until: a.Ends()}}, nil
}

// Timely returns an error for a job that cannot end and be charged within its authorisation.
func (a *Arrival) Timely(now messages.Time, m *market.Market, spec *job.JobSpec) error {
	by := LastCall(now, a.Until)
	switch {
	case now >= by:
		return messages.Errorf(messages.Expired, "authorisation: ends at %v, too soon for a job", a.Until)
	case spec.Length > 0 && now.Add(spec.Length) > by:
		return messages.Errorf(messages.Invalid, "length: is %v, and a job of another site must end by %v, before its authorisation ends", spec.Length, by)
	case registry.Of(m).AtDeadline && spec.Deadline > by:
		return messages.Errorf(messages.Invalid, "deadline: the job would be charged at %v; a job of another site must end by %v, before its authorisation ends", spec.Deadline, by)
	}
	return nil
}

// Accept returns the request to this site's bank to accept the authorisation, for this job only.
func (a *Arrival) Accept() *clearing.AcceptRequest {
	return &clearing.AcceptRequest{Purpose: a.Visit.Visit.String(), Authorisation: a.authorisation, Firm: true}
}

// Accepted stores whether the bank refused the request that Accept returned. Errors that will pass do not count as
// refusals.
func (a *Arrival) Accepted(err error) { a.refused = err != nil && !messages.Passing(err) }

// Decline is called when a job was refused. The bank may already have accepted the job's authorisation, so Decline
// returns the request that gives the authorisation back. It returns false if the bank has refused the authorisation. In
// this case, the home site may send the job again with the same authorisation, and a late request to give it back would
// hit the second try.
func (a *Arrival) Decline(b *book.Book, why error) (*clearing.ChargeRequest, bool) {
	if messages.Passing(why) || a.refused || b.Visitor(a.Visit.Visit) != nil {
		return nil, false
	}
	return &clearing.ChargeRequest{Issuer: a.Home, ID: a.Authorisation, Reason: "the job was refused"}, true
}
