package bus

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
)

func submitHandler(f func(messages.Name, jobmsg.SubmitRequest) (jobmsg.SubmitReply, error)) Handler {
	return Handle("submit", func(_ context.Context, caller messages.Name, r jobmsg.SubmitRequest) (jobmsg.SubmitReply, error) {
		return f(caller, r)
	})
}

func TestCallAndHandle(t *testing.T) {
	eachBus(t, func(t *testing.T, connect grid) {
		serve(t, connect(t, "$auctioneer"), one("submit.*", submitHandler(func(caller messages.Name, r jobmsg.SubmitRequest) (jobmsg.SubmitReply, error) {
			return jobmsg.SubmitReply{Job: 7, Payer: caller, Held: r.Spec.Budget}, r.Spec.Validate()
		})))
		b := connect(t, "alice")
		spec := jobmsg.JobSpec{Budget: 5, Stages: []jobmsg.Stage{{Name: "a", Command: []string{"true"}}}}
		got, err := Call[jobmsg.SubmitReply](within(t), b, "submit.alice", jobmsg.SubmitRequest{Spec: spec})
		if want := (jobmsg.SubmitReply{Job: 7, Payer: "alice", Held: 5}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v", got, err)
		}
		_, err = Call[jobmsg.SubmitReply](context.Background(), b, "submit.alice", jobmsg.SubmitRequest{})
		wantKind(t, err, messages.Invalid)
		if e := err.(*messages.Error); e.Op != "submit" || !strings.HasPrefix(e.Message, "budget: ") {
			t.Errorf("got %v", e)
		}

		data, err := b.Request(within(t), "submit.alice", []byte(`{"key":"k","spec":{"budget":1.5,"stages":[{"name":"a","command":["true"]}]}}`))
		if want := `{"job":7,"market":"","payer":"alice","held":1.5,"tasks":0}`; err != nil || string(data) != want {
			t.Errorf("got %s, %v", data, err)
		}
		for payload, say := range map[string]string{"\x93": "announces", `{"kee":"k"}`: "kee: is no field", strings.Repeat("\x91", 1<<19): "deeper"} {
			_, err := b.Request(within(t), "submit.alice", []byte(payload))
			wantKind(t, err, messages.Invalid)
			if e := err.(*messages.Error); e.Op != "submit" || !strings.Contains(e.Message, say) {
				t.Errorf("got %v", e)
			}
		}
	})
}

func TestCallAsksAgainWhileNobodyLeads(t *testing.T) {
	asked := 0
	b := NewMemory().Connect("alice")
	serve(t, b, one("submit.*", submitHandler(func(messages.Name, jobmsg.SubmitRequest) (r jobmsg.SubmitReply, err error) {
		if asked++; asked < 4 {
			return r, messages.Errorf(messages.NotLeader, "ask another")
		}
		return r, messages.Errorf(messages.Conflict, "used before")
	})))
	_, err := Call[jobmsg.SubmitReply](within(t), b, "submit.alice", jobmsg.SubmitRequest{})
	wantKind(t, err, messages.Conflict)
	if asked != 4 {
		t.Errorf("asked %d times", asked)
	}
}

// forgetful is a bus that refuses some requests, then loses some, and answers all others.
type forgetful struct {
	Bus
	refused, lost int
	mu            sync.Mutex
	asked         []time.Time
}

func (f *forgetful) Request(ctx context.Context, _ string, _ []byte) ([]byte, error) {
	f.mu.Lock()
	f.asked = append(f.asked, time.Now())
	n := len(f.asked)
	f.mu.Unlock()
	switch {
	case n <= f.refused:
		return nil, messages.Errorf(messages.NotLeader, "ask another")
	case n <= f.refused+f.lost:
		<-ctx.Done()
		return nil, messages.Errorf(messages.Unavailable, "no answer")
	}
	return wire.Marshal(jobmsg.SubmitReply{Job: 1}, wire.Msgpack)
}

// call sends a request to a forgetful bus, and must get an answer within an hour of virtual time.
func (f *forgetful) call(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if _, err := Call[jobmsg.SubmitReply](ctx, f, "submit.alice", jobmsg.SubmitRequest{}); err != nil {
		t.Error(err)
	}
}

// A client's request is refused several times, as by a site without a leader, and then it is lost. The client must
// repeat the lost request as early as if no refusal had come before.
func TestRefusalsDoNotMakeCallWaitLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &forgetful{refused: 12, lost: 1}
		f.call(t)
		if waited := f.asked[13].Sub(f.asked[12]); waited < attemptTimeout || waited > attemptTimeout+waits.Last {
			t.Errorf("the request that was lost was sent again after %v", waited)
		}
	})
}

// If a site does not answer, a call must wait longer and longer, up to a bound.
func TestCallWaitsLongerForWhoDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &forgetful{lost: 8}
		f.call(t)
		for i, least := range []time.Duration{attemptTimeout, attemptTimeout, attemptTimeout, 2 * attemptTimeout, 4 * attemptTimeout, RequestTimeout, RequestTimeout, RequestTimeout} {
			if waited := f.asked[i+1].Sub(f.asked[i]); waited < least || waited > least+waits.Last {
				t.Errorf("attempt %d waited %v, want %v and a random time below %v", i+1, waited, least, waits.Last)
			}
		}
	})
}

// The type `late` is a bus whose answers take long, although recent answers were fast.
type late struct {
	Bus
	answers
	takes time.Duration
	asked atomic.Int32
}

func (l *late) answerTimes() *answers { return &l.answers }
func (l *late) look(string)           {}

func (l *late) Request(ctx context.Context, _ string, _ []byte) ([]byte, error) {
	l.asked.Add(1)
	select {
	case <-time.After(l.takes):
		return wire.Marshal(clearing.OffersReply{}, wire.Msgpack)
	case <-ctx.Done():
		return nil, noAnswer(ctx, "s")
	}
}

// To answer a request for offers, the service waits for other sites. The client must send such a request only once,
// even if one site does not answer and all earlier requests were answered at once.
func TestCallAwaitsWhoWaitsForOthers(t *testing.T) {
	for _, within := range []time.Duration{0, 500 * time.Millisecond, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			r := clearing.OffersRequest{Within: messages.Duration(within)}
			l := &late{takes: r.Waits().Std() + time.Millisecond}
			const subject = "candor.west.auctioneer.offers.alice"
			for range 20 {
				l.note(subject, 5*time.Millisecond)
			}
			began := time.Now()
			if _, err := Call[clearing.OffersReply](t.Context(), l, subject, r); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took != l.takes || l.asked.Load() != 1 {
				t.Errorf("offers that take %v were asked for %d times, and took %v", l.takes, l.asked.Load(), took)
			}
		})
	}
}

// Call sends a request again if no answer comes. If the answer to an earlier attempt then arrives, it must count.
func TestCallHearsALateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &late{takes: 3 * time.Second}
		for range 20 {
			l.note("candor.west.auctioneer.job.alice", 5*time.Millisecond)
		}
		began := time.Now()
		if _, err := Call[clearing.OffersReply](t.Context(), l, "candor.west.auctioneer.job.alice", jobmsg.JobRequest{Job: 1}); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != l.takes || l.asked.Load() > 5 {
			t.Errorf("an answer that takes %v was asked for %d times, and heard after %v", l.takes, l.asked.Load(), took)
		}
	})
}

// refusing is a bus that refuses every request, the first one late.
type refusing struct {
	Bus
	first error
	asked atomic.Int32
}

func (f *refusing) Request(context.Context, string, []byte) ([]byte, error) {
	if f.asked.Add(1) == 1 {
		time.Sleep(2 * attemptTimeout) // in virtual time
		return nil, f.first
	}
	return nil, messages.Errorf(messages.Exhausted, "full")
}

// TestCallHearsALateRefusal refuses all attempts of a call. The error of the first attempt arrives after later attempts
// were sent. If this error is a clear refusal, the call must end with a refusal. If it leaves open whether the attempt
// was carried out, the call must end with Unknown.
func TestCallHearsALateRefusal(t *testing.T) {
	for _, first := range []error{messages.Errorf(messages.Exhausted, "full"), messages.Errorf(messages.Unknown, "lost"), connectionLost()} {
		synctest.Test(t, func(t *testing.T) {
			f := &refusing{first: first}
			began := time.Now()
			_, err := Call[jobmsg.SubmitReply](t.Context(), f, "submit.alice", jobmsg.SubmitRequest{})
			want, least, most := messages.Exhausted, 2*attemptTimeout, 2*attemptTimeout+waits.Last
			if doubtful(first) {
				want, least, most = messages.Unknown, RequestTimeout-waits.Last, RequestTimeout
			}
			if took := time.Since(began); messages.KindOf(err) != want || took < least || took > most {
				t.Errorf("the first attempt had %q late: %v after %v", first, err, took)
			}
		})
	}
}

// moody is a bus on which every request fails. It returns the errors of a list, one for each attempt, and repeats the
// last error from then on.
type moody struct {
	Bus
	errs  []error
	asked int
}

func (m *moody) Request(context.Context, string, []byte) ([]byte, error) {
	m.asked++
	return nil, m.errs[min(m.asked, len(m.errs))-1]
}

// TestCallKeepsItsDoubt makes a call that is sent several times. The site may have carried out the first attempt. A
// later attempt is refused by a server that has not passed the request on. The call must not return this refusal,
// because the request may have had an effect.
func TestCallKeepsItsDoubt(t *testing.T) {
	refusal := func(kind messages.Kind) error { return messages.Errorf(kind, "why") }
	for name, test := range map[string]struct {
		errs  []error
		want  messages.Kind
		asked int // number of attempts that must be made; 0 means until the end
	}{
		"a full disk at once":               {[]error{refusal(messages.Exhausted)}, messages.Exhausted, 1},
		"a full disk after no leader":       {[]error{refusal(messages.NotLeader), nobody("s"), refusal(messages.Exhausted)}, messages.Exhausted, 3},
		"a full disk after an unknown one":  {[]error{refusal(messages.Unknown), refusal(messages.Exhausted)}, messages.Unknown, 0},
		"a full disk after one lost":        {[]error{noAnswer(t.Context(), "s"), refusal(messages.Exhausted)}, messages.Unknown, 0},
		"a failure after an unknown one":    {[]error{refusal(messages.Unknown), refusal(messages.Internal)}, messages.Unknown, 0},
		"no leader after an unknown one":    {[]error{refusal(messages.Unknown), refusal(messages.NotLeader)}, messages.Unknown, 0},
		"the outcome after an unknown one":  {[]error{refusal(messages.Unknown), refusal(messages.Exhausted), refusal(messages.Insufficient)}, messages.Insufficient, 3},
		"a conflict after an unknown one":   {[]error{connectionLost(), refusal(messages.Conflict)}, messages.Conflict, 2},
		"no credentials after one was lost": {[]error{connectionLost(), unserved{refusal: messages.Errorf(messages.PermissionDenied, "why")}}, messages.Unknown, 2},
		"no connection after one was lost":  {[]error{connectionLost(), unserved{refusal: messages.Errorf(messages.Unavailable, "why")}}, messages.Unknown, 0},
		"nobody who could have carried out": {[]error{nobody("s"), refusal(messages.Internal)}, messages.Internal, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &moody{errs: test.errs}
			_, err := Call[jobmsg.SubmitReply](t.Context(), b, "submit.alice", jobmsg.SubmitRequest{})
			if messages.KindOf(err) != test.want {
				t.Errorf("%s: %v, want %v", name, err, test.want)
			}
			if b.asked != test.asked && (test.asked != 0 || b.asked < 5) {
				t.Errorf("%s: %d attempts, want %d (0: at least 5)", name, b.asked, test.asked)
			}
		})
	}
}

func TestCallEndsWithTheLastError(t *testing.T) {
	b := NewMemory().Connect("alice")
	ctx, cancel := context.WithCancel(context.Background())
	asked := 0
	serve(t, b, one("submit.*", submitHandler(func(messages.Name, jobmsg.SubmitRequest) (r jobmsg.SubmitReply, err error) {
		if asked++; asked == 3 {
			defer cancel()
		}
		return r, messages.Errorf(messages.NotLeader, "ask another")
	})))
	_, err := Call[jobmsg.SubmitReply](ctx, b, "submit.alice", jobmsg.SubmitRequest{})
	if k := messages.KindOf(err); k != messages.NotLeader && k != messages.Unavailable {
		t.Errorf("got %v", err)
	}
	if _, err := Call[jobmsg.SubmitReply](within(t), b, "submit.alice", map[string]int{}); messages.KindOf(err) != messages.Internal {
		t.Errorf("got %v", err)
	}
}

func TestCallFindsTheNextLeader(t *testing.T) {
	eachBus(t, func(t *testing.T, connect grid) {
		answer := submitHandler(func(messages.Name, jobmsg.SubmitRequest) (jobmsg.SubmitReply, error) {
			return jobmsg.SubmitReply{Job: 1}, nil
		})
		first := serve(t, connect(t, "$auctioneer"), one("submit.*", answer))
		b := connect(t, "alice")
		if _, err := Call[jobmsg.SubmitReply](within(t), b, "submit.alice", jobmsg.SubmitRequest{}); err != nil {
			t.Fatal(err)
		}
		if err := first.Stop(); err != nil {
			t.Fatal(err)
		}
		result := make(chan error)
		go func() {
			_, err := Call[jobmsg.SubmitReply](within(t), b, "submit.alice", jobmsg.SubmitRequest{})
			result <- err
		}()
		serve(t, connect(t, "$auctioneer"), one("submit.*", answer))
		if err := receive(t, result, 1)[0]; err != nil {
			t.Error(err)
		}
	})
}

func TestWatchEndsClean(t *testing.T) {
	var w watch
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	var ends []func()
	for range 3 {
		_, end := w.begin(ctx, "a.b")
		ends = append(ends, end)
	}
	for _, end := range ends {
		end()
	}
	if len(w.waiting) != 0 {
		t.Errorf("%d subjects are still watched", len(w.waiting))
	}
}

// An attempt of a call waits long at the service, and is then refused. The attempt must count as an attempt that was
// not carried out.
func TestWaitingInVainLeavesNoDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewMemory().Connect("alice")
		defer closeBus(t, b)
		leave := make(chan struct{})
		service := one("v.*", func(_ context.Context, r Request) ([]byte, error) {
			if r.Caller == "bob" {
				<-leave
			}
			return nil, messages.Errorf(messages.Exhausted, "full")
		})
		service.Concurrency = 1
		serve(t, b, service)
		go func() { _, _ = b.Request(t.Context(), "v.bob", nil) }()
		synctest.Wait()
		time.AfterFunc(RequestTimeout+attemptTimeout, func() { close(leave) }) // in virtual time
		ctx, cancel := context.WithTimeout(t.Context(), 3*RequestTimeout)
		defer cancel()
		began := time.Now()
		_, err := Call[messages.Empty](ctx, b, "v.alice", messages.Empty{})
		if took := time.Since(began); messages.KindOf(err) != messages.Exhausted || took > 2*RequestTimeout {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// A request may arrive while its service stops. The caller must then get an error which says that the request was not
// carried out.
func TestStoppingLeavesNoDoubt(t *testing.T) {
	s := newServer(one("v.*", echo), zap.NewNop())
	s.pool.close()
	s.endpoints[0].answer(Request{}, func(_ []byte, err *messages.Error) {
		if doubtful(err) || !err.Kind.Retriable() {
			t.Error(err)
		}
	})
}

// stalled is a context whose deadline has passed, but whose Done channel is still open, because its goroutine had no
// time to run.
type stalled struct{ context.Context }

func (stalled) Deadline() (time.Time, bool) { return time.Now().Add(time.Hour), true }
func (stalled) Err() error                  { return context.DeadlineExceeded }

// A call whose context has ended must send no more requests. It must return the error of its last request, and not an
// error of the kind Unknown.
func TestACallThatEndsLateSendsNothingMore(t *testing.T) {
	sent := 0
	_, err := (&attempts{}).retry(stalled{context.Background()}, func() ([]byte, error) {
		if sent++; sent > 1 {
			return nil, messages.Errorf(messages.Invalid, "nobody reads this")
		}
		return nil, nobody("candor.west.bank.account.alice")
	})
	if sent != 1 || !Unserved(err) {
		t.Errorf("after %d requests: %v", sent, err)
	}
}
