package auctioneer

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
)

// submissions takes jobs, and quotes for them.
type submissions struct {
	*leader
	gathered gathered
	menus    intake.MenuKey
}

func newSubmissions(l *leader) *submissions {
	return &submissions{leader: l, menus: intake.NewMenuKey()}
}

// rules are those of the markets in force.
func (l *submissions) rules() *intake.Rules {
	return &intake.Rules{Markets: l.inForce(), Site: l.Site, Operators: l.Operators, MostMemory: l.MostMemory,
		Deposit: l.Limits.Deposit, Pending: l.Limits.PendingJobs, Notify: l.NotifyRules.Check}
}

// submission is a request on its way into the book.
type submission struct {
	*intake.Submission
	visit   *federation.Arrival // it comes from another site
	counted bool                // by the limit on the rate
	heeded  bool                // its market must read all that it bids with
}

// submit takes a job: checked, its budget held at the bank under an identifier
// made from the client's key, and only then committed. Whatever fails on the
// way, the same request can be sent again. A hold whose submission the book refuses is
// freed by an effect; a hold whose submission never came to the book ends after HoldFor.
func (l *submissions) submit(ctx context.Context, account messages.Name, r messages.SubmitRequest) (reply messages.SubmitReply, err error) {
	if !messages.ValidName(account) {
		return reply, messages.Errorf(messages.Invalid, "account %q is not a valid name", account)
	}
	if r.Jobs != nil {
		return l.submitSeveral(ctx, account, &r)
	}
	if r.Site != "" && r.Site != l.Site {
		return l.remote.submit(ctx, account, &r)
	}
	return l.submitHere(ctx, account, &r)
}

func (l *submissions) submitHere(ctx context.Context, account messages.Name, r *messages.SubmitRequest) (reply messages.SubmitReply, err error) {
	s, err := l.rules().Prepare(account, r)
	if err == nil {
		reply, err = l.enter(ctx, &submission{Submission: s, heeded: true}, r.DryRun)
	}
	if err != nil && s != nil && !r.DryRun {
		replies, errs := []messages.SubmitReply{reply}, []error{err}
		if err := l.refused(ctx, []*intake.Submission{s}, replies, errs); err != nil {
			return reply, err
		}
		reply, err = replies[0], errs[0]
	}
	if err == nil {
		l.replica.read(func(b *book.Book) { reply.Warnings = warnings(b, s) })
	}
	return reply, err
}

// warnings are what of a job the site does not enforce, what the market gave the job, and what a chain costs there.
func warnings(b *book.Book, s *intake.Submission) []string {
	if s.Market == nil { // by the rules of now it would be refused
		return s.Said
	}
	said := append(s.Said, intake.Unenforced(b, s)...)
	if chain := intake.Chained(s); chain != "" {
		said = append(said, chain)
	}
	return said
}

// enter has a submission that was prepared paid for and committed.
func (l *submissions) enter(ctx context.Context, s *submission, dryRun bool) (reply messages.SubmitReply, err error) {
	known, leave, err := l.begin(s)
	if err != nil {
		return reply, err
	}
	if known != nil {
		return *known, nil
	}
	if s.visit == nil && !dryRun {
		return l.together(ctx, s, leave)
	}
	defer leave()
	if dryRun {
		return messages.SubmitReply{Market: s.Spec.Market, Payer: s.Payer, Held: s.Held(), Tasks: s.Spec.TaskCount()}, l.affordable(ctx, s)
	}
	utility := l.askUtility(ctx, s)
	if err := l.federated.accept(ctx, s.visit); err != nil {
		return reply, err
	}
	s.Assume(<-utility)
	if err := l.inTerm(l.term); err != nil {
		return reply, err
	}
	receipt, err := propose[book.Receipt](ctx, l.Auctioneer, s.Command())
	if err != nil {
		return messages.SubmitReply{}, err
	}
	l.metrics.submissions.Inc()
	return answer(receipt), nil
}

// begin takes a submission up: it returns the answer of one that was committed before, or
// what is to be called once the submission is over.
func (l *submissions) begin(s *submission) (known *messages.SubmitReply, leave func(), err error) {
	receipt, err := l.known(s)
	if err != nil {
		return nil, nil, err
	}
	if receipt != nil {
		reply := answer(*receipt)
		return &reply, nil, nil
	}
	if s.visit == nil {
		if err := l.reruns(s.Account, s.Spec); err != nil {
			return nil, nil, err
		}
	}
	if s.heeded {
		if err := intake.Heeds(s.Spec, s.Market, l.inForce()); err != nil {
			return nil, nil, err
		}
	}
	if leave, err = l.within(s); err != nil {
		return nil, nil, err
	}
	if err := l.admit(s); err != nil {
		leave()
		return nil, nil, err
	}
	return nil, leave, nil
}

// refused looks again at submissions that were refused, and gives those that are in the book
// their answers. Nobody is told that a job is refused for good while an earlier try of the same
// request may still enter it: its owner would believe that there is no job. So such a refusal
// waits until earlier tries are decided; it takes no place in the log.
func (l *submissions) refused(ctx context.Context, all []*intake.Submission, replies []messages.SubmitReply, errs []error) error {
	final := false
	for i, s := range all {
		if s == nil || errs[i] == nil || messages.Waits(errs[i]) {
			continue
		}
		if final = true; l.gate.underWay(s.Account, s.Key) {
			errs[i] = tried(s.Key)
		}
	}
	if final {
		if err := l.decided(ctx); err != nil {
			return err
		}
	}
	l.replica.read(func(b *book.Book) {
		for i, s := range all {
			if s == nil || errs[i] == nil {
				continue
			}
			if known, _ := b.Known(s.Account, s.Key, s.Digest); known != nil {
				replies[i], errs[i] = answer(*known), nil
			} else {
				errs[i] = s.Judged(b, errs[i])
			}
		}
	})
	return nil
}

// tried is said in place of a refusal while another request under the key is under way.
func tried(key string) error {
	return messages.Errorf(messages.Unavailable, "another request with key %q is under way; ask again", key)
}

func answer(r book.Receipt) messages.SubmitReply {
	return messages.SubmitReply{Job: r.Job, Market: r.Market, Payer: r.Payer, Held: r.Held, Tasks: r.Tasks}
}

// known answers a submission that was committed before.
func (l *submissions) known(s *submission) (receipt *book.Receipt, err error) {
	l.replica.read(func(b *book.Book) { receipt, err = l.rules().Known(b, s.Submission) })
	return receipt, err
}

// reruns refuses a job that is said to do another one again which its owner may not see, or which
// never was.
func (l *submissions) reruns(account messages.Name, spec *messages.JobSpec) (err error) {
	id := spec.RerunOf
	if id == 0 {
		return nil
	}
	l.replica.read(func(b *book.Book) { _, err = l.rules().Visible(b, account, id) })
	if messages.KindOf(err) == messages.NotFound {
		_, err = l.find(account, id, err)
	}
	if messages.KindOf(err) == messages.NotFound {
		return messages.Errorf(messages.NotFound, "rerun_of: %s; name the job that this one does again, or leave rerun_of out", messages.Detail(err))
	}
	return nil
}

// admit has the market take the job, under the contract that it names.
func (l *submissions) admit(s *submission) (err error) {
	now := l.Clock()
	if l.replica.read(func(b *book.Book) { err = s.Agree(b, now) }); err != nil {
		return err
	}
	return l.withMarket(s.Spec.Market, func(m *market.Market) error { return s.Admit(now, m) })
}

// holdAll has the bank hold the budgets of submissions, by one request, and returns what it
// said of each.
func (l *submissions) holdAll(ctx context.Context, all []*submission) []error {
	var request messages.TransferRequest
	ends := make([]int, len(all)) // of the transfers of each
	l.replica.read(func(b *book.Book) {
		for _, s := range all {
			s.Seen = b.LastEffect() + 1
		}
	})
	until := l.Clock().Add(l.HoldFor)
	for i, s := range all {
		request.Transfers = append(request.Transfers, s.Hold(until)...)
		ends[i] = len(request.Transfers)
	}
	reply, err := askActor[messages.TransferReply](ctx, l.federated.peers, messages.Bank, messages.VerbTransfer, request)
	errs, from := make([]error, len(all)), 0
	if err != nil && len(all) > 1 && !messages.KindOf(err).Retriable() { // for what one of them asks, perhaps
		for i := range all {
			errs[i] = l.holdAll(ctx, all[i:i+1])[0]
		}
		return errs
	}
	for i, s := range all {
		if errs[i] = err; err == nil {
			errs[i] = s.Secured(reply.Results[min(from, len(reply.Results)):min(ends[i], len(reply.Results))])
		}
		from = ends[i]
	}
	return errs
}

// affordable checks for a dry run what a hold would.
func (l *submissions) affordable(ctx context.Context, s *submission) error {
	r := messages.AccountRequest{Account: s.Payer}
	account, err := askActor[messages.AccountReply](ctx, l.federated.peers, messages.Bank, messages.VerbAccount, r)
	if err != nil {
		return err
	}
	return account.Affords(s.Account, s.Held())
}

// estimateWithin is how long the estimator may take to say what a job is worth. A
// submission waits no longer for it than that, counted from when the hold was
// asked for, which as a rule takes longer.
const estimateWithin = 20 * time.Millisecond

// askUtility asks the estimator what a job without a utility function is
// worth, while the hold is being made. The answer comes within estimateWithin, or
// the channel is closed without one.
func (l *submissions) askUtility(ctx context.Context, s *submission) <-chan *messages.UtilityReply {
	answer := make(chan *messages.UtilityReply, 1)
	r, asks := s.AsksUtility()
	if !asks {
		close(answer)
		return answer
	}
	go func() {
		defer close(answer)
		ctx, cancel := context.WithTimeout(ctx, estimateWithin)
		defer cancel()
		if u, err := askActor[messages.UtilityReply](ctx, l.federated.peers, messages.Estimator, messages.VerbUtility, r); err == nil {
			answer <- &u
		} else {
			l.Log.Debug("no estimate", zap.Error(err))
		}
	}()
	return answer
}

func (l *submissions) cancel(ctx context.Context, caller messages.Name, r messages.CancelRequest) (reply messages.CancelReply, err error) {
	if err := r.Validate(); err != nil {
		return reply, err
	}
	if r.Jobs != nil {
		reply.Jobs, err = l.cancelJobs(ctx, caller, r.Jobs)
		return reply, err
	}
	if away := l.remote.find(caller, r.Job); away != nil {
		if r.Tasks != nil {
			return reply, messages.Errorf(messages.Conflict, "job %d runs at another site, where tasks cannot be cancelled alone; cancel the whole job", r.Job)
		}
		return l.remote.cancel(ctx, caller, away)
	}
	if r.Tasks != nil {
		return steering{l.leader}.cancelTasks(ctx, caller, r)
	}
	l.replica.read(func(b *book.Book) { _, err = l.rules().Visible(b, caller, r.Job) })
	if err != nil {
		return reply, err
	}
	was, err := propose[messages.State](ctx, l.Auctioneer, &book.Command{Cancel: &book.Cancel{Job: r.Job, By: caller, Window: l.Limits.Window()}})
	return messages.CancelReply{Job: r.Job, State: was}, err
}

// cancelJobs cancels several jobs, and the jobs of this site in one command. A job that
// the caller may not see is reported as a job that does not exist.
func (l *submissions) cancelJobs(ctx context.Context, caller messages.Name, ids []messages.JobID) ([]messages.CancelOutcome, error) {
	out := make([]messages.CancelOutcome, len(ids))
	here, places := &book.CancelJobs{By: caller, Window: l.Limits.Window()}, []int{}
	var away []messages.JobID
	l.replica.read(func(b *book.Book) {
		for i, id := range ids {
			out[i].Job = id
			if r := b.Remote(id); r != nil && (r.Account == caller || l.operates(caller)) {
				away = append(away, id)
			} else if _, err := l.rules().Visible(b, caller, id); err != nil {
				out[i].Error = messages.AsError(messages.VerbCancel, err)
			} else {
				here.Jobs, places = append(here.Jobs, id), append(places, i)
			}
		}
	})
	if len(here.Jobs) > 0 {
		done, err := propose[[]book.CancelledJob](ctx, l.Auctioneer, &book.Command{CancelJobs: here})
		if err != nil {
			return nil, err
		}
		for k, i := range places {
			out[i].State, out[i].Error = done[k].State, done[k].Err
		}
	}
	return out, l.remote.cancelJobs(ctx, caller, away, out)
}
