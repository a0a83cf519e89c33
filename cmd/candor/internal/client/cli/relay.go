package cli

import (
	"context"
	"encoding/json"
	"net"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// Relayed is a user's request that a door (a local service) sends to the site. On a new connection, the door first
// sends the user a [Loan]. After that, the connection carries requests of the user and answers of the door, one after
// another.
type Relayed struct {
	Subject string            `json:"subject"`
	Payload []byte            `json:"payload"`
	Within  messages.Duration `json:"within"` // how long the command waits for the answer
}

// RelayAnswer is the door's answer to a Relayed request. If Direct is true, the door did not send the request to the
// site: the command must connect to the site by itself.
type RelayAnswer struct {
	Reply  []byte          `json:"reply,omitempty"`
	Error  *messages.Error `json:"error,omitempty"`
	Direct bool            `json:"direct,omitempty"`
}

// These are limits of one connection to a door: the number of requests, the bytes of a request as JSON, and the time
// without a request. A command that needs more connects to the site directly.
const (
	RelayRequests = 16
	RelayBytes    = 512 << 10
	RelayRest     = 5 * time.Second
)

// relayBus sends the first requests of a command through a door (a local socket that relays requests). For all later
// requests, it connects to the site itself.
type relayBus struct {
	connect func() (bus.Bus, error)

	relaying sync.Mutex // held while the door answers a request
	door     *relay     // nil means the door takes no more requests

	connecting sync.Mutex
	direct     bus.Bus // nil means there is no connection yet
}

// relay is an open connection to a door, over which a command sends requests to the site.
type relay struct {
	conn    net.Conn
	answers *json.Decoder
	left    int       // number of requests that the door still takes
	used    time.Time // when the door last answered
}

// Request implements [bus.Bus].
func (b *relayBus) Request(ctx context.Context, subject string, payload []byte) ([]byte, error) {
	if a := b.ask(ctx, subject, payload); !a.Direct && a.Error != nil {
		return nil, a.Error
	} else if !a.Direct {
		return a.Reply, nil
	}
	d, err := b.open()
	if err != nil {
		return nil, err
	}
	return d.Request(ctx, subject, payload)
}

// A door is a service on this machine that sends users' requests to the site. ask sends a request through the door. If
// the door does not answer, ask does not use it again, and the caller sends the next request directly to the site.
func (b *relayBus) ask(ctx context.Context, subject string, payload []byte) RelayAnswer {
	if !b.relaying.TryLock() {
		return RelayAnswer{Direct: true} // another request of this command has no answer yet
	}
	defer b.relaying.Unlock()
	r := b.door
	if r == nil {
		return RelayAnswer{Direct: true}
	}
	if r.left == 0 || len(payload) > RelayBytes/2 || time.Since(r.used) > RelayRest/2 {
		b.leave()
		return RelayAnswer{Direct: true}
	}
	defer context.AfterFunc(ctx, func() { _ = r.conn.SetDeadline(time.Unix(1, 0)) })()
	request := Relayed{Subject: subject, Payload: payload, Within: messages.Duration(bus.RequestTimeout)}
	if end, bounded := ctx.Deadline(); bounded {
		request.Within = messages.Duration(time.Until(end))
	}
	_ = r.conn.SetDeadline(time.Now().Add(request.Within.Std()))
	if err := json.NewEncoder(r.conn).Encode(&request); err != nil { // the door did not get the whole request, and sends nothing
		b.leave()
		return RelayAnswer{Direct: true}
	}
	var a RelayAnswer
	if err := r.answers.Decode(&a); err != nil {
		b.leave()
		return RelayAnswer{Error: messages.Errorf(messages.Unknown, "the door of this machine gave no answer (%v); a request that changes something may have been carried out: ask again with the same key", err)}
	}
	if r.left, r.used = r.left-1, time.Now(); a.Direct || a.Error != nil && a.Error.Kind.Retriable() {
		b.leave()
	}
	return a
}

func (b *relayBus) leave() {
	_ = b.door.conn.Close()
	b.door = nil
}

func (b *relayBus) open() (bus.Bus, error) {
	b.connecting.Lock()
	defer b.connecting.Unlock()
	if b.direct != nil {
		return b.direct, nil
	}
	d, err := b.connect()
	if err == nil {
		b.direct = d
	}
	return d, err
}

// Publish implements [bus.Bus].
func (b *relayBus) Publish(subject string, payload []byte) error {
	d, err := b.open()
	if err != nil {
		return err
	}
	return d.Publish(subject, payload)
}

// Subscribe implements [bus.Bus].
func (b *relayBus) Subscribe(subject string, handle func(string, []byte)) (bus.Subscription, error) {
	d, err := b.open()
	if err != nil {
		return nil, err
	}
	return d.Subscribe(subject, handle)
}

// Serve implements [bus.Bus].
func (b *relayBus) Serve(s bus.Service) (bus.Subscription, error) {
	d, err := b.open()
	if err != nil {
		return nil, err
	}
	return d.Serve(s)
}

// Stream implements [bus.Bus].
func (b *relayBus) Stream(ctx context.Context, name string, subjects []string) (bus.Stream, error) {
	d, err := b.open()
	if err != nil {
		return nil, err
	}
	return d.Stream(ctx, name, subjects)
}

// Objects implements [bus.Bus].
func (b *relayBus) Objects(ctx context.Context, bucket string, c bus.BucketConfig) (bus.Objects, error) {
	d, err := b.open()
	if err != nil {
		return nil, err
	}
	return d.Objects(ctx, bucket, c)
}

// Kept implements [bus.Bus].
func (b *relayBus) Kept(ctx context.Context, bucket string) (bus.Objects, []string, error) {
	d, err := b.open()
	if err != nil {
		return nil, nil, err
	}
	return d.Kept(ctx, bucket)
}

// Close implements [bus.Bus].
func (b *relayBus) Close() error {
	b.relaying.Lock()
	if b.door != nil {
		b.leave()
	}
	b.relaying.Unlock()
	b.connecting.Lock()
	defer b.connecting.Unlock()
	if b.direct == nil {
		return nil
	}
	return b.direct.Close()
}
