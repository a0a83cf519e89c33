package courier

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/proof"
	"github.com/candor-grid/candor/messages/wire"
)

// patience is the longest wait of these tests for something that must happen.
const patience = await.Patience

// host is the smallest replicated state of a bank: a ledger and a clearing in one log.
type host struct {
	box *mailbox.Memory

	verified atomic.Int64 // number of signatures that the clearing checked

	mu     sync.RWMutex
	ledger *ledger.Ledger
	state  *clearing.State
}

func newHost(site messages.Name) *host {
	h := &host{ledger: ledger.New()}
	h.state = clearing.New(site, h.ledger, func(key string, data, signature []byte) bool {
		h.verified.Add(1)
		return proof.Verified(key, data, signature)
	})
	h.box = mailbox.NewMemory(h)
	return h
}

func (h *host) Check([]byte) (int, error) { return 1, nil }

func (h *host) Apply(_ uint64, commands [][]byte) ([]any, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	results := make([]any, len(commands))
	for i, command := range commands {
		if command[0] == clearing.Mark {
			results[i] = h.state.Apply(command)
		} else {
			results[i] = h.ledger.Apply(command)
		}
	}
	return results, nil
}

type images struct {
	clearing *clearing.Image
	ledger   *ledger.Image
}

func (i images) WriteTo(w io.Writer) (int64, error) {
	n, err := i.clearing.WriteTo(w)
	if err != nil {
		return n, err
	}
	m, err := i.ledger.WriteTo(w)
	return n + m, err
}

func (i images) Digest(w io.Writer) error {
	_, err := i.WriteTo(w)
	return err
}

func (h *host) Capture() mailbox.Image {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return images{h.state.Capture(), h.ledger.Capture()}
}

func (h *host) Restore(io.Reader) error { return errors.New("these tests restore nothing") }

func (h *host) Weak() error { return nil }

func (h *host) Propose(ctx context.Context, c clearing.Command) (clearing.Result, error) {
	data, err := c.Encode()
	if err != nil {
		return clearing.Result{}, err
	}
	answer, err := h.box.Propose(ctx, data)
	if err != nil {
		return clearing.Result{}, messages.Errorf(messages.Unknown, "%v", err)
	}
	return answer.(clearing.Result), nil
}

func (h *host) Read(f func(*clearing.State)) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	f(h.state)
}

func (h *host) Verify(ctx context.Context) error { return h.box.Verify(ctx) }

// road is a bus that loses requests to peers with a given probability, before or after they are carried out.
type road struct {
	bus.Bus
	mu   sync.Mutex
	rand *rand.Rand
	loss float64 // probability in each direction; 1 cuts the connection
}

func (r *road) set(loss float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loss = loss
}

func (r *road) lost() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rand.Float64() < r.loss
}

func (r *road) Request(ctx context.Context, subject string, payload []byte) ([]byte, error) {
	gone := messages.Errorf(messages.Unavailable, "lost on the road")
	if r.lost() {
		return nil, gone
	}
	reply, err := r.Bus.Request(ctx, subject, payload)
	if r.lost() {
		return nil, gone
	}
	return reply, err
}

// site is one bank with its courier.
type site struct {
	*testing.T
	name    messages.Name
	keys    nkeys.KeyPair
	client  bus.Bus
	road    *road
	host    *host
	courier *Courier
	metrics *prometheus.Registry

	mu  sync.Mutex
	now messages.Time
}

func (s *site) clock() messages.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *site) pass(d messages.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

func open(t *testing.T, network *bus.Network, name messages.Name) *site {
	t.Helper()
	keys, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, name: name, keys: keys, client: network.Connect("client"), host: newHost(name), metrics: prometheus.NewRegistry(), now: 1e15}
	s.road = &road{Bus: network.Connect(messages.ServiceIdentity(name)), rand: rand.New(rand.NewPCG(1, uint64(name[0])))}
	is := func(who messages.Name) func(messages.Name) bool {
		return func(n messages.Name) bool { return n == who }
	}
	s.courier, err = New(Config{
		Site: name, Bus: s.road, Host: s.host, Signer: keys, Operator: is("ops"), Service: is("$auctioneer"),
		FirstBackoff: messages.Duration(time.Millisecond), LastBackoff: messages.Duration(4 * time.Millisecond), Tick: messages.Duration(5 * time.Millisecond),
		Metrics: s.metrics, Clock: s.clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.run()
	return s
}

func (s *site) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.courier.Run(ctx)
	}()
	for _, service := range s.courier.Services() {
		if _, err := s.road.Serve(service); err != nil {
			s.Fatal(err)
		}
	}
	s.Cleanup(func() {
		cancel()
		<-done
		s.courier.Close()
		if err := s.road.Close(); err != nil {
			s.Error(err)
		}
	})
}

// pair returns two sites that are peers. At each of them, ada has 100 credits.
func pair(t *testing.T) (east, west *site) {
	network := bus.NewMemory()
	east, west = open(t, network, "east"), open(t, network, "west")
	for _, s := range []*site{east, west} {
		other := east
		if s == east {
			other = west
		}
		public, err := other.keys.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		must[clearingmsg.PeerReply](s, "ops", clearingmsg.VerbPeer, clearingmsg.PeerRequest{Peer: other.name, Keys: []string{public}, Limit: 100 * messages.Credit})
		must[money.AccountReply](s, "ops", clearingmsg.VerbReserve, clearingmsg.ReserveRequest{Limit: 100 * messages.Credit})
		grant := ledger.Command{Verb: ledger.Grant, At: s.clock(), By: "ops", Grant: money.GrantRequest{Key: "g", Account: "ada", Amount: 100 * messages.Credit}}
		if _, err := s.host.box.Propose(context.Background(), grant.Encode()); err != nil {
			t.Fatal(err)
		}
	}
	return east, west
}

func must[Reply any](s *site, caller messages.Name, verb string, request any) Reply {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	reply, err := bus.Call[Reply](ctx, s.client, messages.Subject(s.name, messages.Bank, verb, caller), request)
	if err != nil {
		s.Fatalf("%s: %s by %s: %v", s.name, verb, caller, err)
	}
	return reply
}

func (s *site) refused(kind messages.Kind, caller messages.Name, verb string, request any) {
	s.Helper()
	payload, err := wire.Marshal(request, wire.Msgpack)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err = s.client.Request(ctx, messages.Subject(s.name, messages.Bank, verb, caller), payload)
	if err == nil || messages.KindOf(err) != kind {
		s.Errorf("%s: %s by %s: got %v, want a refusal of kind %v", s.name, verb, caller, err, kind)
	}
}

func (s *site) account(name messages.Name) money.AccountReply {
	s.Helper()
	s.host.mu.RLock()
	defer s.host.mu.RUnlock()
	a, err := s.host.ledger.Account(name)
	if err != nil {
		s.Fatal(err)
	}
	return a
}

func (s *site) settled() {
	s.Helper()
	await.Until(s, "everything is answered", func() bool {
		n := 0
		s.host.Read(func(state *clearing.State) { n = state.Outstanding() })
		return n == 0
	})
}

func (s *site) count(name, label string) float64 {
	s.Helper()
	families, err := s.metrics.Gather()
	if err != nil {
		s.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && len(m.GetLabel()) > 0 && m.GetLabel()[0].GetValue() == label {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}
