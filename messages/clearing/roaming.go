package clearing

import (
	"cmp"
	"fmt"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// These are verbs of the auctioneer, for jobs and quotes of several sites. Users ask their own site's auctioneer, which
// asks the other sites' auctioneers: see [PeerVerbs].
const (
	VerbOffers = "offers" // OffersRequest → OffersReply
	VerbOutput = "output" // OutputRequest → LogsReply: output or streams of a job at another site
)

// AnySite as the site of a submission means that the auctioneer chooses the site.
const AnySite messages.Name = "auto"

// These are the limits of requests between sites.
const (
	MaxPeerWait    = messages.Duration(20_000_000_000) // how long a site may delay an answer until there is news
	QuoteWithin    = messages.Duration(2_000_000_000)  // default time to wait for offers
	MaxQuoteWithin = messages.Duration(9_000_000_000)  // longest time to wait for offers, because a service answers within 10 s
	MaxSites       = 256                               // largest number of sites in one request
)

// OffersRequest asks several sites when they would complete a job, and at what price. No credits are set aside.
type OffersRequest struct {
	Spec   job.JobSpec       `json:"spec"`
	Sites  []messages.Name   `json:"sites,omitempty"`  // empty means this site and all its peers
	Within messages.Duration `json:"within,omitempty"` // how long to wait for answers; 0 means 2 s
}

// Validate returns an error for the first fault of a request.
func (r *OffersRequest) Validate() error {
	if len(r.Sites) > MaxSites {
		return messages.Errorf(messages.TooLarge, "sites: %d is above the limit of %d", len(r.Sites), MaxSites)
	}
	if err := messages.Distinct("sites", r.Sites, messages.NeedName); err != nil {
		return err
	}
	if r.Within < 0 || r.Within > MaxQuoteWithin {
		return messages.Errorf(messages.Invalid, "within: %v must be from 0 to %v", r.Within, MaxQuoteWithin)
	}
	return (&market.QuoteRequest{Spec: r.Spec}).Validate()
}

// Waits returns how long the site may wait for the offers of other sites.
func (r OffersRequest) Waits() messages.Duration { return cmp.Or(r.Within, QuoteWithin) }

// OffersReply has the offers of the sites that answered in time, sorted by site and completion. For each site without
// an offer, it has the reason.
type OffersReply struct {
	Offers []Offer  `json:"offers"`
	Silent []Silent `json:"silent"`
	Best   int      `json:"best"` // the position in Offers of the offer that submit would choose; -1 means none
	Why    string   `json:"why"`
}

// Silent is a site that made no offer.
type Silent struct {
	Site  messages.Name   `json:"site"`
	Error *messages.Error `json:"error"`
}

// Offer is a completion time and a price for a job at a site. If the offer has a Contract, the time and the price are
// binding. Otherwise they are an estimate.
type Offer struct {
	Site       messages.Name    `json:"site"`
	Market     messages.Name    `json:"market"`
	Mechanism  messages.Name    `json:"mechanism"`
	Completion messages.Time    `json:"completion,omitempty"` // expected (median) time; 0 means unknown
	Low        messages.Time    `json:"low,omitempty"`        // one job in ten completes earlier
	High       messages.Time    `json:"high,omitempty"`       // one job in ten completes later
	Price      messages.Credits `json:"price"`
	Budget     messages.Credits `json:"budget"`             // the least budget for a submission
	Contract   string           `json:"contract,omitempty"` // identifier to submit with; "" means that the numbers are only estimates
	Basis      string           `json:"basis"`              // a clause that says how the numbers were computed
	Value      float64          `json:"value,omitempty"`    // credits: the worth of that completion by the job's valuation
	// For each class that the job uses, the site subtracts the number of waiting tasks from the number of idle slots.
	// Free is the smallest of these differences. 0 can also mean unknown.
	Free int `json:"free,omitempty"`
	// Start is when the first task is expected to start; 0 means unknown.
	Start messages.Time `json:"start,omitempty"`
	// Width is the largest number of slots that a task takes. SlotHour is the present price of an hour of such a slot;
	// 0 means free, or no price for time.
	Width    int              `json:"width,omitempty"`
	SlotHour messages.Credits `json:"slot_hour,omitempty"`
	// Cheapest says when slots of each class of the job were cheapest in the last week. It has only classes whose
	// prices the user may see.
	Cheapest []CheapHour `json:"cheapest,omitempty"`
}

// CheapHour is the hour of the last week in which slots of a class cost least.
type CheapHour struct {
	Class messages.Name     `json:"class"`
	Slots int               `json:"slots"`         // the most slots of the class that a task of the job takes
	Bids  bool              `json:"bids"`          // Price and Now are bids for Slots slots; false: the cost of an hour of these slots
	Start messages.Time     `json:"start"`         // the beginning of the hour
	Price messages.Credits  `json:"price"`         // the mean of the hour
	Now   *messages.Credits `json:"now,omitempty"` // the present price; nil means that it is sealed
}

// PeerQuoteRequest asks another site for its offers to a user of the calling site.
type PeerQuoteRequest struct {
	Account messages.Name `json:"account"`
	Spec    job.JobSpec   `json:"spec"`
}

// Validate returns an error for the first fault of a request.
func (r *PeerQuoteRequest) Validate() error {
	return cmp.Or(messages.NeedName("account", r.Account), (&market.QuoteRequest{Spec: r.Spec}).Validate())
}

// PeerQuoteReply has the offers of one site.
type PeerQuoteReply struct {
	Offers []Offer `json:"offers"`
}

// PeerSubmitRequest asks another site to run a job. An authorisation of the calling site's bank pays for the job. Job
// is the job's number at its home site; both sites use this number. A repeated request with the same number and the
// same job gets the same answer.
type PeerSubmitRequest struct {
	Job           messages.JobID      `json:"job"`
	Account       messages.Name       `json:"account"`
	Spec          job.JobSpec         `json:"spec"`
	Authorisation SignedAuthorisation `json:"authorisation"`
}

// Validate returns an error for the first fault that can be seen from the request alone.
func (r *PeerSubmitRequest) Validate() error {
	a := &r.Authorisation.Authorisation
	switch {
	case r.Job == 0:
		return messages.Errorf(messages.Invalid, "job: is 0; give its number at home")
	case !messages.ValidName(r.Account):
		return messages.BadName("account", r.Account)
	case a.Member != r.Account:
		return messages.Errorf(messages.Invalid, "authorisation: %q asked for the authorisation, but the job belongs to %q", messages.Clipped(a.Member), messages.Clipped(r.Account))
	case a.ID != RemoteJobAuthorisation(r.Job):
		return messages.Errorf(messages.Conflict, "authorisation: %q is not for job %d: the authorisation of this job is %q", messages.Clipped(a.ID), r.Job, RemoteJobAuthorisation(r.Job))
	case r.Spec.Budget > a.Amount:
		return messages.Errorf(messages.Insufficient, "authorisation: is %s, but the budget is %v", a.Amount.Words(), r.Spec.Budget)
	}
	return cmp.Or(messages.InField("authorisation", r.Authorisation.Validate()), r.Spec.Validate())
}

// RemoteJobKey returns the key with which the auctioneer asks its bank to authorise a job at another site.
func RemoteJobKey(job messages.JobID) string { return fmt.Sprintf("job/%d", job) }

// RemoteJobAuthorisation returns the identifier of the authorisation that was made with [RemoteJobKey].
func RemoteJobAuthorisation(job messages.JobID) string {
	return messages.ServiceIdentity(messages.Auctioneer) + "/" + RemoteJobKey(job)
}

// PeerSubmitReply answers a request whose job was accepted, now or earlier.
type PeerSubmitReply struct {
	Job job.JobSummary `json:"job"` // with its number at its home site
}

// PeerJobsRequest asks which of the caller's jobs have changed since an earlier answer. Epoch and After are the values
// from that answer; After says which changes it had. If no job has changed, the answer waits for a change. Each leader
// has an epoch. If Epoch is not the present leader's epoch, all jobs are returned.
type PeerJobsRequest struct {
	Epoch uint64            `json:"epoch"`
	After uint64            `json:"after"`
	Wait  messages.Duration `json:"wait,omitempty"`
}

// Validate returns an error for the first fault of a request.
func (r *PeerJobsRequest) Validate() error {
	if r.Wait < 0 || r.Wait > MaxPeerWait {
		return messages.Errorf(messages.Invalid, "wait: %v must be from 0 to %v", r.Wait, MaxPeerWait)
	}
	return nil
}

// PeerJobsReply is a page of changes, and the cursor after it.
type PeerJobsReply struct {
	Epoch uint64           `json:"epoch"`
	Next  uint64           `json:"next"`
	Jobs  []job.JobSummary `json:"jobs"`  // with their numbers at their home site
	Whole bool             `json:"whole"` // the cursor was from another epoch, so the list starts with the first job
	More  bool             `json:"more"`
}

// OutputRequest reads a piece of the output of a remote job's task, or passes a request on to a stream of the task. The
// attempt has the job's number at its home site.
type OutputRequest struct {
	Node   messages.Name        `json:"node"`
	Logs   agent.LogsRequest    `json:"logs"`
	Stream *agent.StreamRequest `json:"stream,omitempty"` // instead of Logs
}

// Validate returns an error for the first fault of a request.
func (r *OutputRequest) Validate() error {
	if err := messages.NeedName("node", r.Node); err != nil || r.Stream == nil {
		return err
	}
	return r.Stream.Validate()
}

// Task returns the task of the request.
func (r *OutputRequest) Task() *messages.TaskRef {
	if r.Stream != nil {
		return &r.Stream.Attempt.Task
	}
	return &r.Logs.Attempt.Task
}
