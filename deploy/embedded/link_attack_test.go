package embedded

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/natstest"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/clearing"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// stranger returns a connection to a NATS server that obeys no rules, as the owner of a peer could run it. The server
// is linked with credentials that the site has issued. The owner of a peer cannot do more harm than such a server.
func stranger(t *testing.T, site *Site, creds []byte) *nats.Conn {
	t.Helper()
	s := natstest.Run(t, natstest.Stranger(t, site.info.Leaf, creds))
	await.Until(t, "the stranger is linked", func() bool { return s.NumLeafNodes() == 1 })
	conn, err := nats.Connect(s.ClientURL(), nats.Timeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// seen has the messages that a client received on all subjects. The sites' own messages may be among them.
type seen struct {
	mu  sync.Mutex
	all map[message]bool
}

type message struct{ subject, payload string }

func (s *seen) note(m *nats.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[message{m.Subject, string(m.Data)}] = true
}

func (s *seen) has(subject, payload string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[message{subject, payload}]
}

func (s *seen) with(payload string) (subjects []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for m := range s.all {
		if m.payload == payload {
			subjects = append(subjects, m.subject)
		}
	}
	slices.Sort(subjects)
	return subjects
}

func listen(t *testing.T, conn *nats.Conn) *seen {
	t.Helper()
	s := &seen{all: map[message]bool{}}
	if _, err := conn.Subscribe(">", s.note); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	return s
}

// insider returns a connection that can read and write every subject in a site's account. Only the owner of the
// account's key can have it.
func insider(t *testing.T, s *Site) *nats.Conn {
	t.Helper()
	creds := natstest.Insider(t, s.server, s.config.KeysDir(), s.config.peerNames()...)
	conn, err := nats.Connect(s.URL(), nats.Timeout(patience), nats.UserCredentialBytes(creds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// everySubject returns the subjects of all requests to a site from each possible sender, and of other messages that are
// worth reading or forging.
func everySubject(site messages.Name) (all []string) {
	verbs := map[string][]string{
		messages.Auctioneer: {messages.VerbSubmit, messages.VerbCancel, messages.VerbJobs, messages.VerbRegister, messages.VerbExchange, market.VerbApply, messages.VerbStatus},
		messages.Bank: {messages.VerbTransfer, messages.VerbGrant, money.VerbPay, messages.VerbAccount, clearing.VerbPeer, clearing.VerbPeers, clearing.VerbAccept,
			clearing.VerbCharge, clearing.VerbReserve, clearing.VerbRemit, money.VerbJournal},
		messages.Estimator: {messages.VerbUtility},
		messages.Depot:     {jobmsg.VerbGet, jobmsg.VerbPut},
		messages.Links:     {messages.VerbStatus},
	}
	for _, v := range clearing.PeerVerbs() {
		verbs[v.Actor] = append(verbs[v.Actor], v.Verb)
	}
	for actor, list := range verbs {
		for _, verb := range list {
			for _, name := range []messages.Name{"$east", "$west", "$north", "$auctioneer", "$bank", "alice", "operator", "node1"} {
				all = append(all, messages.Subject(site, actor, verb, name))
			}
		}
	}
	return append(all,
		messages.InboxPrefix("alice")+".x.1", "_INBOX.x", messages.InboxPrefix("$bank")+".x", messages.VectorSubject(site, "main"), messages.DirectiveSubject(site, "node1"),
		messages.ObservationSubject(site), messages.LogsSubject(site, "node1", "alice"), agentmsg.StreamSubject(site, "node1", "alice"), "$SRV.PING", "$JS.API.INFO", "$JS.API.STREAM.NAMES",
		"$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.PING.CONNZ", "candor."+site+".x")
}

// allowed returns the subjects that may pass from one site to another: requests between sites, in the name of the
// requesting site.
func allowed(from, to messages.Name) (subjects []string) {
	for _, v := range clearing.PeerVerbs() {
		subjects = append(subjects, v.Subject(from, to))
	}
	slices.Sort(subjects)
	return subjects
}

// say publishes a payload on every subject in the list. Then it publishes a mark on the subject `last`, which the link
// lets through. When the mark arrives, everything before it has arrived or was refused.
func say(t *testing.T, conn *nats.Conn, subjects []string, payload, last string) {
	t.Helper()
	for _, s := range subjects {
		if err := conn.Publish(s, []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Publish(last, []byte("the end of "+payload)); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
}

// TestLinkPassesPeerVerbsAlone lets the owner of a peer's servers listen and publish on all subjects. Only requests
// between sites may pass.
func TestLinkPassesPeerVerbsAlone(t *testing.T) {
	t.Parallel()
	west := startSites(t, firstLook(t, "west", "east"))[0]
	creds, err := west.authority.IssueLink("east")
	if err != nil {
		t.Fatal(err)
	}
	outside, inside := stranger(t, west, creds), insider(t, west)
	heard, overheard := listen(t, inside), listen(t, outside)

	last := clearing.PeerVerb{Actor: messages.Bank, Verb: clearing.VerbLines}.Subject("east", "west")
	await.Until(t, "the stranger is heard", func() bool {
		say(t, outside, nil, "greeting", last)
		return heard.has(last, "the end of greeting")
	})
	say(t, outside, slices.DeleteFunc(everySubject("west"), func(s string) bool { return s == last }), "forged", last)
	await.Until(t, "all that passes has", func() bool { return heard.has(last, "the end of forged") })
	if got, want := append(heard.with("forged"), last), allowed("east", "west"); !slices.Equal(sortedList(got), want) {
		t.Errorf("from the stranger's server came %q, want %q", got, want)
	}

	back := clearing.PeerVerb{Actor: messages.Bank, Verb: clearing.VerbLines}.Subject("west", "east")
	own := slices.Concat(everySubject("west"), slices.DeleteFunc(everySubject("east"), func(s string) bool { return s == back }))
	say(t, inside, own, "secret", back)
	await.Until(t, "all that passes has", func() bool { return overheard.has(back, "the end of secret") })
	if got, want := append(overheard.with("secret"), back), allowed("west", "east"); !slices.Equal(sortedList(got), want) {
		t.Errorf("the stranger heard %q, want %q", got, want)
	}
	aliceWorksUnheard(t, west, overheard)
}

func sortedList(list []string) []string {
	slices.Sort(list)
	return list
}

// aliceWorksUnheard lets the user alice send requests and get answers. A stranger listens meanwhile, and sends forged
// messages. The stranger must not see alice's messages, and the forged messages must have no effect.
func aliceWorksUnheard(t *testing.T, west *Site, overheard *seen) {
	t.Helper()
	alice := connect(t, west, "alice")
	if a := alice.account(); a.Balance != 1000*messages.Credit || a.Reserved != 0 {
		t.Errorf("alice has %v, with %v reserved", a.Balance, a.Reserved)
	}
	overheard.mu.Lock()
	defer overheard.mu.Unlock()
	for m := range overheard.all {
		if messages.Caller(m.subject) == "alice" && m.payload != "forged" { // the stranger's own forged messages do not count
			t.Errorf("the stranger heard %s", m.subject)
		}
	}
}

// TestOnlyPeersLink connects to the port for other sites' servers with other credentials, also with credentials of the
// site's users. The port must refuse these connections. The credentials of a link must open no other account than the
// account of the link.
func TestOnlyPeersLink(t *testing.T) {
	t.Parallel()
	west := startSites(t, firstLook(t, "west", "east"))[0]
	issued := map[string]func() ([]byte, error){
		"of a user":              func() ([]byte, error) { return west.authority.Issue(identity.User, "alice") },
		"of an operator":         func() ([]byte, error) { return west.authority.Issue(identity.Operator, "operator") },
		"of a service":           func() ([]byte, error) { return west.authority.Issue(identity.Service, "$bank") },
		"of a peer's bank":       func() ([]byte, error) { return west.authority.Issue(identity.Peer, "$east") },
		"for a site that is not": func() ([]byte, error) { return west.authority.IssueLink("south") },
	}
	for what, issue := range issued {
		creds, err := issue()
		if err != nil {
			t.Fatal(err)
		}
		refusedLink(t, what, west, creds)
	}
	creds, err := west.authority.IssueLink("east")
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := nats.Connect(west.URL(), nats.Timeout(patience), nats.UserCredentialBytes(creds)); err == nil {
		conn.Close()
		t.Error("credentials of a link open a client's connection")
	}
	leaked(t, west, creds)
}

// leaked revokes the credentials of a link, as an operator does when they have leaked. The link must be cut, and a new
// link with these credentials must be refused.
func leaked(t *testing.T, site *Site, creds []byte) {
	t.Helper()
	stranger(t, site, creds)
	await.Until(t, "both are linked", func() bool { return site.server.NumLeafNodes() == 2 })
	key, err := identity.KeyOf(creds)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := identity.Open(site.config.KeysDir()) // opens the keys as another process would
	if err != nil {
		t.Fatal(err)
	}
	if err := elsewhere.RevokeKey(key); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the link is cut", func() bool { return site.server.NumLeafNodes() == 1 })
	refusedLink(t, "that were revoked", site, creds)
}

func refusedLink(t *testing.T, what string, site *Site, creds []byte) {
	t.Helper()
	log := &refusals{refused: make(chan struct{}, 64)}
	o := natstest.Stranger(t, site.info.Leaf, creds)
	o.NoLog = false
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	defer s.Shutdown()
	select {
	case <-log.refused:
	case <-within(t).Done():
		t.Errorf("credentials %s: no refusal came", what)
	}
	if n := s.NumLeafNodes(); n != 0 {
		t.Errorf("credentials %s: %d links", what, n)
	}
}

// refusals is a server's log. It sends a value on a channel when the other side has refused the connection.
type refusals struct{ refused chan struct{} }

func (r *refusals) Errorf(format string, v ...any) {
	if text := fmt.Sprintf(format, v...); strings.Contains(text, "Authorization Violation") {
		select {
		case r.refused <- struct{}{}:
		default:
		}
	}
}
func (r *refusals) Noticef(string, ...any) {}
func (r *refusals) Warnf(string, ...any)   {}
func (r *refusals) Fatalf(string, ...any)  {}
func (r *refusals) Debugf(string, ...any)  {}
func (r *refusals) Tracef(string, ...any)  {}

// A peer's server must not use too many subscriptions or connections of this site's servers.
func TestAPeersServersAreBounded(t *testing.T) {
	t.Parallel()
	west := startSites(t, firstLook(t, "west", "east"))[0]
	creds, err := west.authority.IssueLink("east")
	if err != nil {
		t.Fatal(err)
	}
	const enough = 10_000
	first := leafLine(t, west, creds, "first")
	var flood bytes.Buffer
	for i := range enough {
		fmt.Fprintf(&flood, "LS+ flood.%d\r\n", i)
	}
	if err := first.send(flood.String() + "PING\r\n"); err != nil {
		t.Fatal(err)
	}
	first.until("PONG")
	if n := west.server.NumSubscriptions(); n > enough/2 {
		t.Errorf("a server of the peer has made %d subscriptions", n)
	}
	const many = 100
	var further []*leaf
	for i := range many {
		if l := leafLine(t, west, creds, fmt.Sprint("further", i)); l.send("PING\r\n") == nil && l.answers() {
			further = append(further, l)
		}
	}
	stay := 0 // an accepted connection may be closed later, and another one takes its place
	for _, l := range further {
		if l.send("PING\r\n") == nil && l.answers() {
			stay++
		}
	}
	if stay == 0 || stay > many*3/4 {
		t.Errorf("of %d connections of the peer's servers, %d were taken and %d stay", many, len(further), stay)
	}
	if alice := connect(t, west, "alice").account(); alice.Balance != 1000*messages.Credit {
		t.Errorf("alice has %v", alice.Balance)
	}
}

// leaf is a connection that speaks the protocol of a peer's server.
type leaf struct {
	*testing.T
	net.Conn
	lines *bufio.Reader
}

func leafLine(t *testing.T, site *Site, creds []byte, name string) *leaf {
	t.Helper()
	conn, err := net.Dial("tcp", site.info.Leaf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	l := &leaf{T: t, Conn: conn, lines: bufio.NewReader(conn)}
	var info struct {
		Nonce string `json:"nonce"`
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(l.until("INFO"), "INFO ")), &info); err != nil {
		t.Fatal(err)
	}
	token, err := nkeys.ParseDecoratedJWT(creds)
	if err != nil {
		t.Fatal(err)
	}
	key, err := nkeys.ParseDecoratedUserNKey(creds)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := key.Sign([]byte(info.Nonce))
	if err != nil {
		t.Fatal(err)
	}
	hello, err := json.Marshal(map[string]any{"jwt": token, "sig": base64.RawURLEncoding.EncodeToString(signature), "name": name, "server_id": name, "version": "2.11.0", "protocol": 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.send("CONNECT " + string(hello) + "\r\n"); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *leaf) send(text string) error {
	_, err := l.Write([]byte(text))
	return err
}

// line reads a line. It answers a PING, because the site would otherwise end the connection after some seconds.
func (l *leaf) line() (string, error) {
	line, err := l.lines.ReadString('\n')
	if err == nil && strings.HasPrefix(line, "PING") {
		err = l.send("PONG\r\n")
	}
	return line, err
}

func (l *leaf) answers() bool {
	for {
		line, err := l.line()
		if err != nil || strings.HasPrefix(line, "-ERR") {
			return false
		}
		if strings.HasPrefix(line, "PONG") {
			return true
		}
	}
}

// This method reads lines up to one that begins with a text.
func (l *leaf) until(begin string) string {
	l.Helper()
	for {
		line, err := l.line()
		if err != nil {
			l.Fatalf("before %s: %v", begin, err)
		}
		if strings.HasPrefix(line, begin) {
			return line
		}
	}
}
