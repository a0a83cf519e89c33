package intake

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/wire"
)

// Submission is a request to submit a job that is not in the book yet.
type Submission struct {
	Account messages.Name
	Key     string
	Digest  []byte
	Spec    *job.JobSpec
	Payer   messages.Name
	Market  *marketmsg.Market
	Visit   *book.Visit      // set for a job of another site; nil means a job of this site's user
	Deposit messages.Credits // credits that are held in addition to the budget
	Seen    uint64           // 1 + number of the latest effect of the book when the hold was asked for
	Said    []string         // sentences about values of the bid that the market filled in

	unpaid   bool   // the request names no budget
	bounds   []bool // by stage: the request sets the memory limit of a task
	hold     string
	assumed  string        // source of the utility function, if the user gave none
	contract *job.Contract // the contract that the spec names
	quote    uint64        // the quote that has the contract
	version  uint64        // version of the markets
	most     int           // limit on the account's pending jobs, with this job included; 0 means no limit
}

// If the user names no budget, the site assumes one. The assumed budget depends on the slots of the job's tasks. The
// slots of a task that asks for a whole node are not known before this call. For jobs with such tasks, reassume
// computes the assumed budget again.
func (s *Submission) reassume() (err error) {
	if s.unpaid && slices.ContainsFunc(s.Spec.Stages, func(g job.Stage) bool { return g.TakesNode() }) {
		s.Said[len(s.Said)-1], err = assumeBudget(s.Spec, s.Market, true)
	}
	return err
}

// DigestOf returns a digest of a request, to compare requests with the same key.
func DigestOf(r *job.SubmitRequest) ([]byte, error) {
	encoded, err := wire.Marshal(&r.Spec, wire.Msgpack)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(append(encoded, r.Site...))
	return digest[:], nil
}

// Judged returns the error `why`, unless the rules have changed since the submission was prepared. If they have
// changed, it returns an error that says so. See [Rules.Judged].
func (s *Submission) Judged(b *book.Book, why error) error {
	return cmp.Or(b.Unchanged(s.version+1), why)
}

// Visiting marks the submission as a job of another site, whose authorisation pays for it. The bank holds nothing.
func (s *Submission) Visiting(v *book.Visit) {
	s.Visit, s.hold, s.Deposit = v, "", 0
	s.Spec.Notify = nil // the home site sends the notifications
}

// Held returns the credits that are set aside for the job.
func (s *Submission) Held() messages.Credits { return s.Spec.Budget + s.Deposit }

// Command returns the command that enters the job into the book.
func (s *Submission) Command() *book.Command {
	return &book.Command{Submit: &book.Submit{Account: s.Account, Key: s.Key, Digest: s.Digest, Payer: s.Payer,
		Spec: s.Spec, Assumed: s.assumed, Hold: s.hold, Held: s.Held(), Contract: s.contract, Quote: s.quote, MarketsVersion: s.version + 1,
		Deposit: s.Deposit, Most: s.most, Visit: s.Visit, Seen: s.Seen}}
}

// Admit returns an error if the market does not accept the job.
func (s *Submission) Admit(now messages.Time, m *market.Market) error {
	spec := *s.Spec
	if spec.Utility == nil {
		spec.Utility = defaultUtility(s.Spec)
	}
	return m.Admit(now, m.Bid(0, s.Account, now, &spec, s.contract))
}

// Hold returns the transfers that set the budget aside until a time; 0 means for ever. The hold's identifier is made
// from the user's key. If `until` is not 0, a second transfer extends the hold: it is needed if an earlier try made the
// hold. The second transfer fails if this earlier hold has expired.
func (s *Submission) Hold(until messages.Time) []money.Transfer {
	list := []money.Transfer{{ID: s.hold, Kind: money.Hold, Debit: s.Payer, Credit: money.SiteAccount, Amount: s.Held(), Member: s.Account,
		Expires: until, Reason: "budget of " + s.Spec.Title() + " (market " + s.Spec.Market + ")"}}
	if until == 0 {
		return list
	}
	return append(list, desk.Extension(s.hold, 0, until, "the job is being committed"))
}

// Secured takes the bank's answer to Hold, and returns an error if the credits are not held.
func (s *Submission) Secured(results []money.TransferResult) error {
	switch {
	case len(results) == 0:
		return messages.Errorf(messages.Internal, "the answer of the bank does not say whether the budget is held")
	case results[0].Error != nil && results[0].Error.Kind == messages.Conflict: // the hold's identifier is made from the key
		return messages.Errorf(messages.Conflict, "key %q was used for another job; choose a new key for a new job", s.Key)
	case results[0].Error != nil:
		return results[0].Error
	case len(results) > 1 && results[1].Error != nil:
		return messages.Errorf(messages.Expired, "the credits held for key %q are free again; submit with a new key", s.Key)
	}
	return nil
}

// AsksUtility returns the request to the estimator for the job's worth. If no such request is needed, `asks` is false.
func (s *Submission) AsksUtility() (r marketmsg.UtilityRequest, asks bool) {
	t := registry.Of(s.Market)
	return marketmsg.UtilityRequest{Account: s.Account, Name: s.Spec.Name, Market: s.Spec.Market, Classes: classes(s.Spec)},
		s.Spec.Utility == nil && t.Reads("utility")
}

// Assume fills in the utility function that the user left out: the estimator's function if it fits the job, and the
// default otherwise.
func (s *Submission) Assume(u *marketmsg.UtilityReply) {
	if _, asks := s.AsksUtility(); !asks {
		return
	}
	if u != nil && u.Runs > 0 && s.fits(&u.Utility) {
		s.Spec.Utility = &u.Utility
		s.assumed = u.Basis()
		return
	}
	s.Spec.Utility = defaultUtility(s.Spec)
	s.assumed = (&marketmsg.UtilityReply{}).Basis()
}

func (s *Submission) fits(u *job.Utility) bool {
	probe := *s.Spec
	probe.Utility = u
	return checkUtility(&probe, s.Market) == nil && probe.Validate() == nil
}

func defaultUtility(spec *job.JobSpec) *job.Utility {
	u := &job.Utility{Form: job.Linear}
	for _, c := range classes(spec) {
		u.Weights = append(u.Weights, job.ClassWeight{Class: c, Weight: 1})
	}
	return u
}

// classes returns the classes that the job's stages use, sorted by name.
func classes(spec *job.JobSpec) []messages.Name {
	var out []messages.Name
	for _, s := range spec.Stages {
		out = append(out, s.Class)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Agree finds the contract that the submission names, and checks that the contract was quoted for a job with the same
// work.
func (s *Submission) Agree(b *book.Book, now messages.Time) error {
	id := s.Spec.Contract
	if id == "" {
		return nil
	}
	quote, place, ok := strings.Cut(strings.TrimPrefix(id, "q"), "-")
	number, err1 := strconv.ParseUint(quote, 10, 64)
	at, err2 := strconv.Atoi(place)
	if !ok || err1 != nil || err2 != nil || !strings.HasPrefix(id, "q") {
		return messages.Errorf(messages.Invalid, "contract: %q is not the identifier of a contract, like q12-3; `candor quote` shows the identifiers", id)
	}
	q := b.Quote(number)
	switch {
	case q == nil || q.Expires < now || q.Account != s.Account:
		return messages.Errorf(messages.Expired, "contract: quote q%d has expired or never existed; ask for another quote", number)
	case at < 1 || at > len(q.Contracts):
		return messages.Errorf(messages.NotFound, "contract: quote q%d has contracts 1 to %d", number, len(q.Contracts))
	case q.Market != s.Spec.Market || !slices.Equal(q.Work, WorkOf(s.Spec)):
		return messages.Errorf(messages.Invalid, "contract: %s is for another job or another valuation; submit the job of the quote, or ask for another quote", id)
	}
	if q.Job != 0 {
		return messages.Errorf(messages.Conflict, "contract: job %d has accepted a contract of this quote; ask for another quote", q.Job)
	}
	s.contract, s.quote = &q.Contracts[at-1], number
	return nil
}

// WorkOf returns a digest of everything on which a quote depends: the fields that the market uses in its plans, and the
// valuation.
func WorkOf(spec *job.JobSpec) []byte {
	work := job.JobSpec{Market: spec.Market, Length: spec.Length, Valuation: spec.Valuation}
	for i := range spec.Stages {
		s := &spec.Stages[i]
		work.Stages = append(work.Stages, job.Stage{Name: s.Name, Class: s.Class, Tasks: s.TaskCount(), Width: s.Slots(), After: s.After})
	}
	data, _ := wire.Marshal(&work, wire.Msgpack) // cannot fail: the request was decoded from this form
	digest := sha256.Sum256(data)
	return digest[:]
}
