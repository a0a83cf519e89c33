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
	"github.com/candor-grid/candor/messages/await"
)

// stranger is a NATS server that obeys no rules of ours, linked to a site with
// credentials that the site issued: what the owner of a peer can do at worst.
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

// seen is what came to somebody who listens to everything, apart from replies
// and the server's own. The sites' own messages come between.
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

// insider is a connection that sees and may say everything in a site's account: of
// somebody who has the account's key.
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

// everySubject is each request that one could wish to make of a site, in the
// name of each who could make it, and what else is worth hearing or forging.
func everySubject(site messages.Name) (all []string) {
	verbs := map[string][]string{
		messages.Auctioneer: {messages.VerbSubmit, messages.VerbCancel, messages.VerbJobs, messages.VerbRegister, messages.VerbExchange, messages.VerbApply, messages.VerbStatus},
		messages.Bank: {messages.VerbTransfer, messages.VerbGrant, messages.VerbPay, messages.VerbAccount, messages.VerbPeer, messages.VerbPeers, messages.VerbAccept,
			messages.VerbCharge, messages.VerbReserve, messages.VerbRemit, messages.VerbJournal},
		messages.Estimator: {messages.VerbUtility},
		messages.Depot:     {messages.VerbGet, messages.VerbPut},
		messages.Links:     {messages.VerbStatus},
	}
	for _, v := range messages.PeerVerbs() {
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
		messages.ObservationSubject(site), messages.LogsSubject(site, "node1", "alice"), messages.StreamSubject(site, "node1", "alice"), "$SRV.PING", "$JS.API.INFO", "$JS.API.STREAM.NAMES",
		"$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.PING.CONNZ", "candor."+site+".x")
}

// allowed is what passes from one site to another: the requests that sites make
// of each other, in the name of the one that asks.
func allowed(from, to messages.Name) (subjects []string) {
	for _, v := range messages.PeerVerbs() {
		subjects = append(subjects, v.Subject(from, to))
	}
	slices.Sort(subjects)
	return subjects
}

// say publishes a payload on every subject, and ends with a mark that passes.
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

// TestLinkPassesPeerVerbsAlone: whoever owns the servers of a peer, and listens
// to everything, and says everything, hears and is heard in the requests that
// sites make of each other, and in nothing else. So nobody there speaks as a
// user of this site, hears the replies to one, or forges any.
func TestLinkPassesPeerVerbsAlone(t *testing.T) {
	t.Parallel()
	west := startSites(t, firstLook(t, "west", "east"))[0]
	creds, err := west.authority.IssueLink("east")
	if err != nil {
		t.Fatal(err)
	}
	outside, inside := stranger(t, west, creds), insider(t, west)
	heard, overheard := listen(t, inside), listen(t, outside)

	last := messages.PeerVerb{Actor: messages.Bank, Verb: messages.VerbLines}.Subject("east", "west")
	await.Until(t, "the stranger is heard", func() bool {
		say(t, outside, nil, "greeting", last)
		return heard.has(last, "the end of greeting")
	})
	say(t, outside, slices.DeleteFunc(everySubject("west"), func(s string) bool { return s == last }), "forged", last)
	await.Until(t, "all that passes has", func() bool { return heard.has(last, "the end of forged") })
	if got, want := append(heard.with("forged"), last), allowed("east", "west"); !slices.Equal(sortedList(got), want) {
		t.Errorf("from the stranger's server came %q, want %q", got, want)
	}

	back := messages.PeerVerb{Actor: messages.Bank, Verb: messages.VerbLines}.Subject("west", "east")
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

// aliceWorksUnheard lets a user of the site ask and be answered. The stranger hears
// nothing of it, and the stranger's forgeries have moved nothing.
func aliceWorksUnheard(t *testing.T, west *Site, overheard *seen) {
	t.Helper()
	alice := connect(t, west, "alice")
	if a := alice.account(); a.Balance != 1000*messages.Credit || a.Reserved != 0 {
		t.Errorf("alice has %v, with %v reserved", a.Balance, a.Reserved)
	}
	overheard.mu.Lock()
	defer overheard.mu.Unlock()
	for m := range overheard.all {
		if messages.Caller(m.subject) == "alice" && m.payload != "forged" { // which it said itself
			t.Errorf("the stranger heard %s", m.subject)
		}
	}
}

// TestOnlyPeersLink: nobody else's credentials open the listener for servers,
// also credentials of the site's own users; and a link's credentials open no other account.
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

// leaked revokes credentials of a link that is there: it is cut, and not made again.
func leaked(t *testing.T, site *Site, creds []byte) {
	t.Helper()
	stranger(t, site, creds)
	await.Until(t, "both are linked", func() bool { return site.server.NumLeafNodes() == 2 })
	key, err := identity.KeyOf(creds)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := identity.Open(site.config.KeysDir()) // as another process does
	if err != nil {
		t.Fatal(err)
	}
	if err := elsewhere.RevokeKey(key); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the link is cut", func() bool { return site.server.NumLeafNodes() == 1 })
	refusedLink(t, "that were revoked", site, creds)
}

// refusedLink wants that the site's server ends a link with such credentials.
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

// refusals is a log that tells of the far end's refusals.
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

// TestAPeersServersAreBounded: a peer's server cannot fill this site's servers with
// subscriptions, nor with connections.
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
	stay := 0 // one that was taken may be closed later, and leaves its place to another
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

// leaf is a connection that speaks as the server of a peer does.
type leaf struct {
	*testing.T
	net.Conn
	lines *bufio.Reader
}

// leafLine connects as a server of a name.
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

// line reads a line. It answers a PING, without which the site ends the connection after seconds.
func (l *leaf) line() (string, error) {
	line, err := l.lines.ReadString('\n')
	if err == nil && strings.HasPrefix(line, "PING") {
		err = l.send("PONG\r\n")
	}
	return line, err
}

// answers reports whether a PING is answered, and not refused.
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

// until reads up to a line that begins so.
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
