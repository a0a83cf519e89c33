package bus

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/deploy/netlab/delay"
	"github.com/candor-grid/candor/messages"
)

// TestAttemptsFollowAnswerTimes: an attempt waits for so long as answers take, within
// bounds; the answers of one verb say nothing about another.
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

// TestCutConnectionIsGivenUp: a client whose server vanished unseen is answered by way of
// another before NATS itself notices.
func TestCutConnectionIsGivenUp(t *testing.T) {
	s := startServer(t, nil)
	serve(t, natsGrid(s, false)(t, "$auctioneer"), one("echo.*", echo))
	var urls []string
	links := map[string]*delay.Link{}
	for range 2 {
		l, err := delay.Listen("127.0.0.1:0", s.Addr().String(), 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		u := fmt.Sprintf("nats://alice:pw@%s", l.Address())
		urls, links[l.Address()] = append(urls, u), l
	}
	b := connected(t, Config{URL: strings.Join(urls, ","), Name: "alice"})
	links[b.(*natsBus).conn.ConnectedAddr()].Cut()
	began := time.Now()
	if err := CallInto(within(t), b, "echo.alice", messages.Empty{}, new(any)); messages.KindOf(err) == messages.Unavailable {
		t.Fatal(err)
	}
	if took := time.Since(began); took >= maxPings*pingInterval {
		t.Errorf("answered after %v", took)
	}
}
