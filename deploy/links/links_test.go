package links

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
)

type leafs []*server.LeafInfo

func (l leafs) Leafz(*server.LeafzOptions) (*server.Leafz, error) {
	if l == nil {
		return nil, errors.New("the server is down")
	}
	return &server.Leafz{Leafs: l}, nil
}

func host(t *testing.T, net *bus.Network, name messages.Name, l leafs) *Links {
	t.Helper()
	b := net.Connect(messages.ServiceIdentity(messages.Links))
	t.Cleanup(func() { _ = b.Close() })
	started, err := Start(Config{
		Site: "west", Bus: b, Server: l, Host: name, Hosts: []messages.Name{"rack1", "rack2", "rack3"},
		Peers: func() map[string]messages.Name { return map[string]messages.Name{"AEAST": "east", "ANORTH": "north"} }, Operators: []messages.Name{"operator"}, Within: 200 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = started.Close() })
	return started
}

func bank(t *testing.T, net *bus.Network, site messages.Name, answer error) {
	t.Helper()
	b := net.Connect(messages.ServiceIdentity(messages.Bank))
	t.Cleanup(func() { _ = b.Close() })
	handle := bus.Handle(clearing.VerbPosition, func(_ context.Context, caller messages.Name, _ clearing.CycleRequest) (clearing.SignedPosition, error) {
		if caller != "$west" {
			t.Errorf("the peer is asked as %q", caller)
		}
		<-time.After(time.Millisecond) // virtual time
		return clearing.SignedPosition{}, answer
	})
	subject := messages.Subject(site, messages.Bank, clearing.VerbPosition, "*")
	if _, err := b.Serve(bus.Service{Name: "bank", Version: "1.0.0", Endpoints: []bus.Endpoint{{Name: clearing.VerbPosition, Subject: subject, Handle: handle}}}); err != nil {
		t.Fatal(err)
	}
}

func status(t *testing.T, net *bus.Network, name messages.Name) (clearing.LinksReply, error) {
	t.Helper()
	b := net.Connect(name)
	defer b.Close()
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	return bus.Call[clearing.LinksReply](ctx, b, messages.Subject("west", messages.Links, messages.VerbStatus, name), messages.Empty{})
}

// The answer of one host must have the links of every host, and name silent hosts and peers whose bank does not answer.
// A refusal by the bank counts as an answer.
func TestOneHostAnswersForAll(t *testing.T) { synctest.Test(t, oneHostAnswersForAll) }

func oneHostAnswersForAll(t *testing.T) {
	net := bus.NewMemory()
	host(t, net, "rack1", leafs{{Name: "e1\x1b[2J\u202e", Account: "AEAST", IP: "10.1.0.1", Port: 7422, RTT: "60ms", IsSpoke: true, InMsgs: 3, OutMsgs: 4}})
	bank(t, net, "east", messages.Errorf(messages.NotFound, "no cycle was closed"))
	got, err := status(t, net, "operator")
	if err != nil {
		t.Fatal(err)
	}
	want := clearing.Link{Peer: "east", Host: "rack1", Server: "e1·[2J·", Address: "10.1.0.1:7422", Outgoing: true, RTT: messages.Duration(60 * time.Millisecond), In: 3, Out: 4}
	if len(got.Links) != 1 || got.Links[0] != want {
		t.Errorf("links %+v", got.Links)
	}
	if len(got.Missing) != 2 || got.Missing[0] != "rack2" || got.Missing[1] != "rack3" {
		t.Errorf("missing %v", got.Missing)
	}
	if len(got.Trips) != 2 || got.Trips[0].Peer != "east" || got.Trips[0].Took <= 0 || got.Trips[1].Took != 0 || got.Trips[1].Failure == "" {
		t.Errorf("trips %+v", got.Trips)
	}
	host(t, net, "rack2", leafs{{Account: "ANORTH", IP: "::1", Port: 1, RTT: ""}, {Account: "AEAST", IP: "::1", Port: 2}})
	if got, err = status(t, net, "operator"); err != nil || len(got.Links) != 3 || len(got.Missing) != 1 {
		t.Fatalf("with two hosts: %+v, %v", got, err)
	}
	if got.Links[0].Host != "rack1" || got.Links[1].Host != "rack2" || got.Links[1].Peer != "east" || got.Links[2].Address != "[::1]:1" {
		t.Errorf("in the order %+v", got.Links)
	}
}

func TestRefuses(t *testing.T) {
	net := bus.NewMemory()
	l := host(t, net, "rack1", nil)
	if _, err := status(t, net, "alice"); messages.KindOf(err) != messages.PermissionDenied {
		t.Errorf("a user: %v", err)
	}
	if _, err := status(t, net, "operator"); messages.KindOf(err) != messages.Internal {
		t.Errorf("without a server: %v", err)
	}
	if _, err := l.own(t.Context(), "operator", messages.Empty{}); messages.KindOf(err) != messages.PermissionDenied {
		t.Errorf("a host asked by an operator: %v", err)
	}
	for field, c := range map[string]Config{
		"Site": {Site: "West!"}, "Bus": {Site: "west"}, "Host": {Site: "west", Bus: l.c.Bus, Server: leafs{}, Host: "rack9"},
		"Within": {Site: "west", Bus: l.c.Bus, Server: leafs{}, Within: -1},
	} {
		if _, err := Start(c); err == nil {
			t.Errorf("a wrong %s passes", field)
		}
	}
}
