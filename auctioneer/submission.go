package auctioneer

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

type submissions struct {
	*term
	gathered gathered
	menus    intake.MenuKey
}

func newSubmissions(l *term) *submissions {
	return &submissions{term: l, menus: intake.NewMenuKey()}
}

// submission is a request to submit a job that is not in the book yet.
type submission struct {
	*intake.Submission
	visit   *federation.Arrival // set if the job comes from another site
	counted bool                // the rate limit has counted the submission
	heeded  bool                // the market must not ignore a field of the job's bid
}

// warnings describes limits that the site does not enforce, values that the market filled in, and the cost of jobs that
// wait for other jobs.
func warnings(b *book.Book, s *intake.Submission) []string {
	if s.Market == nil { // the present rules would refuse the submission
		return s.Said
	}
	said := append(s.Said, intake.Unenforced(b, s)...)
	if buys, short := intake.Buys(s); short && s.Visit == nil {
		said = append(said, buys)
	}
	if chain := intake.Chained(s); chain != "" {
		said = append(said, chain)
	}
	return said
}

// tried returns the error for a submission whose key is the same as the key of an earlier request. The earlier request
// has not been answered yet.
func tried(key string) error {
	return messages.Errorf(messages.Unavailable, "another request with key %q is under way; ask again", key)
}

func answer(r book.Receipt) job.SubmitReply {
	return job.SubmitReply{Job: r.Job, Market: r.Market, Payer: r.Payer, Held: r.Held, Tasks: r.Tasks}
}

// known returns the answer to a submission that was committed before.
func (l *submissions) known(s *submission) (receipt *book.Receipt, err error) {
	l.replica.read(func(b *book.Book) { receipt, err = l.rules().Known(b, s.Submission) })
	return receipt, err
}

// reruns returns an error if the job names an original that does not exist or that its owner may not see.
func (l *submissions) reruns(account messages.Name, spec *job.JobSpec) (err error) {
	id := spec.RerunOf
	if id == 0 {
		return nil
	}
	l.replica.read(func(b *book.Book) { _, err = l.rules().Visible(b, account, id) })
	if messages.KindOf(err) == messages.NotFound {
		_, err = l.find(account, id, err)
	}
	if messages.KindOf(err) == messages.NotFound {
		return messages.Errorf(messages.NotFound, "rerun_of: %s; name the job whose tasks this job repeats, or leave rerun_of out", messages.Detail(err))
	}
	return nil
}

// admit returns an error if the market does not accept the job under the contract that it names.
func (l *submissions) admit(s *submission) (err error) {
	now := l.Clock()
	if l.replica.read(func(b *book.Book) { err = s.Agree(b, now) }); err != nil {
		return err
	}
	return l.withMarket(s.Spec.Market, func(m *market.Market) error { return s.Admit(now, m) })
}

// holdAll asks the bank, in one request, to hold the budgets of submissions. It returns one answer for each submission.
func (l *submissions) holdAll(ctx context.Context, all []*submission) []error {
	var request money.TransferRequest
	ends := make([]int, len(all)) // by submission: the end of its transfers in the list
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
	reply, err := askActor[money.TransferReply](ctx, l.federated.peers, messages.Bank, messages.VerbTransfer, request)
	errs, from := make([]error, len(all)), 0
	if err != nil && len(all) > 1 && !messages.KindOf(err).Retriable() { // one bad submission may have made the whole request fail: ask for each one alone
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

// affordable checks, for a dry run, that the payer's account has the credits that a real submission would hold.
func (l *submissions) affordable(ctx context.Context, s *submission) error {
	r := money.AccountRequest{Account: s.Payer}
	account, err := askActor[money.AccountReply](ctx, l.federated.peers, messages.Bank, messages.VerbAccount, r)
	if err != nil {
		return err
	}
	return account.Affords(s.Account, s.Held())
}

// estimateWithin is how long the estimator may take to say what a job is worth. The estimator is asked together with
// the bank, which makes the hold. The bank usually takes longer than estimateWithin, so the submission does not wait
// for the estimator.
const estimateWithin = 20 * time.Millisecond

// askUtility asks the estimator for the utility function of a job that declares none, while the bank makes the hold.
// The channel gets the answer within estimateWithin, or is closed.
func (l *submissions) askUtility(ctx context.Context, s *submission) <-chan *marketmsg.UtilityReply {
	answer := make(chan *marketmsg.UtilityReply, 1)
	r, asks := s.AsksUtility()
	if !asks {
		close(answer)
		return answer
	}
	go func() {
		defer close(answer)
		ctx, cancel := context.WithTimeout(ctx, estimateWithin)
		defer cancel()
		if u, err := askActor[marketmsg.UtilityReply](ctx, l.federated.peers, messages.Estimator, messages.VerbUtility, r); err == nil {
			answer <- &u
		} else {
			l.Log.Debug("no estimate", zap.Error(err))
		}
	}()
	return answer
}

// gathered has the submissions that wait to be sent as one group.
type gathered struct {
	mu       sync.Mutex
	underWay int
	waiting  []*alone
}

// alone is a submission that is the only one in its request.
type alone struct {
	*submission
	leave func()        // called when the submission is decided, even if nobody waits for it
	done  chan struct{} // closed when the fields below are set
	reply job.SubmitReply
	err   error
}
