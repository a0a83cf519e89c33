package delay

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

const dialTimeout = 5 * time.Second

// Link is a running proxy. Its methods may be called concurrently.
type Link struct {
	listener net.Listener
	target   string
	gate     *gate

	ctx    context.Context
	cancel context.CancelFunc
	under  sync.WaitGroup // all goroutines of the link
}

// Listen starts a link from an address to a target, both host:port. Each direction has the delay oneWay.
func Listen(address, target string, oneWay time.Duration) (*Link, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	l := &Link{listener: listener, target: target, gate: newGate(oneWay)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.under.Go(l.accept)
	return l, nil
}

// Address returns the address on which the link listens.
func (l *Link) Address() string { return l.listener.Addr().String() }

// Cut makes the link carry nothing until [Link.Heal]. A second call changes nothing.
func (l *Link) Cut() { l.gate.cut() }

// Heal makes the link carry data again, from where it was cut.
func (l *Link) Heal() { l.gate.heal() }

// Close ends the link and every connection through it.
func (l *Link) Close() error {
	l.cancel()
	err := l.listener.Close()
	l.under.Wait()
	return err
}

func (l *Link) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.under.Go(func() { l.join(near) })
	}
}

// join forwards data between a connection and the target, in both directions, until either end or the link closes.
func (l *Link) join(near net.Conn) {
	defer near.Close()
	if l.gate.wait(l.ctx, time.Now()) != nil {
		return
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	far, err := dialer.DialContext(l.ctx, "tcp", l.target)
	if err != nil {
		return
	}
	defer far.Close()
	stop := context.AfterFunc(l.ctx, func() { _ = errors.Join(near.Close(), far.Close()) })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { forward(l.ctx, far, near, l.gate) })
	both.Go(func() { forward(l.ctx, near, far, l.gate) })
	both.Wait()
}
