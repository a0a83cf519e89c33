package messages

import (
	"cmp"
	"fmt"
	"strings"
)

// Verbs of the auctioneer about jobs and quotes of several sites. Users ask their
// own site's, which asks the others: see [PeerVerbs].
const (
	VerbOffers = "offers" // OffersRequest → OffersReply
	VerbOutput = "output" // OutputRequest → LogsReply: of a job at another site, also of its streams
)

// AnySite, as the site of a submission, leaves the choice to the auctioneer.
const AnySite Name = "auto"

// Limits of the traffic between sites.
const (
	MaxPeerWait    = Duration(20_000_000_000) // how long a site may hold back an answer until there is news
	QuoteWithin    = Duration(2_000_000_000)  // default time to wait for offers
	MaxQuoteWithin = Duration(9_000_000_000)  // longest time to wait for offers: a service answers within 10 s
	MaxSites       = 256                      // sites that one request can name
)

// VisitorName returns this site's name for an account of another site that has jobs here, such as
// "alice@west". No account of this site can have such a name.
func VisitorName(account, home Name) Name { return account + "@" + home }

// IsVisitor reports whether the owner of a job is an account of another site.
func IsVisitor(owner Name) bool { return strings.Contains(owner, "@") }

// Participant returns the name under which a market counts an owner as one account. An account of
// the site counts by itself. All accounts of another site count as one, such as "@west", because
// that site could give its users any number of names.
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

// Away says at which other site a job of this site's user runs.
type Away struct {
	Site    Name   `json:"site"`
	Phase   string `json:"phase"`             // Authorising, Sending, There, Releasing, Ended
	Known   Time   `json:"known,omitempty"`   // when the other site last reported on the job; 0: never
	Trouble string `json:"trouble,omitempty"` // why the site cannot be asked now; "": it answers
	Chosen  string `json:"chosen,omitempty"`  // why the job is there, if the auctioneer chose the site
}

// Visit names the job of another site that a job here is run for.
type Visit struct {
	Home Name  `json:"home"`
	Job  JobID `json:"job"`
}

// String writes "west/17".
func (v Visit) String() string { return v.Home + "/" + v.Job.String() }

// OffersRequest asks several sites when a job would be complete there, and at
// what price. Nothing is held.
type OffersRequest struct {
	Spec   JobSpec  `json:"spec"`
	Sites  []Name   `json:"sites,omitempty"`  // none: this site and all its peers
	Within Duration `json:"within,omitempty"` // how long to wait for answers; 0: 2 s
}

// Validate reports the first thing wrong with a request.
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

// OffersReply has the offers of the sites that answered in time, sorted by site and completion, and
// for each other site the reason why it made none.
type OffersReply struct {
	Offers []Offer  `json:"offers"`
	Silent []Silent `json:"silent"`
	Best   int      `json:"best"` // the position in Offers of the offer that submit would take; -1: none
	Why    string   `json:"why"`
}

// Silent is a site that made no offer.
type Silent struct {
	Site  Name   `json:"site"`
	Error *Error `json:"error"`
}

// Offer is a completion time and a price that a site expects of a job, or where
// it has a Contract, agrees to.
type Offer struct {
	Site       Name    `json:"site"`
	Market     Name    `json:"market"`
	Mechanism  Name    `json:"mechanism"`
	Completion Time    `json:"completion,omitempty"` // expected at the median; 0: not known
	Low        Time    `json:"low,omitempty"`        // in one case of ten it completes earlier
	High       Time    `json:"high,omitempty"`       // in one case of ten it completes later
	Price      Credits `json:"price"`
	Budget     Credits `json:"budget"`             // the least that a submission must allow
	Contract   string  `json:"contract,omitempty"` // identifier to submit with; "": the numbers are only estimates
	Basis      string  `json:"basis"`              // a clause that says how the numbers were found
	Value      float64 `json:"value,omitempty"`    // credits: what completion then is worth, by the job's own valuation
	// Free is the number of idle slots minus the number of waiting tasks, for the job's class with
	// the smallest difference. It is negative if more tasks wait than slots are idle, and 0 if
	// nothing is known.
	Free int `json:"free,omitempty"`
	// Start is when the first task is expected to start; 0: not known.
	Start Time `json:"start,omitempty"`
	// Width is how many slots a task takes, the widest of all, and SlotHour what an hour of such a
	// slot costs at present; 0: nothing, or the price is not one of time.
	Width    int     `json:"width,omitempty"`
	SlotHour Credits `json:"slot_hour,omitempty"`
}

// PeerQuoteRequest asks another site for its offers to a user of the caller's.
type PeerQuoteRequest struct {
	Account Name    `json:"account"`
	Spec    JobSpec `json:"spec"`
}

// Validate reports the first thing wrong with a request.
func (r *PeerQuoteRequest) Validate() error {
	return cmp.Or(needName("account", r.Account), (&QuoteRequest{Spec: r.Spec}).Validate())
}

// PeerQuoteReply is the offers of one site.
type PeerQuoteReply struct {
	Offers []Offer `json:"offers"`
}

// PeerSubmitRequest asks another site to run a job, paid by an authorisation of the caller's bank.
// Job is the job's number at its home site; both sites use it from then on. Repeating the request
// with the same number and the same job returns the same answer.
type PeerSubmitRequest struct {
	Job           JobID               `json:"job"`
	Account       Name                `json:"account"`
	Spec          JobSpec             `json:"spec"`
	Authorisation SignedAuthorisation `json:"authorisation"`
}

// Validate reports the first thing wrong with a request in itself.
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

// RemoteJobKey returns the key with which the auctioneer asks its bank to authorise the cost of a
// job at another site. RemoteJobAuthorisation returns the identifier of that authorisation.
func RemoteJobKey(job JobID) string { return fmt.Sprintf("job/%d", job) }

// RemoteJobAuthorisation see [RemoteJobKey].
func RemoteJobAuthorisation(job JobID) string {
	return ServiceIdentity(Auctioneer) + "/" + RemoteJobKey(job)
}

// PeerSubmitReply is the answer to a job that was taken, now or before.
type PeerSubmitReply struct {
	Job JobSummary `json:"job"` // with its number at home
}

// PeerJobsRequest asks which of the caller's jobs have changed since a cursor. If none has, the
// answer waits for news. A cursor from another epoch, such as a former leader's, returns all jobs.
type PeerJobsRequest struct {
	Epoch uint64   `json:"epoch"`
	After uint64   `json:"after"`
	Wait  Duration `json:"wait,omitempty"`
}

// Validate reports the first thing wrong with a request.
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
	Jobs  []JobSummary `json:"jobs"`  // with their numbers at home
	Whole bool         `json:"whole"` // the cursor was of another epoch: this begins with the first
	More  bool         `json:"more"`
}

// OutputRequest reads a piece of the output of a task of a remote job, or passes on a client's
// request to a stream there. The attempt has the job's number at its home site.
type OutputRequest struct {
	Node   Name           `json:"node"`
	Logs   LogsRequest    `json:"logs"`
	Stream *StreamRequest `json:"stream,omitempty"` // instead of Logs
}

// Validate reports the first thing wrong with a request.
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
