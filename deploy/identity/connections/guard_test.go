package connections

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// system is the system account of a server. It answers only requests to close a connection. It does not answer the
// first `deaf` requests.
type system struct {
	bus.Bus
	event  func(string, []byte)
	deaf   int
	kicked []string
}

func (s *system) Subscribe(pattern string, handle func(string, []byte)) (bus.Subscription, error) {
	if strings.HasPrefix(pattern, "$SYS.ACCOUNT.") {
		s.event = handle
	}
	return s, nil
}

func (s *system) Stop() error { return nil }

func (s *system) Publish(string, []byte) error { return nil }

func (s *system) Request(_ context.Context, subject string, content []byte) ([]byte, error) {
	if strings.HasSuffix(subject, ".KICK") {
		if s.kicked = append(s.kicked, string(content)); len(s.kicked) > s.deaf {
			return []byte("{}"), nil
		}
	}
	return nil, messages.Errorf(messages.Unavailable, "the server does not answer")
}

// This method sends events of alice's connections to a guard, which allows her one connection. The guard must close the
// connections that are listed in the argument `cut`, and no others.
func (s *system) says(t *testing.T, events []string, cut ...string) {
	synctest.Test(t, func(t *testing.T) {
		g, err := Start(Config{System: s, Bus: s, Account: "A", Role: func(string) identity.Role { return identity.User }, Most: 1, Server: "S"})
		if err != nil {
			t.Fatal(err)
		}
		claim := "h.eyJuYW1lIjoiYWxpY2UiLCJpc3MiOiJBIn0.s" // {"name":"alice","iss":"A"}
		for _, e := range events {
			what, id, _ := strings.Cut(e, " ")
			s.event("$SYS.ACCOUNT.A."+what, fmt.Appendf(nil, `{"server":{"id":"S"},"client":{"id":%s,"jwt":%q}}`, id, claim))
		}
		time.Sleep(2*grace + farewell + 5*lookEvery)
		synctest.Wait()
		if !slices.Equal(s.kicked, cut) {
			t.Errorf("the server was asked to cut %v, want %v", s.kicked, cut)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestAConnectionIsCutAtLast makes a server ignore the guard's first requests to close a connection. The guard must ask
// again until the connection is closed.
func TestAConnectionIsCutAtLast(t *testing.T) {
	two := `{"cid":2}`
	(&system{deaf: 2}).says(t, []string{"CONNECT 1", "CONNECT 2"}, two, two, two)
}

// TestTheNewestIsCut opens a second connection before the guard hears of the end of the first. The second connection
// must stay, and a later third connection must be cut.
func TestTheNewestIsCut(t *testing.T) {
	new(system).says(t, []string{"CONNECT 1", "CONNECT 2", "DISCONNECT 1", "CONNECT 3"}, `{"cid":3}`)
	new(system).says(t, []string{"CONNECT 1", "CONNECT 2", "DISCONNECT 1"})
}
