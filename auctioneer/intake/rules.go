package intake

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/spelling"
)

// Rules are a site's rules for submissions.
type Rules struct {
	*desk.Markets
	Site       messages.Name
	Operators  []messages.Name         // accounts that may see all jobs
	MostMemory map[messages.Name]int64 // maximum memory of a task in bytes, by class; a class without an entry has no limit
	Deposit    messages.Credits        // credits that are set aside for each job in addition to its budget
	Pending    int                     // maximum number of an account's jobs that have not ended; 0 means no limit
	// Earlier is true while some replicas may still run the release of level 1. In a market that directs claims, such a
	// replica would start the tasks of an allocation one by one instead of together.
	Earlier bool
	// Notify returns an error for notifications that the site does not send. If it is nil, the site sends none.
	Notify func([]job.Notify) error
	// Filter asks the site's program about a new job. The program may change or refuse the job. The result `said` tells
	// what was changed. If the site has no program, Filter is nil.
	Filter func(*Submission) (said []string, err error)
}

// Prepare makes all checks of a request that need no state, and fills in defaults. If the rules refuse a submission,
// the returned Submission still has the account, key and digest for [book.Book.Known]: the book may have the job
// already, under earlier rules.
func (r *Rules) Prepare(account messages.Name, q *job.SubmitRequest) (*Submission, error) {
	digest, err := DigestOf(q)
	if err != nil {
		return nil, err
	}
	s := &Submission{Account: account, Key: q.Key, Digest: digest, Spec: &q.Spec, Deposit: r.Deposit, version: r.Version, most: r.Pending}
	s.hold = fmt.Sprintf("job/%s/%s/%s", r.Site, account, q.Key)
	var changed []string
	if r.Filter != nil {
		if changed, err = r.Filter(s); err != nil {
			return s, err
		}
	}
	s.unpaid = s.Spec.Budget == 0
	for i := range s.Spec.Stages {
		s.bounds = append(s.bounds, s.Spec.Stages[i].Memory != 0)
	}
	assumed, err := r.assumeBid(account, s.Spec)
	if s.Said = append(changed, assumed...); err != nil {
		return s, err
	}
	if err := q.Validate(); err != nil {
		return s, err
	}
	s.Payer = cmp.Or(s.Spec.Project, account)
	if err := r.checkNotify(s.Spec.Notify); err != nil {
		return s, err
	}
	if err := r.Complete(account, s.Spec); err != nil {
		return s, err
	}
	s.Market = r.Find(s.Spec.Market)
	return s, nil
}

// assumeBid gives a job without a budget or rate the default of its market, and says so.
func (r *Rules) assumeBid(account messages.Name, spec *job.JobSpec) (said []string, err error) {
	m := r.Find(cmp.Or(spec.Market, r.holds(account, spec)))
	if m == nil && spec.Budget == 0 { // a missing market is reported before a missing budget
		return nil, r.Missing("market: ", spec.Market)
	}
	if m == nil {
		return nil, nil
	}
	rate, t := messages.Credits(m.DefaultRate), registry.Of(m)
	if spec.Budget == 0 && t.Reads("rate") {
		rate = cmp.Or(rate, m.ReservePrice(), messages.HourlyCredit)
	}
	if spec.Rate == 0 && rate != 0 {
		spec.Rate = rate
		said = append(said, fmt.Sprintf("the job names no rate, and bids %s for an hour of a slot", (3600*rate).Words()))
	}
	if spec.Budget == 0 {
		text, err := assumeBudget(spec, m, false)
		if err != nil {
			return nil, err
		}
		said = append(said, text)
	}
	return said, nil
}

func (r *Rules) checkNotify(list []job.Notify) error {
	switch {
	case len(list) == 0:
		return nil
	case r.Notify == nil:
		return messages.Errorf(messages.Invalid, "notify: this site sends no messages about jobs; leave the field notify out")
	}
	return r.Notify(list)
}

// Complete fills in what a description leaves to the site, and checks it against the market.
func (r *Rules) Complete(account messages.Name, spec *job.JobSpec) error {
	spec.Market = cmp.Or(spec.Market, r.holds(account, spec))
	m := r.Find(spec.Market)
	if m == nil {
		return r.Missing("market: ", spec.Market)
	}
	if err := r.checkAccess(account, spec, m); err != nil {
		return err
	}
	return r.complete(account, spec, m)
}

// complete fills in and checks the stages of a job for the market that the job goes to.
func (r *Rules) complete(account messages.Name, spec *job.JobSpec, m *market.Market) error {
	if err := r.checkLimits(account, spec, m); err != nil {
		return err
	}
	if r.Earlier && registry.Of(m).Directs && slices.ContainsFunc(spec.Stages, func(s job.Stage) bool { return s.Allocation }) {
		return messages.Errorf(messages.Conflict, "market: %s takes jobs on several nodes only after all hosts of the site were upgraded (\"candor upgrade plan\" says what is missing); ask for one node, or use a market with the mechanism proportional", m.Name)
	}
	for i := range spec.Stages {
		s := &spec.Stages[i]
		s.Class = cmp.Or(s.Class, smallest(m, s), m.Classes[0])
		if s.OnFailure == "" && spec.Independent(i) {
			s.OnFailure = job.GoOn
		}
		s.TimeLimit = least(s.TimeLimit, m.TimeLimit)
		if registry.Of(m).Spans { // in such a market, a job loses its slots after its declared length
			s.TimeLimit = least(s.TimeLimit, spec.Length)
		}
		if !slices.Contains(m.Classes, s.Class) {
			return r.noClass(account, spec, m, i)
		}
		if err := r.shape(account, spec, m, i); err != nil {
			return err
		}
		if most := r.MostMemory[s.Class]; s.Width == 0 && most > 0 && s.Memory > most {
			return messages.Errorf(messages.TooLarge, "stages[%d].memory: %d MiB are more than the %d MiB that a task of class %s may have here", i, (s.Memory+1<<20-1)>>20, most>>20, s.Class)
		}
	}
	return checkUtility(spec, m)
}

// The function `least` returns the smaller of two limits; 0 means no limit.
func least(a, b messages.Duration) messages.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// checkLimits returns an error for a job that exceeds the market's rules or does not fit in its slots.
func (r *Rules) checkLimits(account messages.Name, spec *job.JobSpec, m *market.Market) error {
	if n := spec.TaskCount(); m.MaxTasks > 0 && n > m.MaxTasks {
		return messages.Errorf(messages.TooLarge, "stages: market %s takes jobs of at most %d tasks, not of %d", m.Name, m.MaxTasks, n)
	}
	for i := range spec.Stages {
		if spec.Stages[i].Allocation {
			if err := gathers(spec, i, m); err != nil {
				return r.elsewhere(account, spec, err, func(o *market.Market) bool { return gathers(spec, i, o) == nil && hasSlotsFor(spec, o) })
			}
			continue
		}
		if spec.Stages[i].Gang && !registry.Of(m).Gangs {
			return messages.Errorf(messages.Invalid, "stages[%d].gang: market %s starts tasks one by one and cannot keep a gang together; use a market of %s", i, m.Name,
				spelling.List(registry.Names(func(t *mechanism.Traits) bool { return t.Gangs })))
		}
	}
	return nil
}

// gathers returns an error for a job with a stage on several nodes if the market cannot start such a job at once.
func gathers(spec *job.JobSpec, i int, m *market.Market) error {
	switch t := registry.Of(m); {
	case !t.Assembles:
		return messages.Errorf(messages.Invalid, "stages[%d].allocation: market %s cannot gather several nodes for a job; ask for one node, or use a market of %s", i, m.Name,
			spelling.List(registry.Names(func(t *mechanism.Traits) bool { return t.Assembles })))
	case t.Even && len(spec.Stages) > 1:
		return messages.Errorf(messages.Invalid, "stages[%d].allocation: in market %s (%s) all slots of a job are one unit, and a job on several nodes has no other stages; submit a job for each stage, or use a market of %s",
			i, m.Name, m.Mechanism, spelling.List(registry.Names(func(t *mechanism.Traits) bool { return t.Assembles && !t.Even })))
	}
	return nil
}

// checkUtility returns an error in two cases: if the utility function has a class that the market does not have, or if
// it has no weight for a class that the job uses.
func checkUtility(spec *job.JobSpec, m *market.Market) error {
	if spec.Utility == nil {
		return nil
	}
	for _, w := range spec.Utility.Weights {
		if !slices.Contains(m.Classes, w.Class) {
			return messages.Errorf(messages.NotFound, "utility.weights: market %s has no class %q; its classes are %s", m.Name, w.Class, spelling.List(m.Classes))
		}
	}
	for i, s := range spec.Stages {
		if !(spec.Utility.Weights.Of(s.Class) > 0) {
			return messages.Errorf(messages.Invalid, "utility.weights: stage %s (stages[%d]) needs slots of class %s, and the utility gives this class no weight; give the class a weight",
				s.Name, i, s.Class)
		}
	}
	return nil
}

// Known returns the answer to a submission that was committed before. For a new submission, it returns nil, or an error
// if the book cannot accept the job.
func (r *Rules) Known(b *book.Book, s *Submission) (*book.Receipt, error) {
	if known, err := b.Known(s.Account, s.Key, s.Digest); known != nil || err != nil {
		return known, err
	}
	if b.Active() >= book.MaxActive {
		return nil, messages.Errorf(messages.Exhausted, "the site holds %d jobs that have not ended; submit again later", b.Active())
	}
	return nil, r.fits(b, s)
}

// fits returns an error if the book, in its present state, cannot accept a job. For example, the job waits for another
// job that its owner may not see.
func (r *Rules) fits(b *book.Book, s *Submission) error {
	if m := registry.Of(s.Market); s.Spec.AfterEach != 0 && (m.FixesTimes() || m.Stays) {
		return messages.Errorf(messages.Invalid, "after_each: market %s (%s) decides on all tasks of a job together, and they cannot start one by one; wait for the whole array with after_ok, or use a market of %s",
			s.Market.Name, s.Market.Mechanism, spelling.List(registry.Names(func(t *mechanism.Traits) bool { return !t.FixesTimes() && !t.Stays })))
	}
	for _, id := range s.Spec.Predecessors() {
		if _, err := r.Visible(b, s.Account, id); err != nil && messages.KindOf(err) != messages.Ended {
			return messages.Errorf(messages.KindOf(err), "after_jobs: %s", messages.Detail(err))
		}
	}
	if err := b.Dependable(s.Spec); err != nil {
		return err
	}
	if s.Market.Closed {
		return messages.Errorf(messages.Exhausted, "market %s takes no more jobs, because an operator closed it; submit to another market, or later", s.Spec.Market)
	}
	if err := r.Place(b, s.Account, s.Spec, s.Market); err != nil {
		return err
	}
	if err := s.reassume(); err != nil {
		return err
	}
	most := s.Market.MaxJobs
	if most == 0 {
		return nil
	}
	n := 0
	for id := range b.Listed(s.Account).Below(math.MaxUint64) {
		if j := b.Job(id); j == nil || j.Spec.Market != s.Spec.Market || !j.Active() {
			continue
		}
		if n++; n == most {
			return messages.Errorf(messages.Exhausted, "market %s accepts at most %d jobs of an account at a time, and %s has %d active jobs; submit again when one of these jobs has ended", s.Spec.Market, most, s.Account, n)
		}
	}
	return nil
}

// Judged is called when these rules have refused a request, and `why` is the refusal. If the markets of the book have
// changed since these rules were made, the refusal may be out of date: Judged then returns an error that asks the
// client to try again. Otherwise it returns `why`.
func (r *Rules) Judged(b *book.Book, why error) error {
	return cmp.Or(b.Unchanged(r.Version+1), why)
}

// Visible returns a job that the caller may see and cancel. If only the archive has the job, the error has the kind
// Ended. A caller who may not see the job gets the same error as for a missing job.
func (r *Rules) Visible(b *book.Book, caller messages.Name, id messages.JobID) (*book.Job, error) {
	j := b.Job(id)
	sees := func(owner messages.Name) bool { return owner == caller || slices.Contains(r.Operators, caller) }
	if p := b.Past(id); p != nil && p.Peer == "" && sees(p.Account) {
		return nil, messages.Errorf(messages.Ended, "job %d is %v already", id, p.Outcome)
	}
	if away := b.Remote(id); away != nil && sees(away.Account) {
		return nil, messages.Errorf(messages.Invalid, "job %d runs at site %s; only jobs of this site can be named here", id, away.Peer)
	}
	if j == nil || !sees(j.Account) {
		return nil, messages.Errorf(messages.NotFound, "there is no job %d", id)
	}
	return j, nil
}
