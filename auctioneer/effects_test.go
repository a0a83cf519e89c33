package auctioneer

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/mailbox"
)

// dry is a bus on which every request for a stream fails.
type dry struct{ bus.Bus }

func (dry) Stream(context.Context, string, []string) (bus.Stream, error) {
	return nil, messages.Errorf(messages.Unavailable, "no streams here")
}

// Jobs must still be charged without the stream for observations.
func TestMoneyDoesNotWaitForObservations(t *testing.T) {
	f := startOn(t, func(b bus.Bus) bus.Bus { return dry{b} })
	f.register("n1", 1)
	for i, key := range []string{"a", "b", "c"} {
		id := f.submit("alice", key, oneStage(1)).Job
		g := f.claim("n1", uint64(2*i+1), id, 1)
		f.finish("n1", uint64(2*i+2), 0, g.Grants...)
		await.Until(t, "the job is final", func() bool {
			return must[job.JobDetail](f, "alice", messages.VerbJob, job.JobRequest{Job: id}).State == job.Completed
		})
	}
}

// visitor commits a job of another site as a command, without a request.
func (f *fixture) visitor(number messages.JobID) messages.JobID {
	f.t.Helper()
	spec := oneStage(1)
	spec.Market, spec.Stages[0].Class = "main", "map"
	visit := job.Visit{Home: "east", Job: number}
	data, err := (&book.Command{At: f.Clock(), Submit: &book.Submit{Account: "bob@east", Key: visit.String(), Payer: "bob@east", Held: spec.Budget, Spec: &spec,
		Visit: &book.Visit{Visit: visit, Authorisation: visit.String(), Until: f.Clock().Add(clearing.MaxInterval)}}}).Encode()
	if err != nil {
		f.t.Fatal(err)
	}
	result, err := f.log.Propose(f.t.Context(), data)
	if err != nil {
		f.t.Fatal(err)
	}
	return result.(book.Receipt).Job
}

// clearing makes the bank refuse charges to other sites until the result `opened` is true. The result `asked` counts
// the requests.
func (f *fixture) clearing() (asked *atomic.Int64, opened *atomic.Bool) {
	f.t.Helper()
	asked, opened = new(atomic.Int64), new(atomic.Bool)
	sub, err := f.net.Connect("$bank").Serve(bus.Service{Name: "clearing", Version: "1.0.0", Endpoints: []bus.Endpoint{
		{Name: "charge", Subject: messages.Subject("west", messages.Bank, clearing.VerbCharge, "*"), Handle: bus.Handle("charge",
			func(context.Context, messages.Name, clearing.ChargeRequest) (clearing.ClearingReply, error) {
				if asked.Add(1); !opened.Load() {
					return clearing.ClearingReply{}, messages.Errorf(messages.Exhausted, "the outbox is full")
				}
				return clearing.ClearingReply{}, nil
			})}}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = sub.Stop() })
	return asked, opened
}

func (f *fixture) final(id messages.JobID) bool {
	return must[job.JobDetail](f, "operator", messages.VerbJob, job.JobRequest{Job: id}).State.Final()
}

func TestChargesToOtherSitesAreTriedAgain(t *testing.T) {
	f := start(t)
	asked, opened := f.clearing()
	id := f.visitor(1)
	must[job.CancelReply](f, "operator", messages.VerbCancel, job.CancelRequest{Job: id})
	await.Until(t, "the bank is asked twice", func() bool { return asked.Load() >= 2 })
	opened.Store(true)
	await.Until(t, "the job is final", func() bool { return f.final(id) })
}

func TestChargesThatWaitLetOthersPass(t *testing.T) {
	f := start(t)
	f.clearing()
	for i := range 1024 {
		id := f.visitor(messages.JobID(i + 1))
		must[job.CancelReply](f, "operator", messages.VerbCancel, job.CancelRequest{Job: id})
	}
	id := f.submit("alice", "k", oneStage(1)).Job
	must[job.CancelReply](f, "alice", messages.VerbCancel, job.CancelRequest{Job: id})
	await.Until(t, "a job of the site is final", func() bool { return f.final(id) })
}

// failing is a bus whose stream refuses all messages at first.
type failing struct {
	bus.Bus
	tries *atomic.Int64
}

type failingStream struct {
	bus.Stream
	tries *atomic.Int64
}

func (b failing) Stream(ctx context.Context, name string, subjects []string) (bus.Stream, error) {
	s, err := b.Bus.Stream(ctx, name, subjects)
	return failingStream{s, b.tries}, err
}

func (s failingStream) Append(ctx context.Context, subject, id string, data []byte) error {
	if s.tries.Add(1) < 3 {
		return messages.Errorf(messages.Unavailable, "the stream has no leader")
	}
	return s.Stream.Append(ctx, subject, id, data)
}

func TestObservationsAreTriedAgain(t *testing.T) {
	tries := new(atomic.Int64)
	f := startOn(t, func(b bus.Bus) bus.Bus { return failing{b, tries} })
	id := f.submit("alice", "k", oneStage(1)).Job
	must[job.CancelReply](f, "alice", messages.VerbCancel, job.CancelRequest{Job: id})
	await.Until(t, "no effect waits", func() (none bool) {
		f.replica.read(func(b *book.Book) { none = b.Job(id).State.Final() && len(slices.Collect(b.EachEffect)) == 0 })
		return none
	})
}

// forgetful is a mailbox that loses the first settlement.
type forgetful struct {
	mailbox.Mailbox
	lost atomic.Bool
}

func (m *forgetful) ProposeInOrder(ctx context.Context, commands [][]byte) ([]any, []error) {
	if c, err := book.Decode(commands[0]); err == nil && c.Settle != nil && m.lost.CompareAndSwap(false, true) {
		return make([]any, len(commands)), slices.Repeat([]error{mailbox.ErrUnknown}, len(commands))
	}
	return m.Mailbox.ProposeInOrder(ctx, commands)
}

// The first commit of a settlement is lost. The repeated settlement must have the same shares.
func TestSettlementKeepsItsShares(t *testing.T) {
	box := new(forgetful)
	f := startWith(t, behind(func(ordinary mailbox.Mailbox) mailbox.Mailbox {
		box.Mailbox = ordinary
		return box
	}))
	id := f.submit("alice", "k", oneStage(1)).Job
	f.register("n1", 1)
	g := f.claim("n1", 1, id, 1)
	detail := func() job.JobDetail {
		return must[job.JobDetail](f, "alice", messages.VerbJob, job.JobRequest{Job: id})
	}
	await.Until(t, "it has a share", func() bool { return len(detail().Shares) > 0 })
	f.finish("n1", 2, 0, g.Grants...)
	await.Until(t, "the job is final", func() bool { return f.final(id) })
	if !box.lost.Load() || len(detail().Shares) == 0 {
		t.Error("its shares are lost")
	}
}

// The bank refuses a request because of one of its transfers. The other transfers of the request must be carried out
// later.
func TestOneBadTransferRefusesNoOther(t *testing.T) {
	f := start(t)
	f.bank.mu.Lock()
	f.bank.poison = "job/west/alice/b/charge"
	f.bank.mu.Unlock()
	var ids []messages.JobID
	for _, key := range []string{"a", "b", "c"} {
		ids = append(ids, f.submit("alice", key, oneStage(1)).Job)
	}
	for _, id := range ids {
		must[job.CancelReply](f, "alice", messages.VerbCancel, job.CancelRequest{Job: id})
	}
	for _, id := range ids {
		await.Until(t, "the job is final", func() bool { return f.final(id) })
	}
	f.replica.read(func(b *book.Book) {
		if b.Job(ids[1]).Refused == "" || b.Job(ids[0]).Refused != "" {
			t.Errorf("refused are %q and %q", b.Job(ids[1]).Refused, b.Job(ids[0]).Refused)
		}
	})
}
