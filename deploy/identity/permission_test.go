package identity_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	. "github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/natsserver"
	"github.com/candor-grid/candor/deploy/identity/natstest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

const patience = await.Patience

type site struct {
	*testing.T
	*Authority
	dir     string
	url     string
	server  *server.Server
	options *server.Options
}

func newSite(t *testing.T) site {
	a, dir := Made(t)
	o := natstest.Loopback()
	o.JetStream, o.StoreDir, o.MaxPayload = true, t.TempDir(), 8<<20
	o.AuthTimeout = 30 // seconds, because a busy machine is slow
	if err := natsserver.Secure(o, a); err != nil {
		t.Fatal(err)
	}
	s := natstest.Run(t, o)
	return site{T: t, Authority: a, dir: dir, url: s.ClientURL(), server: s, options: o}
}

type client struct{ *nats.Conn }

func (s site) connect(role Role, n messages.Name) client {
	s.Helper()
	creds, err := s.Issue(role, n)
	if err != nil {
		s.Fatal(err)
	}
	nc, err := nats.Connect(s.url, nats.UserCredentialBytes(creds), nats.CustomInboxPrefix(messages.InboxPrefix(n)))
	if err != nil {
		s.Fatalf("%s %s cannot connect: %v", role, n, err)
	}
	s.Cleanup(nc.Close)
	return client{nc}
}

// violation reports whether the server has refused something that this connection did. It first flushes, so that the
// server's errors have arrived.
func (c client) violation(t *testing.T) bool {
	t.Helper()
	if err := c.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	err := c.LastError()
	if err != nil && !errors.Is(err, nats.ErrPermissionViolation) {
		t.Fatalf("an error other than a refusal: %v", err)
	}
	return err != nil
}

// echo serves a subject with a service's credentials, and answers with the subject of the request.
func (s site) echo(n messages.Name, subject string) {
	s.Helper()
	c := s.connect(Service, n)
	if _, err := c.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte(m.Subject)) }); err != nil {
		s.Fatal(err)
	}
	if err := c.FlushTimeout(patience); err != nil {
		s.Fatal(err)
	}
}

func TestRequestUnderOwnNameIsAnswered(t *testing.T) {
	s := newSite(t)
	s.echo("$auctioneer", messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "*"))
	subject := messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "alice")
	reply, err := s.connect(User, "alice").Request(subject, nil, patience)
	if err != nil || string(reply.Data) != subject {
		t.Fatalf("own request: %v, %v", reply, err)
	}
}

// There is a case for each way in which a client could act beyond its name or role.
func TestPublishPermissions(t *testing.T) {
	s := newSite(t)
	auctioneer := func(verb string, n messages.Name) string {
		return messages.Subject("west", messages.Auctioneer, verb, n)
	}
	cases := []struct {
		role    Role
		name    messages.Name
		subject string
		allowed bool
	}{
		{User, "alice", auctioneer(messages.VerbSubmit, "alice"), true},
		{User, "alice", messages.Subject("east", messages.Bank, messages.VerbAccount, "alice"), false},
		{User, "alice", auctioneer(messages.VerbArchive, "alice"), false},
		{User, "alice", auctioneer(market.VerbPast, "alice"), false},
		{User, "alice", auctioneer(clearing.VerbPeerSubmit, "alice"), false},
		{User, "alice", auctioneer("made-up", "alice"), false},
		{User, "alice", messages.Subject("west", messages.Admission, messages.VerbEnrol, "alice"), false},
		{User, "alice", messages.LogsSubject("west", "node1", "alice"), true},
		{User, "alice", "$SRV.PING", false},
		{User, "alice", "$SRV.STATS.candor-bank", false},
		{Operator, "operator", "$SRV.PING", true},
		{User, "alice", auctioneer(messages.VerbSubmit, "bob"), false},
		{User, "alice", auctioneer(messages.VerbSubmit, "$bank"), false},
		{User, "alice", messages.Subject("west", messages.Bank, messages.VerbTransfer, "$auctioneer"), false},
		{User, "alice", messages.LogsSubject("west", "node1", "bob"), false},
		{User, "alice", agent.StreamSubject("west", "node1", "alice"), true},
		{User, "alice", agent.StreamSubject("west", "node1", "bob"), false},
		{Node, "node1", agent.StreamSubject("west", "node1", "alice"), false},
		{User, "alice", messages.LogsSubject("west", "alice", "bob"), false},
		{User, "alice", messages.ObservationSubject("west"), false},
		{User, "alice", messages.InboxPrefix("bob") + ".x", false},
		{User, "alice", "$JS.API.INFO", false},
		{User, "alice", "$SYS.REQ.SERVER.PING", false},
		{User, "node1", auctioneer(messages.VerbRegister, "node1"), false},
		{User, "node1", auctioneer(messages.VerbExchange, "node1"), false},
		{User, "node1", messages.DirectiveSubject("west", "node1"), false},
		{User, "main", messages.VectorSubject("west", "main"), false},
		{User, "alice", messages.Subject("west", messages.Depot, job.VerbPut, "alice"), true},
		{User, "alice", messages.Subject("west", messages.Depot, job.VerbGet, "bob"), false},
		{User, "alice", messages.Subject("west", messages.Depot, job.VerbOutputs, "bob"), false},
		{User, "node1", messages.Subject("west", messages.Depot, job.VerbTake, "node1"), false},
		{User, "node1", messages.Subject("west", messages.Depot, job.VerbGive, "node1"), false},
		{User, "node1", messages.Subject("west", messages.Depot, job.VerbDeliver, "node1"), false},
		{User, "alice", "$JS.API.STREAM.MSG.GET.FILES_WEST_5_alice", false},
		{User, "alice", "$JS.API.CONSUMER.CREATE.FILES_WEST_5_alice", false},
		{User, "alice", "objects.FILES_WEST_5_alice.x", false},
		{Operator, "operator", messages.Subject("west", messages.Depot, job.VerbTake, "operator"), false},
		{Operator, "operator", messages.Subject("west", messages.Bank, messages.VerbGrant, "operator"), true},
		{Operator, "operator", messages.Subject("west", messages.Bank, messages.VerbGrant, "$bank"), false},
		{Operator, "operator", auctioneer(messages.VerbSubmit, "alice"), false},
		{Node, "node1", auctioneer(messages.VerbExchange, "node1"), true},
		{Node, "node1", auctioneer(messages.VerbExchange, "node2"), false},
		{Node, "node1", auctioneer(messages.VerbSubmit, "node1"), false},
		{Node, "node1", messages.Subject("east", messages.Auctioneer, messages.VerbRegister, "node1"), false},
		{Node, "node1", messages.VectorSubject("west", "main"), false},
		{Node, "node1", messages.Subject("west", messages.Depot, job.VerbTake, "node1"), true},
		{Node, "node1", messages.Subject("west", messages.Depot, job.VerbTake, "node2"), false},
		{Node, "node1", messages.Subject("east", messages.Depot, job.VerbGive, "node1"), false},
		{Node, "node1", messages.Subject("west", messages.Depot, job.VerbPut, "node1"), false},
		{Node, "node1", messages.Subject("west", messages.Depot, job.VerbGet, "alice"), false},
		{Node, "node1", "$JS.API.STREAM.MSG.GET.FILES_WEST_5_alice", false},
		{Node, "node1", messages.InboxPrefix("alice") + ".x", false},
		{Service, "$auctioneer", messages.VectorSubject("west", "main"), true},
		{Service, "$auctioneer", messages.Subject("west", messages.Bank, messages.VerbTransfer, "$auctioneer"), true},
		{Service, "$auctioneer", messages.Subject("east", messages.Auctioneer, clearing.VerbPeerSubmit, "$west"), true},
		{Service, "$auctioneer", messages.LogsSubject("west", "node1", "alice@east"), true},
		{Service, "$auctioneer", agent.StreamSubject("west", "node1", "alice@east"), true},
		{Service, "$auctioneer", messages.InboxPrefix("alice") + ".x.y", true},
		{Service, "$depot", messages.Subject("west", messages.Auctioneer, messages.VerbTasks, "operator"), true},
		{Service, "$depot", "objects.FILES_WEST_5_alice.x", true},
		{Service, "$depot", "$JS.API.STREAM.MSG.GET.FILES_WEST_5_alice", true},
		{Service, "$depot", "$JS.API.STREAM.PURGE.FILES_WEST_5_alice", false},
		{Service, "$depot", "$JS.API.STREAM.DELETE.FILES_WEST_5_alice", false},
		{Service, "$depot", "$JS.API.STREAM.NAMES", false},
		{Service, "$depot", "$JS.API.INFO", false},
		{Service, "$depot", auctioneer(messages.VerbSubmit, "alice"), false},
		{Service, "$depot", auctioneer(messages.VerbExchange, "node1"), false},
		{Service, "$depot", messages.Subject("west", messages.Bank, messages.VerbTransfer, "$auctioneer"), false},
		{Service, "$depot", messages.Subject("west", messages.Bank, messages.VerbGrant, "operator"), false},
		{Service, "$depot", "$SYS.REQ.SERVER.PING", false},
		{Service, "$depot", "$SRV.PING", false},
	}
	for _, c := range cases {
		t.Run(string(c.role)+" "+c.name+" "+c.subject, func(t *testing.T) {
			nc := s.connect(c.role, c.name)
			if err := nc.Publish(c.subject, nil); err != nil {
				t.Fatal(err)
			}
			if refused := nc.violation(t); refused == c.allowed {
				t.Errorf("refused: %v, want allowed: %v", refused, c.allowed)
			}
		})
	}
}

func TestSubscribePermissions(t *testing.T) {
	s := newSite(t)
	cases := []struct {
		role    Role
		name    messages.Name
		subject string
		allowed bool
	}{
		{User, "alice", messages.InboxPrefix("alice") + ".>", true},
		{User, "alice", messages.InboxPrefix("alice") + ".x.*", true},
		{User, "alice", "_INBOX.>", false},
		{User, "alice", "*.>", false},
		{User, "alice", "*.*", false},
		{User, "alice", messages.InboxPrefix("bob") + ".>", false},
		{User, "alice", messages.InboxPrefix("alicea") + ".>", false},
		{User, "alice", ">", false},
		{User, "alice", messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "*"), false},
		{User, "alice", messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "alice"), false},
		{User, "alice", messages.ObservationSubject("west"), false},
		{User, "alice", "$SRV.>", false},
		{Operator, "operator", "_INBOX.>", false},
		{Operator, "operator", messages.InboxPrefix("operator") + ".>", true},
		{Node, "node1", "_INBOX.>", false},
		{Node, "node1", messages.InboxPrefix("node1") + ".>", true},
		{Node, "node1", messages.VectorSubject("west", "main"), true},
		{Node, "node1", messages.DirectiveSubject("west", "node1"), true},
		{Node, "node1", messages.DirectiveSubject("west", "node2"), false},
		{Node, "node1", messages.LogsSubject("west", "node1", "*"), true},
		{Node, "node1", messages.LogsSubject("west", "node2", "*"), false},
		{Node, "node1", messages.LogsSubject("west", "*", "*"), false},
		{Node, "node1", messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "*"), false},
		{Service, "$bank", messages.Subject("west", messages.Bank, messages.VerbAccount, "*"), true},
	}
	for _, c := range cases {
		t.Run(string(c.role)+" "+c.name+" "+c.subject, func(t *testing.T) {
			nc := s.connect(c.role, c.name)
			if _, err := nc.SubscribeSync(c.subject); err != nil {
				t.Fatal(err)
			}
			if refused := nc.violation(t); refused == c.allowed {
				t.Errorf("refused: %v, want allowed: %v", refused, c.allowed)
			}
		})
	}
}

// An agent must answer requests for its logs only on the subjects for such answers, and not on another reply subject
// that a user names.
func TestNodeRepliesOnlyWhereItWasAsked(t *testing.T) {
	s := newSite(t)
	subject := messages.LogsSubject("west", "node1", "alice")
	own := messages.ReplyPrefix(subject) + ".x"
	for _, reply := range []string{own, messages.InboxPrefix("alice") + ".x", messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "bob"),
		messages.LogsReplyPrefix("node2", "alice") + ".x", "objects.FILES_WEST_3_bob.x", "$JS.API.STREAM.NAMES"} {
		node, alice := s.connect(Node, "node1"), s.connect(User, "alice")
		asked := make(chan *nats.Msg, 1)
		sub, err := node.ChanSubscribe(messages.LogsSubject("west", "node1", "*"), asked)
		if err != nil || node.violation(t) {
			t.Fatalf("the agent cannot serve its logs: %v", err)
		}
		answers, err := alice.SubscribeSync(own)
		if err != nil || alice.violation(t) {
			t.Fatalf("alice cannot hear the answers: %v", err)
		}
		if err := alice.PublishRequest(subject, reply, nil); err != nil {
			t.Fatal(err)
		}
		if err := (<-asked).Respond([]byte("output")); err != nil {
			t.Fatal(err)
		}
		if refused := node.violation(t); refused == (reply == own) {
			t.Errorf("an answer at %s is refused: %v", reply, refused)
		}
		if reply == own {
			if m, err := answers.NextMsg(patience); err != nil || string(m.Data) != "output" {
				t.Errorf("alice hears %v, %v", m, err)
			}
		}
		if err := sub.Unsubscribe(); err != nil {
			t.Error(err)
		}
	}
	bob := s.connect(User, "bob")
	if _, err := bob.SubscribeSync(own); err != nil || !bob.violation(t) {
		t.Errorf("bob may listen to the answers: %v", err)
	}
}

func TestServerAdmitsOnlyItsOwnCredentials(t *testing.T) {
	s := newSite(t)
	stranger, _ := Made(t)
	creds, err := stranger.Issue(Service, "$bank")
	if err != nil {
		t.Fatal(err)
	}
	for what, option := range map[string]nats.Option{
		"another authority's": nats.UserCredentialBytes(creds),
		"none":                nats.Name("nobody"),
		"a password":          nats.UserInfo("alice", "alice"),
	} {
		if nc, err := nats.Connect(s.url, option); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("credentials %s: connection %v, error %v; want an authorization violation", what, nc, err)
		}
	}
}

// The credentials of services must allow them to use JetStream, because services store the observations there.
func TestServiceHasJetStream(t *testing.T) {
	s := newSite(t)
	js, err := s.connect(Service, "$estimator").JetStream(nats.MaxWait(patience))
	if err != nil {
		t.Fatal(err)
	}
	_, err = js.AddStream(&nats.StreamConfig{Name: messages.ObservationStream("west"), Subjects: []string{messages.ObservationSubject("west")}})
	if err != nil {
		t.Fatal(err)
	}
	ack, err := js.Publish(messages.ObservationSubject("west"), []byte("x"))
	if err != nil || ack.Sequence != 1 {
		t.Fatalf("append: %v, %v", ack, err)
	}
}
