package bus

import (
	"context"
	"crypto/rand"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
)

// proxied holds requests whose answers do not come to this connection's own inbox: requests that a service sends in the
// names of users, and requests to nodes. One subscription receives all answers, because a user's connection may have few
// subscriptions. The subjects of the answers contain a token of this connection.
type proxied struct {
	mu      sync.Mutex
	token   string // "" means that no request was made yet
	last    uint64
	waiting map[string]chan *nats.Msg // by reply subject: the channel for the answer
}

// If nobody serves a subject, the server answers a request with the value noResponders in the header statusHeader.
const (
	statusHeader = "Status"
	noResponders = "503"
)

// ask sends a request and waits for the answer, at a subject that begins with `prefix`. The pattern `prefixes` matches
// the prefixes of all requests.
func (p *proxied) ask(ctx context.Context, conn *nats.Conn, out *nats.Msg, prefix, prefixes string) (*nats.Msg, error) {
	answer := make(chan *nats.Msg, 1)
	if err := p.expect(conn, out, prefix, prefixes, answer); err != nil {
		return nil, err
	}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.waiting, out.Reply)
	}()
	if err := conn.PublishMsg(out); err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		if len(m.Data) == 0 && m.Header.Get(statusHeader) == noResponders {
			return nil, nats.ErrNoResponders
		}
		return m, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// expect gives a request a reply subject that begins with the given prefix. The reply then goes to the channel
// `answer`.
func (p *proxied) expect(conn *nats.Conn, out *nats.Msg, prefix, prefixes string, answer chan *nats.Msg) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.token == "" {
		token := rand.Text()
		if _, err := conn.Subscribe(prefixes+"."+token+".*", p.hear); err != nil {
			return err
		}
		p.token, p.waiting = token, map[string]chan *nats.Msg{}
	}
	p.last++
	out.Reply = prefix + "." + p.token + "." + strconv.FormatUint(p.last, 36)
	p.waiting[out.Reply] = answer
	return nil
}

func (p *proxied) hear(m *nats.Msg) {
	p.mu.Lock()
	answer := p.waiting[m.Subject]
	delete(p.waiting, m.Subject)
	p.mu.Unlock()
	if answer != nil {
		answer <- m
	}
}
