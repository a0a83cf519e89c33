package messages

import (
	"cmp"
	"fmt"
	"strings"
)

// Verbs of the auctioneer for jobs and quotes of several sites. Users ask the auctioneer of their own site, which
// asks the others: see [PeerVerbs].
const (
	VerbOffers = "offers" // OffersRequest → OffersReply
	VerbOutput = "output" // OutputRequest → LogsReply: output or streams of a job at another site
)

// AnySite as the site of a submission means that the auctioneer chooses the site.
const AnySite Name = "auto"

// Limits of requests between sites.
const (
	MaxPeerWait    = Duration(20_000_000_000) // how long a site may delay an answer until there is news
	QuoteWithin    = Duration(2_000_000_000)  // default time to wait for offers
	MaxQuoteWithin = Duration(9_000_000_000)  // longest time to wait for offers, because a service answers within 10 s
	MaxSites       = 256                      // most sites in one request
)

// VisitorName returns this site's name for an account of another site that has jobs here, such as
// "alice@west". No account of this site can have such a name.
func VisitorName(account, home Name) Name { return account + "@" + home }

// IsVisitor reports whether the owner of a job is an account of another site.
func IsVisitor(owner Name) bool { return strings.Contains(owner, "@") }

// Participant returns the name under which a market counts an owner. An account of the site counts by itself. All
// accounts of another site count as one, such as "@west", because that site could give its users any number of names.
func Participant(owner Name) Name {
	if at := strings.IndexByte(owner, '@'); at >= 0 {
		return owner[at:]
	}
	return owner
}

// ValidOwner reports whether s names the owner of a job: an account of the site,
// or a visitor.
func ValidOwner(s string) bool {
	account, home, visits := strings.Cut(s, "@")
	return ValidName(account) && (!visits || ValidName(home))
}

// Away says that a job of this site's user runs at another site, and what is known about it.
type Away struct {
	Site    Name   `json:"site"`
	Phase   string `json:"phase"`             // Authorising, Sending, There, Releasing, Ended
	Known   Time   `json:"known,omitempty"`   // when the other site last reported on the job; 0: never
	Trouble string `json:"trouble,omitempty"` // why the site cannot be asked now; "": it answers
	Chosen  string `json:"chosen,omitempty"`  // why the auctioneer chose that site, if it did
}

// Visit identifies the job of another site that runs here.
type Visit struct {
	Home Name  `json:"home"`
	Job  JobID `json:"job"`
}

// String writes "west/17".
func (v Visit) String() string { return v.Home + "/" + v.Job.String() }

// OffersRequest asks several sites when a job would be complete there, and at what price. No credits are held.
type OffersRequest struct {
	Spec   JobSpec  `json:"spec"`
	Sites  []Name   `json:"sites,omitempty"`  // empty: this site and all its peers
	Within Duration `json:"within,omitempty"` // how long to wait for answers; 0: 2 s
}

// Validate returns an error for the first fault of a request.
func (r *OffersRequest) Validate() error {
	if len(r.Sites) > MaxSites {
		return Errorf(TooLarge, "sites: %d are more than the limit of %d", len(r.Sites), MaxSites)
	}
	if err := distinct("sites", r.Sites, needName); err != nil {
		return err
	}
	if r.Within < 0 || r.Within > MaxQuoteWithin {
		return Errorf(Invalid, "within: %v must be from 0 to %v", r.Within, MaxQuoteWithin)
	}
	return (&QuoteRequest{Spec: r.Spec}).Validate()
}

// Waits returns how long the site may wait for the offers of other sites.
func (r OffersRequest) Waits() Duration { return cmp.Or(r.Within, QuoteWithin) }

// OffersReply has the offers of the sites that answered in time, sorted by site and completion. For each other site
// it has the reason why there is no offer.
type OffersReply struct {
	Offers []Offer  `json:"offers"`
	Silent []Silent `json:"silent"`
	Best   int      `json:"best"` // the position in Offers of the offer that submit would choose; -1: none
	Why    string   `json:"why"`
}

// Silent is a site that made no offer.
type Silent struct {
	Site  Name   `json:"site"`
	Error *Error `json:"error"`
}

// Offer is a completion time and a price for a job at a site. They are an estimate, or, with a Contract, binding.
type Offer struct {
	Site       Name    `json:"site"`
	Market     Name    `json:"market"`
	Mechanism  Name    `json:"mechanism"`
	Completion Time    `json:"completion,omitempty"` // expected (median) time; 0: unknown
	Low        Time    `json:"low,omitempty"`        // one job in ten completes earlier
	High       Time    `json:"high,omitempty"`       // one job in ten completes later
	Price      Credits `json:"price"`
	Budget     Credits `json:"budget"`             // the least budget for a submission
	Contract   string  `json:"contract,omitempty"` // identifier to submit with; "": the numbers are only estimates
	Basis      string  `json:"basis"`              // a clause that says how the numbers were computed
	Value      float64 `json:"value,omitempty"`    // credits: the worth of that completion by the job's valuation
	// Free is the number of idle slots minus the number of waiting tasks, for the class of the job where this is
	// smallest. It is negative if more tasks wait than slots are idle, and 0 if it is unknown.
	Free int `json:"free,omitempty"`
	// Start is when the first task is expected to start; 0: unknown.
	Start Time `json:"start,omitempty"`
	// Width is the largest number of slots that a task takes. SlotHour is the present price of an hour of such a
	// slot; 0: it is free, or the market has no price for time.
	Width    int     `json:"width,omitempty"`
	SlotHour Credits `json:"slot_hour,omitempty"`
	// Cheapest has an entry for each class of the job whose prices of the last week the market tells.
	Cheapest []CheapHour `json:"cheapest,omitempty"`
}

// CheapHour is the hour of the last week in which slots of a class cost least.
type CheapHour struct {
	Class Name     `json:"class"`
	Slots int      `json:"slots"`         // the most slots of the class that a task of the job takes
	Bids  bool     `json:"bids"`          // Price and Now are the bids for as many slots; false: what an hour of them costs
	Start Time     `json:"start"`         // the beginning of the hour
	Price Credits  `json:"price"`         // the mean of the hour
	Now   *Credits `json:"now,omitempty"` // the present price; nil: it is sealed
}

// PeerQuoteRequest asks another site for its offers to a user of the calling site.
type PeerQuoteRequest struct {
	Account Name    `json:"account"`
	Spec    JobSpec `json:"spec"`
}

// Validate returns an error for the first fault of a request.
func (r *PeerQuoteRequest) Validate() error {
	return cmp.Or(needName("account", r.Account), (&QuoteRequest{Spec: r.Spec}).Validate())
}

// PeerQuoteReply has the offers of one site.
type PeerQuoteReply struct {
	Offers []Offer `json:"offers"`
}

// PeerSubmitRequest asks another site to run a job, which an authorisation of the calling site's bank pays for. Job
// is the job's number at its home site; both sites use it from then on. Repeating the request with the same number
// and job returns the same answer.
type PeerSubmitRequest struct {
	Job           JobID               `json:"job"`
	Account       Name                `json:"account"`
	Spec          JobSpec             `json:"spec"`
	Authorisation SignedAuthorisation `json:"authorisation"`
}

// Validate returns an error for the first fault that the request itself shows.
func (r *PeerSubmitRequest) Validate() error {
	a := &r.Authorisation.Authorisation
	switch {
	case r.Job == 0:
		return Errorf(Invalid, "job: is 0; give its number at home")
	case !ValidName(r.Account):
		return badName("account", r.Account)
	case a.Member != r.Account:
		return Errorf(Invalid, "authorisation: was asked for by %q, and the job is of %q", clip(a.Member), clip(r.Account))
	case a.ID != RemoteJobAuthorisation(r.Job):
		return Errorf(Conflict, "authorisation: %q is not the authorisation of job %d, which is %q", clip(a.ID), r.Job, RemoteJobAuthorisation(r.Job))
	case r.Spec.Budget > a.Amount:
		return Errorf(Insufficient, "authorisation: is %s, and the budget is %v", a.Amount.Words(), r.Spec.Budget)
	}
	return cmp.Or(inField("authorisation", r.Authorisation.Validate()), r.Spec.Validate())
}

// RemoteJobKey returns the key with which the auctioneer asks its bank to authorise the cost of a job at another
// site.
func RemoteJobKey(job JobID) string { return fmt.Sprintf("job/%d", job) }

// RemoteJobAuthorisation returns the identifier of the authorisation that was made with [RemoteJobKey].
func RemoteJobAuthorisation(job JobID) string {
	return ServiceIdentity(Auctioneer) + "/" + RemoteJobKey(job)
}

// PeerSubmitReply answers a request whose job was accepted, now or earlier.
type PeerSubmitReply struct {
	Job JobSummary `json:"job"` // with its number at its home site
}

// PeerJobsRequest asks which of the caller's jobs have changed since a cursor. If none has, the answer waits until
// one does. With a cursor from another epoch, for example from a former leader, all jobs are returned.
type PeerJobsRequest struct {
	Epoch uint64   `json:"epoch"`
	After uint64   `json:"after"`
	Wait  Duration `json:"wait,omitempty"`
}

// Validate returns an error for the first fault of a request.
func (r *PeerJobsRequest) Validate() error {
	if r.Wait < 0 || r.Wait > MaxPeerWait {
		return Errorf(Invalid, "wait: %v must be from 0 to %v", r.Wait, MaxPeerWait)
	}
	return nil
}

// PeerJobsReply is a page of changes, and the cursor after it.
type PeerJobsReply struct {
	Epoch uint64       `json:"epoch"`
	Next  uint64       `json:"next"`
	Jobs  []JobSummary `json:"jobs"`  // with their numbers at their home site
	Whole bool         `json:"whole"` // the cursor was from another epoch, so the list starts with the first job
	More  bool         `json:"more"`
}

// OutputRequest reads a piece of the output of a remote job's task, or passes a client's request on to a stream
// there. The attempt has the job's number at its home site.
type OutputRequest struct {
	Node   Name           `json:"node"`
	Logs   LogsRequest    `json:"logs"`
	Stream *StreamRequest `json:"stream,omitempty"` // instead of Logs
}

// Validate returns an error for the first fault of a request.
func (r *OutputRequest) Validate() error {
	if err := needName("node", r.Node); err != nil || r.Stream == nil {
		return err
	}
	return r.Stream.Validate()
}

// Task returns the task of the request.
func (r *OutputRequest) Task() *TaskRef {
	if r.Stream != nil {
		return &r.Stream.Attempt.Task
	}
	return &r.Logs.Attempt.Task
}
