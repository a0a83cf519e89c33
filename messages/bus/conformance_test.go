package bus

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/candor-grid/candor/messages"
)

const patience = time.Minute

// grid connects accounts to one bus. The account "eve" may not send to subjects under "secret.", and may not listen
// to subjects under "private.".
type grid func(t *testing.T, name messages.Name) Bus

func eachBus(t *testing.T, test func(t *testing.T, connect grid)) {
	t.Run("memory", func(t *testing.T) { test(t, memoryGrid()) })
	t.Run("nats", func(t *testing.T) { test(t, natsGrid(startServer(t, nil), false)) })
	t.Run("nats in process", func(t *testing.T) { test(t, natsGrid(startServer(t, nil), true)) })
}

func memoryGrid() grid {
	n := NewMemory()
	n.Permit(func(a Access) bool {
		return a.Name != "eve" || a.Listen && !strings.HasPrefix(a.Subject, "private.") || !a.Listen && !strings.HasPrefix(a.Subject, "secret.")
	})
	return func(t *testing.T, name messages.Name) Bus {
		b := n.Connect(name)
		t.Cleanup(func() { closeBus(t, b) })
		return b
	}
}

func natsGrid(s *natsserver.Server, inProcess bool) grid {
	return func(t *testing.T, name messages.Name) Bus {
		c := Config{URL: userURL(s, name), Name: name}
		if inProcess {
			c.InProcess = s
		}
		b, err := Connect(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeBus(t, b) })
		return b
	}
}

func closeBus(t *testing.T, b Bus) {
	if err := b.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func userURL(s *natsserver.Server, name messages.Name) string {
	u, _ := url.Parse(s.ClientURL())
	u.User = url.UserPassword(name, "pw")
	return u.String()
}

var accounts = []messages.Name{"alice", "bob", "eve", "$auctioneer"}

func startServer(t testing.TB, change func(*natsserver.Options)) *natsserver.Server {
	t.Helper()
	o := &natsserver.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(),
		AuthTimeout: 30} // in seconds, so long that a busy machine is fast enough
	for _, name := range accounts {
		inbox := messages.InboxPrefix(name) + ".>"
		p := &natsserver.Permissions{Publish: &natsserver.SubjectPermission{}, Subscribe: &natsserver.SubjectPermission{}}
		if name == "eve" {
			p.Publish.Deny = []string{"secret.>"}
			p.Subscribe.Allow = []string{inbox, "open.>", "$SRV.>"}
		}
		o.Users = append(o.Users, &natsserver.User{Username: name, Password: "pw", Permissions: p})
	}
	if change != nil {
		change(o)
	}
	s, err := natsserver.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the NATS server does not come up")
	}
	return s
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func wantKind(t *testing.T, err error, kind messages.Kind) {
	t.Helper()
	if err == nil || messages.KindOf(err) != kind {
		t.Fatalf("error %v, want kind %v", err, kind)
	}
}

func receive[T any](t *testing.T, c <-chan T, n int) (got []T) {
	t.Helper()
	timeout := time.After(patience)
	for range n {
		select {
		case v := <-c:
			got = append(got, v)
		case <-timeout:
			t.Fatalf("%d of %d came", len(got), n)
		}
	}
	return got
}

func echo(_ context.Context, r Request) ([]byte, error) {
	return []byte(fmt.Sprintf("%s|%s|%v|%s", r.Subject, r.Caller, r.Format, r.Payload)), nil
}

func serve(t *testing.T, b Bus, s Service) Subscription {
	t.Helper()
	s.Name, s.Version = "test", "1.0.0"
	sub, err := b.Serve(s)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

func one(subject string, h Handler) Service {
	return Service{Endpoints: []Endpoint{{Name: "verb", Subject: subject, Handle: h}}}
}

func TestSubscribersGetMessagesInOrder(t *testing.T) {
	eachBus(t, func(t *testing.T, connect grid) {
		const n = 1000
		got := make(chan string, n)
		if _, err := connect(t, "alice").Subscribe("a.*.c", func(subject string, payload []byte) {
			got <- subject + " " + string(payload)
		}); err != nil {
			t.Fatal(err)
		}
		sender := connect(t, "bob")
		var want []string
		for i := range n {
			subject := fmt.Sprintf("a.%d.c", i%7)
			want = append(want, fmt.Sprintf("%s %d", subject, i))
			for _, s := range []string{subject, "a.c", "a.b.c.d", "x.b.c"} {
				if err := sender.Publish(s, fmt.Append(nil, i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !slices.Equal(receive(t, got, n), want) {
			t.Error("not in the order sent, or others among them")
		}
	})
}

func TestSubscriberMayKeepPayloadAndSenderReuseIt(t *testing.T) {
	eachBus(t, func(t *testing.T, connect grid) {
		got := make(chan []byte, 2)
		b := connect(t, "alice")
		if _, err := b.Subscribe("a.>", func(_ string, payload []byte) { got <- payload }); err != nil {
			t.Fatal(err)
		}
		payload := []byte("first")
		for _, s := range []string{"first", "again"} {
			copy(payload, s)
			if err := b.Publish("a.b", payload); err != nil {
				t.Fatal(err)
			}
		}
		if kept := receive(t, got, 2); string(kept[0]) != "first" || string(kept[1]) != "again" {
			t.Errorf("got %q", kept)
		}
	})
}

func TestStopEndsDelivery(t *testing.T) {
	eachBus(t, func(t *testing.T, connect grid) {
		b := connect(t, "alice")
		got, still := make(chan string, 10), make(chan string, 10)
		sub, err := b.Subscribe("a.b", func(_ string, p []byte) { got <- string(p) })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Subscribe("a.b", func(_ string, p []byte) { still <- string(p) }); err != nil {
			t.Fatal(err)
		}
		b.Publish("a.b", []byte("1"))
		receive(t, got, 1)
		if err := sub.Stop(); err != nil {
			t.Fatal(err)
		}
		b.Publish("a.b", []byte("2"))
		receive(t, still, 2) // a message that went to the wrong handler would also have arrived by now
		if len(got) != 0 {
			t.Errorf("got %q after Stop", <-got)
		}
	})
}

func TestStopWaitsForHandler(t *testing.T) {
	eachBus(t, func(t *testing.T, connect grid) {
		b := connect(t, "alice")
		entered, leave := make(chan bool), make(chan bool)
		ended := false
		sub, err := b.Subscribe("a.b", func(string, []byte) {
			entered <- true
			<-leave
			ended = true
		})
		if err != nil {
			t.Fatal(err)
		}
		b.Publish("a.b", nil)
		receive(t, entered, 1)
		stopped := make(chan error)
		go func() { stopped <- sub.Stop() }()
		leave <- true
		if err := receive(t, stopped, 1)[0]; err != nil || !ended {
			t.Errorf("Stop returned %v, handler ended: %v", err, ended)
		}
	})
}

func TestRequestReachesServiceAndReplyComesBack(t *testing.T) {
	for _, discoverable := range []bool{false, true} {
		eachBus(t, func(t *testing.T, connect grid) {
			s := one("candor.s.auctioneer.verb.*", echo)
			s.Discoverable = discoverable
			serve(t, connect(t, "$auctioneer"), s)
			b := connect(t, "alice")
			for payload, want := range map[string]string{"\x90": "0", "{}": "1", "": "1"} {
				got, err := b.Request(within(t), "candor.s.auctioneer.verb.alice", []byte(payload))
				if want := "candor.s.auctioneer.verb.alice|alice|" + want + "|" + payload; err != nil || string(got) != want {
					t.Errorf("got %q, %v; want %q", got, err, want)
				}
			}
		})
	}
}

func TestReplicasShareRequests(t *testing.T) {
	eachBus(t, func(t *testing.T, connect grid) {
		var mu sync.Mutex
		handled := map[int]int{}
		for replica := range 3 {
			serve(t, connect(t, "$auctioneer"), one("v.*", func(_ context.Context, r Request) ([]byte, error) {
				mu.Lock()
				defer mu.Unlock()
				handled[replica]++
				return nil, nil
			}))
		}
		b := connect(t, "alice")
		const n = 300
		for range n {
			if _, err := b.Request(within(t), "v.alice", nil); err != nil {
				t.Fatal(err)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if handled[0]+handled[1]+handled[2] != n || min(handled[0], handled[1], handled[2]) == 0 {
			t.Errorf("handled %v of %d", handled, n)
		}
	})
}

func TestErrorsCrossTheBus(t *testing.T) {
	eachBus(t, func(t *testing.T, connect grid) {
		refusal := &messages.Error{Kind: messages.Insufficient, Op: "submit", Message: "budget 5 is above\nthe balance \"2\" – «ask»"}
		serve(t, connect(t, "$auctioneer"), Service{Endpoints: []Endpoint{
			{Name: "typed", Subject: "typed.*", Handle: func(context.Context, Request) ([]byte, error) { return nil, fmt.Errorf("wrapped: %w", refusal) }},
			{Name: "plain", Subject: "plain.*", Handle: func(context.Context, Request) ([]byte, error) { return nil, fmt.Errorf("no disk") }},
			{Name: "panics", Subject: "panics.*", Handle: func(context.Context, Request) ([]byte, error) { panic("defect") }},
		}})
		b := connect(t, "alice")
		for _, payload := range []string{"\x90", "{}"} {
			_, err := b.Request(within(t), "typed.alice", []byte(payload))
			if e, ok := err.(*messages.Error); !ok || *e != *refusal {
				t.Errorf("got %v, want %v", err, refusal)
			}
		}
		_, err := b.Request(within(t), "plain.alice", nil)
		if e, ok := err.(*messages.Error); !ok || e.Kind != messages.Internal {
			t.Errorf("got %v", err)
		} else if e.Message != "no disk" || e.Op != "plain" {
			t.Errorf("got %q of %q", e.Message, e.Op)
		}
		for range 2 {
			_, err = b.Request(within(t), "panics.alice", nil)
			wantKind(t, err, messages.Internal)
		}
	})
}

func TestNobodyServes(t *testing.T) {
	eachBus(t, func(t *testing.T, connect grid) {
		b := connect(t, "alice")
		_, err := b.Request(within(t), "nobody.alice", nil)
		wantKind(t, err, messages.Unavailable)
		sub := serve(t, b, one("v.*", echo))
		if _, err := b.Request(within(t), "v.alice", nil); err != nil {
			t.Fatal(err)
		}
		if err := sub.Stop(); err != nil {
			t.Fatal(err)
		}
		_, err = b.Request(within(t), "v.alice", nil)
		wantKind(t, err, messages.Unavailable)
	})
}

func TestRequestEndsWithItsContext(t *testing.T) {
	eachBus(t, func(t *testing.T, connect grid) {
		entered, leave := make(chan bool, 1), make(chan bool)
		serve(t, connect(t, "$auctioneer"), one("v.*", func(context.Context, Request) ([]byte, error) {
			entered <- true
			<-leave
			return nil, nil
		}))
		defer close(leave)
		b := connect(t, "alice")
		ctx, cancel := context.WithCancel(within(t))
		go func() { <-entered; cancel() }()
		_, err := b.Request(ctx, "v.alice", nil)
		wantKind(t, err, messages.Unavailable)
		_, err = b.Request(ctx, "v.alice", nil)
		wantKind(t, err, messages.Unavailable)
	})
}

func TestFullServiceAnswersExhausted(t *testing.T) {
	eachBus(t, func(t *testing.T, connect grid) {
		leave := make(chan bool)
		var entered sync.WaitGroup
		entered.Add(2)
		var once [2]sync.Once
		s := one("v.*", func(_ context.Context, r Request) ([]byte, error) {
			once[r.Payload[0]&1].Do(entered.Done)
			<-leave
			return r.Payload, nil
		})
		s.Concurrency = 3 // this permits two requests for one caller
		serve(t, connect(t, "$auctioneer"), s)
		b := connect(t, "alice")
		const fit = 2 + 3*queuePerWorker
		results := make(chan error, 2*fit)
		send := func(i int) {
			_, err := b.Request(within(t), "v.alice", []byte{0x90 | byte(i&1)})
			results <- err
		}
		go send(0)
		go send(1)
		entered.Wait()
		for i := 2; i < 2*fit; i++ {
			go send(i)
		}
		for _, err := range receive(t, results, fit) { // these requests were refused because the queue was full
			wantKind(t, err, messages.Exhausted)
		}
		close(leave)
		for _, err := range receive(t, results, fit) {
			if err != nil {
				t.Errorf("a request that was let in: %v", err)
			}
		}
	})
}

func TestPermissions(t *testing.T) {
	eachBus(t, func(t *testing.T, connect grid) {
		alice, eve := connect(t, "alice"), connect(t, "eve")
		secrets, open := make(chan string, 9), make(chan string, 9)
		for subject, c := range map[string]chan string{"secret.*": secrets, "open.*": open} {
			if _, err := alice.Subscribe(subject, func(_ string, p []byte) { c <- string(p) }); err != nil {
				t.Fatal(err)
			}
		}
		serve(t, alice, one("secret.verb.*", echo))

		_, err := eve.Request(within(t), "secret.verb.alice", nil)
		wantKind(t, err, messages.PermissionDenied)
		_, err = Call[messages.Empty](within(t), eve, "secret.verb.alice", messages.Empty{})
		wantKind(t, err, messages.PermissionDenied)
		_, err = eve.Subscribe("private.x", func(string, []byte) {})
		wantKind(t, err, messages.PermissionDenied)
		_, err = eve.Serve(Service{Name: "e", Version: "1.0.0", Endpoints: one("private.x", echo).Endpoints})
		wantKind(t, err, messages.PermissionDenied)

		eve.Publish("secret.x", []byte("forged"))
		eve.Publish("open.x", []byte("fine"))
		if got := receive(t, open, 1); got[0] != "fine" || len(secrets) != 0 {
			t.Errorf("got %q, and %d secrets", got, len(secrets))
		}
		if _, err := alice.Request(within(t), "secret.verb.alice", nil); err != nil {
			t.Errorf("alice: %v", err)
		}
	})
}

func TestStreamKeepsOrderAndDropsRepeats(t *testing.T) {
	eachBus(t, func(t *testing.T, connect grid) {
		writer := connect(t, "$auctioneer")
		w, err := writer.Stream(within(t), "OBS", []string{"obs.>"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			for range 2 { // the second one is a repetition
				if err := w.Append(within(t), "obs.s", fmt.Sprint("id", i), fmt.Append(nil, i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		wantKind(t, w.Append(within(t), "elsewhere.s", "id", nil), messages.Unavailable)

		r, err := connect(t, "bob").Stream(within(t), "OBS", []string{"obs.>"})
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan string, 20)
		sub, err := r.Consume(within(t), 3, func(seq uint64, subject string, payload []byte) {
			got <- fmt.Sprintf("%d %s %s", seq, subject, payload)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Append(within(t), "obs.s", "", []byte("live")); err != nil {
			t.Fatal(err)
		}
		want := []string{"4 obs.s 3", "5 obs.s 4", "6 obs.s 5", "7 obs.s 6", "8 obs.s 7", "9 obs.s 8", "10 obs.s 9", "11 obs.s live"}
		if g := receive(t, got, len(want)); !slices.Equal(g, want) {
			t.Errorf("got %q", g)
		}
		if err := sub.Stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseEndsEverything(t *testing.T) {
	eachBus(t, func(t *testing.T, connect grid) {
		b, other := connect(t, "bob"), connect(t, "alice")
		serve(t, b, one("v.*", echo))
		if _, err := b.Subscribe("a.b", func(string, []byte) {}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
		_, err := other.Request(within(t), "v.alice", nil)
		wantKind(t, err, messages.Unavailable)
		wantKind(t, b.Publish("a.b", nil), messages.Unavailable)
		_, err = b.Request(within(t), "v.alice", nil)
		wantKind(t, err, messages.Unavailable)
		_, err = b.Subscribe("a.b", func(string, []byte) {})
		wantKind(t, err, messages.Unavailable)
		_, err = b.Serve(Service{Name: "e", Version: "1.0.0", Endpoints: one("v.*", echo).Endpoints})
		wantKind(t, err, messages.Unavailable)
	})
}

func TestBadSubjectsAndServicesAreRefused(t *testing.T) {
	eachBus(t, func(t *testing.T, connect grid) {
		b := connect(t, "alice")
		for _, subject := range []string{"", ".", "a.", ".a", "a..b", "a b", "a.\n", "a.*", "a.>", "a.b*", string(make([]byte, 2000))} {
			wantKind(t, b.Publish(subject, nil), messages.Invalid)
			_, err := b.Request(within(t), subject, nil)
			wantKind(t, err, messages.Invalid)
		}
		for _, pattern := range []string{"", "a..b", "a.>.b", "a.b*", "a b"} {
			_, err := b.Subscribe(pattern, func(string, []byte) {})
			wantKind(t, err, messages.Invalid)
			_, err = b.Serve(one(pattern, echo))
			wantKind(t, err, messages.Invalid)
		}
		for _, s := range []Service{{}, {Name: "x"}, {Name: "x", Concurrency: -1, Endpoints: one("a", echo).Endpoints}, {Name: "x", Endpoints: []Endpoint{{Name: "v", Subject: "a"}}}} {
			_, err := b.Serve(s)
			wantKind(t, err, messages.Invalid)
		}
		_, err := b.Stream(within(t), "a.b", []string{"x"})
		wantKind(t, err, messages.Invalid)
	})
}
