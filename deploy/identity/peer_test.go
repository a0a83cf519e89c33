package identity_test

import (
	"testing"

	. "github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

// TestPeersSpeakAsTheirSite checks what the bank of another site may do with its credentials. A bank must not get
// credentials for a name that is not the name of a site.
func TestPeersSpeakAsTheirSite(t *testing.T) {
	s := newSite(t)
	s.echo("$bank", messages.Subject("west", messages.Bank, clearing.VerbInstruct, "*"))
	own := messages.Subject("west", messages.Bank, clearing.VerbInstruct, "$east")
	if reply, err := s.connect(Peer, "$east").Request(own, nil, patience); err != nil || string(reply.Data) != own {
		t.Fatalf("its own request: %v, %v", reply, err)
	}
	for _, c := range []struct {
		name      messages.Name
		publish   string
		subscribe string
		allowed   bool
		role      Role
	}{
		{role: Peer, name: "$east", publish: messages.Subject("west", messages.Bank, clearing.VerbLines, "$east"), allowed: true},
		{role: Peer, name: "$east", publish: messages.Subject("west", messages.Bank, clearing.VerbPosition, "$east"), allowed: true},
		{role: Peer, name: "$east", publish: messages.Subject("west", messages.Auctioneer, clearing.VerbPeerSubmit, "$east"), allowed: true},
		{role: Peer, name: "$east", publish: messages.Subject("west", messages.Auctioneer, clearing.VerbPeerSubmit, "$north")},
		{role: Peer, name: "$east", publish: messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "$east")},
		{role: User, name: "alice", publish: messages.Subject("west", messages.Auctioneer, clearing.VerbPeerSubmit, "$east")},
		{role: Peer, name: "$east", publish: messages.Subject("west", messages.Bank, clearing.VerbInstruct, "$north")},
		{role: Peer, name: "$east", publish: messages.Subject("west", messages.Bank, clearing.VerbAccept, "$east")},
		{role: Peer, name: "$east", publish: messages.Subject("west", messages.Bank, messages.VerbTransfer, "$auctioneer")},
		{role: Peer, name: "$east", publish: messages.Subject("north", messages.Bank, clearing.VerbInstruct, "$east")},
		{role: Peer, name: "$east", publish: "$SRV.PING"},
		{role: Peer, name: "$east", subscribe: messages.InboxPrefix("$east") + ".>", allowed: true},
		{role: Peer, name: "$east", subscribe: messages.InboxPrefix("$bank") + ".>"},
		{role: Peer, name: "$east", subscribe: messages.Subject("west", messages.Bank, clearing.VerbInstruct, "*")},
		{role: Operator, name: "operator", publish: messages.Subject("west", messages.Bank, clearing.VerbInstruct, "$east")},
	} {
		nc := s.connect(c.role, c.name)
		var err error
		if c.publish != "" {
			err = nc.Publish(c.publish, nil)
		} else {
			_, err = nc.SubscribeSync(c.subscribe)
		}
		if err != nil {
			t.Fatal(err)
		}
		if refused := nc.violation(t); refused == c.allowed {
			t.Errorf("%s %s%s refused: %v, want allowed: %v", c.name, c.publish, c.subscribe, refused, c.allowed)
		}
	}
	if _, err := s.Issue(User, "clearing-east"); messages.KindOf(err) != messages.Invalid {
		t.Errorf("a user called like a peer's account: %v", err)
	}
	for _, name := range []messages.Name{"east", "$bank", "$", "$East", "$a.b"} {
		if _, err := s.Issue(Peer, name); messages.KindOf(err) != messages.Invalid {
			t.Errorf("credentials for %q: %v", name, err)
		}
	}
}

// Every host of a site must derive the same key for a peer. Another site must derive another key.
func TestPeerKeyIsTheSites(t *testing.T) {
	a, dir := Made(t)
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := Made(t)
	creds, err := a.Issue(Peer, "$east")
	if err != nil {
		t.Fatal(err)
	}
	if role, name, err := again.Issued(creds); role != Peer || name != "$east" || err != nil {
		t.Errorf("opened again: %v %v %v", role, name, err)
	}
	if _, _, err := other.Issued(creds); messages.KindOf(err) != messages.PermissionDenied {
		t.Errorf("another site: %v", err)
	}
}
