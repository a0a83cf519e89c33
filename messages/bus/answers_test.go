package bus

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
)

// A client sends a request again if no answer comes. How long it waits for the answer to one attempt depends on how
// long recent answers to the same verb took. The wait has a lower and an upper bound.
func TestAttemptsFollowAnswerTimes(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		took []time.Duration
		want time.Duration
	}{
		{nil, time.Second},
		{[]time.Duration{5 * ms}, 500 * ms},
		{[]time.Duration{300 * ms}, 900 * ms},
		{[]time.Duration{300 * ms, 300 * ms}, 750 * ms},
		{[]time.Duration{300 * ms, 700 * ms}, 1200 * ms},
		{[]time.Duration{5 * time.Second}, 2 * time.Second},
	} {
		a := &answers{}
		for _, took := range c.took {
			a.note("candor.west.bank.pay.alice", took)
		}
		if got := a.attempt("candor.west.bank.pay.bob"); got != c.want {
			t.Errorf("after answers of %v an attempt waits for %v, want %v", c.took, got, c.want)
		}
		if got := a.attempt("candor.west.bank.balance.alice"); got != firstAttempt {
			t.Errorf("another verb waits for %v", got)
		}
	}
}

// relay passes bytes on to a server until a test sets `cut` to true. Then it drops all bytes.
func relay(t *testing.T, target string) (address string, cut *atomic.Bool) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	cut = new(atomic.Bool)
	pass := func(to, from net.Conn) {
		defer to.Close()
		for b := make([]byte, 4096); ; {
			n, err := from.Read(b)
			if err != nil {
				return
			}
			if !cut.Load() {
				_, _ = to.Write(b[:n])
			}
		}
	}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil {
				_ = near.Close()
				continue
			}
			go pass(far, near)
			go pass(near, far)
		}
	}()
	return l.Addr().String(), cut
}

// TestCutConnectionIsGivenUp cuts a client off from its server without closing the connection. The client must get its
// answer through another server before NATS notices the cut.
func TestCutConnectionIsGivenUp(t *testing.T) {
	s := startServer(t, nil)
	serve(t, natsGrid(s, false)(t, "$auctioneer"), one("echo.*", echo))
	var urls []string
	links := map[string]*atomic.Bool{} // whether the link is cut, by address
	for range 2 {
		address, cut := relay(t, s.Addr().String())
		urls, links[address] = append(urls, "nats://alice:pw@"+address), cut
	}
	b := connected(t, Config{URL: strings.Join(urls, ","), Name: "alice"})
	links[b.(*natsBus).conn.ConnectedAddr()].Store(true)
	began := time.Now()
	if err := CallInto(within(t), b, "echo.alice", messages.Empty{}, new(any)); messages.KindOf(err) == messages.Unavailable {
		t.Fatal(err)
	}
	if took := time.Since(began); took >= maxPings*pingInterval {
		t.Errorf("answered after %v", took)
	}
}
