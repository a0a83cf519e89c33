package bus

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/wire"
)

// Network is a bus inside the process. If one connection sends several messages, each subscriber gets them in the order
// of sending. Several services on the same subject take turns.
type Network struct {
	mu       sync.RWMutex
	subs     index[*memorySub]
	services index[*endpoint]
	streams  map[string]*memoryStream
	buckets  map[string]*memoryBucket
	turn     atomic.Uint64
	permit   func(Access) bool
	log      *zap.Logger
}

// Access is what a connection asks to do.
type Access struct {
	Name    messages.Name // the name of the connection
	Listen  bool          // true means subscribe or serve, false means publish or request
	Subject string
}

// NewMemory returns a network without connections, on which everything is
// permitted.
func NewMemory() *Network {
	return &Network{streams: make(map[string]*memoryStream), buckets: make(map[string]*memoryBucket), log: zap.NewNop()}
}

// Permit sets the function that allows or refuses every later access. It must be safe for concurrent calls. A refused
// message is dropped, as in NATS.
func (n *Network) Permit(allow func(Access) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.permit = allow
}

// Connect returns a connection under a name.
func (n *Network) Connect(name messages.Name) Bus {
	return &memoryBus{network: n, name: name}
}

// ConnectAs returns a connection that sends proofs with its requests.
func (n *Network) ConnectAs(name messages.Name, identity *Identity) Bus {
	return &memoryBus{network: n, name: name, proves: identity}
}

type memoryBus struct {
	network *Network
	name    messages.Name
	proves  *Identity // nil means that the connection sends no proofs
	subscriptions
}

func (b *memoryBus) identity() *Identity { return b.proves }

func (b *memoryBus) allowed(listen bool, subject string) error {
	if b.isClosed() {
		return errClosed()
	}
	b.network.mu.RLock()
	permit := b.network.permit
	b.network.mu.RUnlock()
	if permit == nil || permit(Access{Name: b.name, Listen: listen, Subject: subject}) {
		return nil
	}
	if listen {
		return deniedListen(subject)
	}
	return deniedSend(subject)
}

// Publish implements [Bus].
func (b *memoryBus) Publish(subject string, payload []byte) error {
	if err := checkSubject(subject); err != nil {
		return err
	}
	err := b.allowed(false, subject)
	if messages.KindOf(err) == messages.PermissionDenied {
		return nil
	}
	if err == nil {
		b.network.publish(subject, "", bytes.Clone(payload))
	}
	return err
}

// publish passes a message to every stream and subscriber of its subject, and returns the number of subscribers.
func (n *Network) publish(subject, id string, payload []byte) int {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, s := range n.streams {
		s.keep(subject, id, payload)
	}
	listeners := n.subs.find(subject, nil)
	for _, s := range listeners {
		s.push(memoryMessage{subject: subject, payload: payload})
	}
	return len(listeners)
}

// Subscribe implements [Bus].
func (b *memoryBus) Subscribe(pattern string, handle func(string, []byte)) (Subscription, error) {
	if err := checkPattern(pattern); err != nil {
		return nil, err
	}
	if err := b.allowed(true, pattern); err != nil {
		return nil, err
	}
	s := newMemorySub(maxPending, func(m memoryMessage) { handle(m.subject, m.payload) })
	n := b.network
	n.mu.Lock()
	n.subs.add(pattern, s)
	n.mu.Unlock()
	return s.open(b, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.subs.remove(pattern, s)
	})
}

// Request implements [Bus].
func (b *memoryBus) Request(ctx context.Context, subject string, payload []byte) ([]byte, error) {
	if err := checkSubject(subject); err != nil {
		return nil, err
	}
	if err := b.allowed(false, subject); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, noAnswer(ctx, subject)
	}
	proof, err := b.proves.sign(subject, payload)
	if err != nil {
		return nil, err
	}
	payload = bytes.Clone(payload)
	answers := make(chan memoryReply, 1)
	served := b.network.request(Request{Subject: subject, Caller: messages.Caller(subject), Payload: payload,
		Format: wire.Detect(payload, ""), Proof: proof}, func(data []byte, err *messages.Error) {
		answers <- memoryReply{bytes.Clone(data), err}
	})
	if listeners := b.network.publish(subject, "", payload); !served && listeners == 0 {
		return nil, nobody(subject)
	}
	select {
	case r := <-answers:
		if r.err != nil {
			b.proves.heard(subject, r.err)
			return nil, r.err
		}
		return r.data, nil
	case <-ctx.Done():
		return nil, noAnswer(ctx, subject)
	}
}

type memoryReply struct {
	data []byte
	err  *messages.Error
}

// request passes a request to one of the services on its subject. The services take turns. If the subject has no
// service, request returns false.
func (n *Network) request(r Request, respond func([]byte, *messages.Error)) bool {
	n.mu.RLock()
	listeners := n.services.find(r.Subject, nil)
	n.mu.RUnlock()
	if len(listeners) == 0 {
		return false
	}
	e := listeners[n.turn.Add(1)%uint64(len(listeners))]
	e.answer(r, respond)
	return true
}

// Serve implements [Bus].
func (b *memoryBus) Serve(s Service) (Subscription, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	for _, e := range s.Endpoints {
		if err := b.allowed(true, e.Subject); err != nil {
			return nil, err
		}
	}
	service := &memoryService{bus: b, server: newServer(s, b.network.log)}
	n := b.network
	n.mu.Lock()
	for _, e := range service.server.endpoints {
		n.services.add(e.Subject, e)
	}
	n.mu.Unlock()
	return b.register(service)
}

// Close implements [Bus].
func (b *memoryBus) Close() error {
	_, err := b.stop()
	return err
}

type memoryService struct {
	bus    *memoryBus
	server *server
}

// Stop implements [Subscription].
func (s *memoryService) Stop() error {
	n := s.bus.network
	n.mu.Lock()
	for _, e := range s.server.endpoints {
		n.services.remove(e.Subject, e)
	}
	n.mu.Unlock()
	s.bus.forget(s)
	return s.server.stop()
}
