package auctioneer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// submission is a request on its way into the book.
type submission struct {
	account messages.Name
	key     string
	digest  []byte
	spec    *messages.JobSpec
	payer   messages.Name
	hold    string
	assumed string
	// mechanism is that of the job's market.
	mechanism messages.Name
	// contract is what the spec's names.
	contract *messages.Contract
	quote    uint64
	applies  uint64 // 1 + how often markets had been applied
	visit    *visit // it comes from another site
	deposit  messages.Credits
	counted  bool // by the limit on the rate
}

// submit takes a job: checked, its budget held at the bank under an identifier
// made from the client's key, and only then committed. Whatever fails on the
// way, the same request can be sent again.
func (l *leader) submit(ctx context.Context, account messages.Name, r messages.SubmitRequest) (reply messages.SubmitReply, err error) {
	if !messages.ValidName(account) {
		return reply, messages.Errorf(messages.Invalid, "account %q is not a valid name", account)
	}
	if r.Site != "" && r.Site != l.Site {
		return l.submitAway(ctx, account, &r)
	}
	return l.submitHere(ctx, account, &r)
}

func (l *leader) submitHere(ctx context.Context, account messages.Name, r *messages.SubmitRequest) (reply messages.SubmitReply, err error) {
	s, err := l.prepare(account, r)
	if err != nil {
		return reply, err
	}
	return l.take(ctx, s, r.DryRun)
}

// take has a submission that was prepared paid for and committed.
func (l *leader) take(ctx context.Context, s *submission, dryRun bool) (reply messages.SubmitReply, err error) {
	known, err := l.known(s)
	if err != nil {
		return reply, err
	}
	if known != nil {
		return answer(*known), nil
	}
	leave, err := l.within(s)
	if err != nil {
		return reply, err
	}
	defer leave()
	s.deposit = l.deposit(s)
	if err := l.agree(s); err != nil {
		return reply, err
	}
	if err := l.admit(s); err != nil {
		return reply, err
	}
	if dryRun {
		return messages.SubmitReply{Market: s.spec.Market, Payer: s.payer, Held: s.held(), Tasks: s.spec.TaskCount()}, l.affordable(ctx, s)
	}
	utility := l.askUtility(ctx, s)
	if err := l.secure(ctx, s); err != nil {
		// Another try of the same request may have been committed meanwhile, and its
		// job even have ended, which resolved the hold.
		if known, _ := l.known(s); known != nil {
			return answer(*known), nil
		}
		return reply, err
	}
	s.assume(utility)
	result, err := l.propose(ctx, &book.Command{Submit: s.command(l.Limits.PendingJobs)})
	if err != nil {
		return reply, err
	}
	l.metrics.submissions.Inc()
	return answer(result.(book.Receipt)), nil
}

func answer(r book.Receipt) messages.SubmitReply {
	return messages.SubmitReply{Job: r.Job, Market: r.Market, Payer: r.Payer, Held: r.Held, Tasks: r.Tasks}
}

// prepare checks what can be checked without the state, and fills in defaults.
func (l *leader) prepare(account messages.Name, r *messages.SubmitRequest) (*submission, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	digest, err := digestOf(r)
	if err != nil {
		return nil, err
	}
	s := &submission{account: account, key: r.Key, digest: digest, spec: &r.Spec, payer: r.Spec.Project, applies: l.Version + 1}
	s.hold = fmt.Sprintf("job/%s/%s/%s", l.Site, account, r.Key)
	if s.payer == "" {
		s.payer = account
	}
	if err := l.complete(s.spec); err != nil {
		return nil, err
	}
	s.mechanism = l.Find(s.spec.Market).Mechanism
	return s, nil
}

// digestOf tells what is asked for under one key from anything else.
func digestOf(r *messages.SubmitRequest) ([]byte, error) {
	encoded, err := messages.Marshal(&r.Spec, messages.Msgpack)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(append(encoded, r.Site...))
	return digest[:], nil
}

// held is what is set aside for the job.
func (s *submission) held() messages.Credits { return s.spec.Budget + s.deposit }

// command is what enters the job into the book.
func (s *submission) command(most int) *book.Submit {
	c := &book.Submit{Account: s.account, Key: s.key, Digest: s.digest, Payer: s.payer,
		Spec: s.spec, Assumed: s.assumed, Hold: s.hold, Held: s.held(), Contract: s.contract, Quote: s.quote, Applies: s.applies,
		Deposit: s.deposit, Most: most}
	if s.visit != nil {
		c.Visit = &s.visit.Visit
	}
	return c
}

// secure sees to it that the budget can be charged at the end.
func (l *leader) secure(ctx context.Context, s *submission) error {
	if s.visit != nil {
		return l.accept(ctx, s.visit)
	}
	return l.hold(ctx, s)
}

// known answers a submission that was committed before.
func (l *leader) known(s *submission) (receipt *book.Receipt, err error) {
	l.replica.read(func(b *book.Book) {
		j := b.ByKey(s.account, s.key)
		switch {
		case b.RoamByKey(s.account, s.key) != nil:
			err = messages.Errorf(messages.Conflict, "key %q was used for a job at another site; choose a new key for a new job", s.key)
		case j == nil && b.Active() >= book.MaxActive:
			err = messages.Errorf(messages.Exhausted, "the site holds %d jobs that have not ended; submit again later", b.Active())
		case j == nil:
			err = l.takes(b, s)
		case !slices.Equal(j.Digest, s.digest):
			err = messages.Errorf(messages.Conflict, "key %q was used for job %d with another description; choose a new key for a new job", s.key, j.ID)
		default:
			r := j.Receipt()
			receipt = &r
		}
	})
	return receipt, err
}

func (l *leader) admit(s *submission) (err error) {
	now := l.Clock()
	spec := *s.spec
	if spec.Utility == nil {
		spec.Utility = defaultUtility(s.spec)
	}
	l.with(func(d *desk.Desk) {
		m := d.Market(s.spec.Market)
		err = m.Admit(now, m.Bid(0, s.account, now, &spec, s.contract))
	})
	return err
}

// hold sets the budget aside. The extension behind it finds out whether a hold
// that was made by an earlier try has lapsed meanwhile.
func (l *leader) hold(ctx context.Context, s *submission) error {
	until := l.Clock().Add(l.HoldFor)
	reply, err := bankAsk[messages.TransferReply](ctx, l, messages.VerbTransfer, messages.TransferRequest{Transfers: []messages.Transfer{
		{ID: s.hold, Kind: messages.Hold, Debit: s.payer, Credit: messages.SiteAccount, Amount: s.held(), Member: s.account,
			Expires: until, Reason: "budget of " + title(s.spec) + " on market " + s.spec.Market},
		desk.Extension(s.hold, 0, until, "the job is being committed"),
	}})
	switch {
	case err != nil:
		return err
	case len(reply.Results) != 2:
		return messages.Errorf(messages.Internal, "the bank answered %d of 2 transfers", len(reply.Results))
	case reply.Results[0].Error != nil:
		return reply.Results[0].Error
	case reply.Results[1].Error != nil:
		return messages.Errorf(messages.Expired, "the credits held for key %q were freed meanwhile; submit with a new key", s.key)
	}
	return nil
}

// title is what a statement calls a job.
func title(spec *messages.JobSpec) string {
	const most = 100 // bytes
	switch {
	case spec.Name == "":
		return "a job"
	case len(spec.Name) > most:
		return strings.ToValidUTF8(spec.Name[:most], "") + "…"
	}
	return spec.Name
}

// affordable checks for a dry run what a hold would.
func (l *leader) affordable(ctx context.Context, s *submission) error {
	subject := messages.Subject(l.Site, messages.Bank, messages.VerbAccount, messages.ServiceIdentity(messages.Auctioneer))
	account, err := bus.Call[messages.AccountReply](ctx, l.Bus, subject, messages.AccountRequest{Account: s.payer})
	if err != nil {
		return err
	}
	return account.Affords(s.account, s.held())
}

// estimateWithin is how long the estimator may take to say what a job is worth. A
// submission waits no longer for it than that, counted from when the hold was
// asked for, which as a rule takes longer.
const estimateWithin = 20 * time.Millisecond

// askUtility asks the estimator what a job without a utility function is
// worth, while the hold is being made. The answer comes within estimateWithin, or
// the channel is closed without one.
func (l *leader) askUtility(ctx context.Context, s *submission) <-chan messages.UtilityReply {
	answer := make(chan messages.UtilityReply, 1)
	if s.spec.Utility != nil || s.mechanism != messages.Proportional {
		close(answer)
		return answer
	}
	r := messages.UtilityRequest{Account: s.account, Name: s.spec.Name, Market: s.spec.Market, Classes: classes(s.spec)}
	subject := messages.Subject(l.Site, messages.Estimator, messages.VerbUtility, messages.ServiceIdentity(messages.Auctioneer))
	go func() {
		defer close(answer)
		ctx, cancel := context.WithTimeout(ctx, estimateWithin)
		defer cancel()
		if u, err := bus.Call[messages.UtilityReply](ctx, l.Bus, subject, r); err == nil {
			answer <- u
		} else {
			l.Log.Debug("no estimate", zap.Error(err))
		}
	}()
	return answer
}

// assume fills in the utility function that the user left out: the estimator's
// if it has answered and fits the job, the default otherwise.
func (s *submission) assume(answer <-chan messages.UtilityReply) {
	if s.spec.Utility != nil || s.mechanism != messages.Proportional {
		return
	}
	if u, answered := <-answer; answered && u.Runs > 0 && s.fits(&u.Utility) {
		s.spec.Utility = &u.Utility
		s.assumed = u.Basis()
		return
	}
	s.spec.Utility = defaultUtility(s.spec)
	s.assumed = (&messages.UtilityReply{}).Basis()
}

func (s *submission) fits(u *messages.Utility) bool {
	probe := *s.spec
	probe.Utility = u
	for _, stage := range s.spec.Stages {
		if !(u.Weights.Of(stage.Class) > 0) {
			return false
		}
	}
	return probe.Validate() == nil
}

func defaultUtility(spec *messages.JobSpec) *messages.Utility {
	u := &messages.Utility{Form: messages.Linear}
	for _, c := range classes(spec) {
		u.Weights = append(u.Weights, messages.ClassWeight{Class: c, Weight: 1})
	}
	return u
}

// classes returns the classes that the job's stages use, by name.
func classes(spec *messages.JobSpec) []messages.Name {
	var out []messages.Name
	for _, s := range spec.Stages {
		out = append(out, s.Class)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (l *leader) cancel(ctx context.Context, caller messages.Name, r messages.JobRequest) (reply messages.CancelReply, err error) {
	if away, err := l.away(caller, r.Job); away != nil || err != nil {
		return l.cancelAway(ctx, caller, away, err)
	}
	l.replica.read(func(b *book.Book) { _, err = l.visible(b, caller, r.Job) })
	if err != nil {
		return reply, err
	}
	was, err := l.propose(ctx, &book.Command{Cancel: &book.Cancel{Job: r.Job, By: caller, Window: l.Limits.Window()}})
	if err != nil {
		return reply, err
	}
	return messages.CancelReply{Job: r.Job, State: was.(messages.State)}, nil
}
