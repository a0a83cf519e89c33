package load

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
)

// patience is the longest wait for something that must happen.
const patience = 20 * time.Second

// counter is a simulated auctioneer that gives each key a number. It can forget or refuse some keys.
type counter struct {
	mu     sync.Mutex
	jobs   map[string]messages.JobID
	refuse bool
}

func (c *counter) submit(_ context.Context, _ messages.Name, r job.SubmitRequest) (reply job.SubmitReply, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse {
		return reply, messages.Errorf(messages.Insufficient, "nothing is left")
	}
	if c.jobs[r.Key] == 0 {
		c.jobs[r.Key] = messages.JobID(len(c.jobs) + 1)
	}
	reply.Job = c.jobs[r.Key]
	return reply, nil
}

// site returns a bus in memory with a counter, and the configuration of a load for it.
func site(t *testing.T) (*counter, Config) {
	c := &counter{jobs: map[string]messages.JobID{}}
	network := bus.NewMemory()
	_, err := network.Connect(messages.ServiceIdentity(messages.Auctioneer)).Serve(bus.Service{Name: "counter", Version: "1.0.0", Endpoints: []bus.Endpoint{{
		Name: messages.VerbSubmit, Subject: messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "*"),
		Handle: bus.Handle(messages.VerbSubmit, c.submit),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return c, Config{Site: "west", Users: []messages.Name{"alice", "bob"}, Every: time.Millisecond, Patience: patience, Prefix: "test",
		Connect: func(user messages.Name) (bus.Bus, error) { return network.Connect(user), nil },
		Job: func(int) job.SubmitRequest {
			return job.SubmitRequest{Spec: job.JobSpec{Budget: messages.Credit, Stages: []job.Stage{{Name: "main", Command: []string{"true"}}}}}
		}}
}

func start(t *testing.T, c Config) *Load {
	t.Helper()
	l, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestEveryClientSubmitsItsJobs(t *testing.T) {
	_, c := site(t)
	c.Jobs = 5
	r := start(t, c).Wait()
	if r.Sent != 10 || len(r.Acks) != 10 || len(r.Failed) != 0 {
		t.Fatalf("two clients of 5 jobs each sent %d, of which %d were acknowledged and %v failed", r.Sent, len(r.Acks), r.Failed)
	}
	numbers := map[messages.JobID]bool{}
	for _, a := range r.Acks {
		if numbers[a.Job] || a.Acked.Before(a.Sent) {
			t.Errorf("%+v: its number is another's, or it was answered before it was sent", a)
		}
		numbers[a.Job] = true
	}
}

func TestALoadSaysWhenClientsAreServed(t *testing.T) {
	_, c := site(t)
	l := start(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	after := time.Now()
	waits, err := l.AwaitServed(ctx, after)
	if err != nil || len(waits) != 2 || waits[0] <= 0 || waits[1] <= 0 {
		t.Errorf("the clients were served after %v, %v", waits, err)
	}
	if err := l.AwaitMore(ctx, 7); err != nil {
		t.Error(err)
	}
	if err := l.AwaitAnswered(ctx, time.Now()); err != nil {
		t.Error(err)
	}
	if r := l.Stop(); len(r.Acks) < 7+2 {
		t.Errorf("%d acknowledgements after two and seven more", len(r.Acks))
	}
}

func TestARefusalIsNotAnAcknowledgement(t *testing.T) {
	counter, c := site(t)
	counter.refuse = true
	c.Jobs = 2
	l := start(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if waits, err := l.AwaitServed(ctx, time.Now().Add(-time.Hour)); err == nil {
		t.Errorf("clients of a site that refuses were served after %v", waits)
	}
	if r := l.Wait(); len(r.Acks) != 0 || len(r.Failed) != 4 {
		t.Errorf("%d refusals were acknowledged, %d were not", len(r.Acks), len(r.Failed))
	}
}

func TestRepeatFindsWhatWasLost(t *testing.T) {
	counter, c := site(t)
	c.Jobs = 3
	l := start(t, c)
	r := l.Wait()
	if losses, err := l.Repeat(t.Context(), r.Acks); err != nil || losses.Asked != 6 || len(losses.Lost) != 0 {
		t.Fatalf("of a site that keeps everything: %+v, %v", losses, err)
	}
	counter.mu.Lock()
	counter.jobs[r.Acks[4].Key] = 99
	counter.mu.Unlock()
	losses, err := l.Repeat(t.Context(), r.Acks)
	if err != nil || len(losses.Lost) != 1 || !strings.Contains(losses.Lost[0], r.Acks[4].Key) {
		t.Errorf("of a site that lost %s: %+v, %v", r.Acks[4].Key, losses, err)
	}
}
