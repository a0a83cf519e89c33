package admission

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/natsserver"
	"github.com/candor-grid/candor/deploy/identity/natstest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
)

const patience = await.Patience

// memory stores tokens like the auctioneer, as far as these tests need it.
type memory struct {
	mu     sync.Mutex
	tokens map[string]messages.TokenState
	lose   int // number of next uses of a token that are stored, but whose answer gets lost
}

func (m *memory) admit(_ context.Context, caller messages.Name, r messages.AdmitRequest) (reply messages.TokensReply, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if caller != "$admission" {
		return reply, messages.Errorf(messages.PermissionDenied, "not the admission")
	}
	if r.Issue != nil {
		m.tokens[r.Issue.ID] = *r.Issue
		return messages.TokensReply{Tokens: []messages.TokenState{*r.Issue}}, nil
	}
	t, ok := m.tokens[r.Use.ID]
	if !ok || t.Key != "" && t.Key != r.Use.Key {
		return reply, messages.Errorf(messages.PermissionDenied, "unknown or used")
	}
	t.Key = r.Use.Key
	m.tokens[t.ID] = t
	if m.lose > 0 {
		m.lose--
		return reply, messages.Errorf(messages.Exhausted, "lost")
	}
	return messages.TokensReply{Tokens: []messages.TokenState{t}}, nil
}

type site struct {
	*testing.T
	*identity.Authority
	memory   *memory
	url      string
	registry *prometheus.Registry
	logged   *observer.ObservedLogs
}

func newSite(t *testing.T) *site {
	t.Helper()
	authority, err := identity.Create(filepath.Join(t.TempDir(), "keys"), "west")
	if err != nil {
		t.Fatal(err)
	}
	o := natstest.Loopback()
	o.AuthTimeout = 30
	if err := natsserver.Secure(o, authority); err != nil {
		t.Fatal(err)
	}
	s := natstest.Run(t, o)
	here := &site{T: t, Authority: authority, url: s.ClientURL(), registry: prometheus.NewRegistry(), memory: &memory{tokens: map[string]messages.TokenState{}}}
	_, err = here.connect(identity.Service, "$auctioneer").Serve(bus.Service{Name: "auctioneer", Version: "1.0.0", Endpoints: []bus.Endpoint{
		{Name: "admit", Subject: messages.Subject("west", messages.Auctioneer, messages.VerbAdmit, "*"), Handle: bus.Handle("admit", here.memory.admit)}}})
	if err != nil {
		t.Fatal(err)
	}
	core, logged := observer.New(zap.InfoLevel)
	here.logged = logged
	a, err := Start(Config{Log: zap.New(core), Site: "west", Bus: here.connect(identity.Service, "$admission"), Issuer: authority, Operators: []messages.Name{"operator"},
		Servers: []string{here.url}, Metrics: here.registry})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return here
}

func (s *site) connect(role identity.Role, n messages.Name) bus.Bus {
	s.Helper()
	creds, err := s.Credentials(role, n)
	if err != nil {
		s.Fatal(err)
	}
	b, err := bus.Connect(bus.Config{URL: s.url, Name: n, JWT: creds.Token, Seed: creds.Seed})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = b.Close() })
	return b
}

func (s *site) token() *Token {
	s.Helper()
	subject := messages.Subject("west", messages.Admission, messages.VerbToken, "operator")
	reply, err := bus.Call[messages.TokenReply](s.Context(), s.connect(identity.Operator, "operator"), subject, messages.TokenRequest{Node: "node7", Expires: messages.Duration(time.Hour)})
	if err != nil {
		s.Fatal(err)
	}
	t, err := ParseToken(reply.Token)
	if err != nil {
		s.Fatal(err)
	}
	return t
}

func (s *site) counted(name string) (sum float64) {
	s.Helper()
	all, err := s.registry.Gather()
	if err != nil {
		s.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == name {
			for _, m := range f.Metric {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// TestNodeJoinsOnce uses a token twice. The first use must give credentials of the node, for a key that the node made.
// A second use must fail, at any server.
func TestNodeJoinsOnce(t *testing.T) {
	s := newSite(t)
	token, file := s.token(), filepath.Join(t.TempDir(), "creds", "node7.creds")
	if err := Join(t.Context(), token, "", file); err != nil {
		t.Fatal(err)
	}
	creds, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if role, name, err := s.Issued(creds); role != identity.Node || name != "node7" || err != nil {
		t.Errorf("the credentials are of %s %s, %v", role, name, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read them: %v %v", info.Mode(), err)
	}
	if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	b, err := bus.Connect(bus.Config{URL: s.url, Name: "node7", CredsFile: file})
	if err != nil {
		t.Fatal(err)
	}
	if sub, err := b.Subscribe(messages.DirectiveSubject("west", "node7"), func(string, []byte) {}); err != nil || sub == nil {
		t.Errorf("as the node: %v", err)
	}
	_ = b.Close()
	if err := Join(t.Context(), token, "", filepath.Join(t.TempDir(), "thief.creds")); messages.KindOf(err) != messages.PermissionDenied {
		t.Errorf("a second use: %v", err)
	}
	if n := s.counted("candor_admission_refused_total"); n != 1 {
		t.Errorf("%v refusals were counted, want 1", n)
	}
	if made, enrolled := s.counted("candor_admission_tokens_total"), s.counted("candor_admission_enrolments_total"); made != 1 || enrolled != 1 {
		t.Errorf("counted %v tokens and %v enrolments", made, enrolled)
	}
}

// A server has issued credentials, but the answer is lost. The agent must be able to ask again with the same key.
func TestJoinGoesOnWhereItWasStopped(t *testing.T) {
	s := newSite(t)
	s.memory.lose = 1
	token, file := s.token(), filepath.Join(t.TempDir(), "node7.creds")
	if err := Join(t.Context(), token, "", file); messages.KindOf(err) != messages.Exhausted {
		t.Fatalf("the lost answer: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Fatal("there are credentials without an answer")
	}
	if err := Join(t.Context(), token, "", file); err != nil {
		t.Errorf("again: %v", err)
	}
}

// The NATS server itself must refuse texts that are no valid tokens.
func TestTokensThatAreNoneOpenNothing(t *testing.T) {
	s, other := newSite(t), newSite(t)
	file := filepath.Join(t.TempDir(), "creds")
	stranger := other.token()
	stranger.Servers = []string{s.url}
	forged := s.token()
	creds, err := other.JoinCredentials(forged.ID, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	forged.Claim, forged.Seed = creds.Token, creds.Seed
	altered := s.token()
	part := strings.Split(altered.Claim, ".")
	body, err := base64.RawURLEncoding.DecodeString(part[1])
	if err != nil {
		t.Fatal(err)
	}
	part[1] = base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(body), altered.ID, "join-aaaaaaaaaaaaaaaa", 1)))
	altered.Claim, altered.ID = strings.Join(part, "."), "join-aaaaaaaaaaaaaaaa"
	ended := s.token()
	if creds, err = s.JoinCredentials(ended.ID, time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	ended.Claim, ended.Seed = creds.Token, creds.Seed
	for what, token := range map[string]*Token{"of another site": stranger, "signed by another site": forged, "altered": altered} {
		if err := Join(t.Context(), token, "", file); messages.KindOf(err) != messages.PermissionDenied {
			t.Errorf("a token %s: %v, want PermissionDenied", what, err)
		}
	}
	if err := Join(t.Context(), ended, "", file); messages.KindOf(err) != messages.Expired {
		t.Errorf("a token that has expired: %v, want Expired", err)
	}
	if nc, err := nats.Connect(s.url, nats.UserJWTAndSeed(ended.Claim, ended.Seed)); err == nil {
		nc.Close()
		t.Error("the server takes a token that has expired")
	}
	if n := s.counted("candor_admission_enrolments_total"); n != 0 {
		t.Errorf("%v agents were let in", n)
	}
}

// The clock of the new node is two hours ahead. The site, whose clock is right, must still accept a token of one hour.
func TestJoinWithAClockThatIsAhead(t *testing.T) {
	s := newSite(t)
	if err := join(t.Context(), s.token(), "", filepath.Join(t.TempDir(), "node.creds"), messages.TimeOf(time.Now().Add(2*time.Hour))); err != nil {
		t.Error(err)
	}
}

// The holder of a token may publish and read only its one request.
func TestTokenOpensNothingElse(t *testing.T) {
	s := newSite(t)
	token := s.token()
	b, err := token.connect("")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	own := messages.ServiceIdentity(token.ID)
	for _, subject := range []string{
		messages.Subject("west", messages.Admission, messages.VerbToken, own), messages.Subject("west", messages.Admission, messages.VerbEnrol, "$join-other"),
		messages.Subject("west", messages.Auctioneer, messages.VerbRegister, "node7"), messages.Subject("west", messages.Auctioneer, messages.VerbAdmit, own),
		messages.Subject("west", messages.Bank, messages.VerbAccounts, own),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if _, err := b.Request(ctx, subject, []byte("{}")); messages.KindOf(err) != messages.PermissionDenied {
			t.Errorf("asking %s: %v", subject, err)
		}
		cancel()
	}
	for _, subject := range []string{messages.VectorSubject("west", "*"), messages.InboxPrefix("node7") + ".>", "_INBOX.>", "$SRV.>"} {
		if _, err := b.Subscribe(subject, func(string, []byte) {}); messages.KindOf(err) != messages.PermissionDenied {
			t.Errorf("hearing %s: %v", subject, err)
		}
	}
}

// Only operators may make tokens, and nobody may enrol without one.
func TestOnlyOperatorsMakeTokens(t *testing.T) {
	s := newSite(t)
	alice := s.connect(identity.User, "alice")
	at := func(verb string) string { return messages.Subject("west", messages.Admission, verb, "alice") }
	_, make := bus.Call[messages.TokenReply](t.Context(), alice, at(messages.VerbToken), messages.TokenRequest{Node: "node7", Expires: messages.Duration(time.Hour)})
	_, list := bus.Call[messages.TokensReply](t.Context(), alice, at(messages.VerbTokens), messages.Empty{})
	_, forget := bus.Call[messages.TokenState](t.Context(), alice, at(messages.VerbForget), messages.TokenUse{ID: "join-x"})
	_, enrol := bus.Call[messages.EnrolReply](t.Context(), alice, at(messages.VerbEnrol), messages.EnrolRequest{Key: "UA"})
	for what, err := range map[string]error{"make": make, "list": list, "revoke": forget, "enrol": enrol} {
		if messages.KindOf(err) != messages.PermissionDenied {
			t.Errorf("%s: %v, want PermissionDenied", what, err)
		}
	}
	if n := s.counted("candor_admission_refused_total"); n != 3 { // the NATS server stops a user's request to enrol, so it is not counted here
		t.Errorf("%v refusals were counted, want 3", n)
	}
	bad, err := bus.Call[messages.TokenReply](t.Context(), s.connect(identity.Operator, "operator"), messages.Subject("west", messages.Admission, messages.VerbToken, "operator"), messages.TokenRequest{Node: "Node!", Expires: 1})
	if messages.KindOf(err) != messages.Invalid {
		t.Errorf("a token for what is no node: %+v %v", bad, err)
	}
}

// A key that cannot be signed must leave the token valid.
func TestBadKeyUsesNothingUp(t *testing.T) {
	s := newSite(t)
	token := s.token()
	b, err := token.connect("")
	if err != nil {
		t.Fatal(err)
	}
	subject := messages.Subject("west", messages.Admission, messages.VerbEnrol, messages.ServiceIdentity(token.ID))
	if _, err := bus.Call[messages.EnrolReply](t.Context(), b, subject, messages.EnrolRequest{Key: "no key"}); messages.KindOf(err) != messages.Invalid {
		t.Errorf("a bad key: %v", err)
	}
	_ = b.Close()
	if err := Join(t.Context(), token, "", filepath.Join(t.TempDir(), "creds")); err != nil {
		t.Errorf("a good one afterwards: %v", err)
	}
}

func TestParseTokenRefuses(t *testing.T) {
	good := Token{Site: "west", Node: "node7", ID: "join-a", Servers: []string{"nats://x"}, Claim: "c", Seed: "s"}
	if again, err := ParseToken(" " + good.String() + "\n"); err != nil || again.Servers[0] != "nats://x" || again.Claim != "c" {
		t.Errorf("a good one: %+v %v", again, err)
	}
	bad := []string{"", "candor1-", "candor1-!!", "candor1-e30", good.String()[1:], good.String()[:len(good.String())-5], strings.Repeat("x", maxToken+1)}
	for _, change := range []func(*Token){
		func(t *Token) { t.Site = "W" }, func(t *Token) { t.Node = "" }, func(t *Token) { t.ID = "token" },
		func(t *Token) { t.ID = "join-a.b" }, func(t *Token) { t.Claim = "" }, func(t *Token) { t.Seed = "" },
	} {
		one := good
		change(&one)
		bad = append(bad, one.String())
	}
	for _, text := range bad {
		if _, err := ParseToken(text); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%.40q: %v, want Invalid", text, err)
		}
	}
	if _, err := jwt.DecodeUserClaims(good.Claim); err == nil {
		t.Error("the good one's claim is one: the test means nothing")
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add((&Token{Site: "west", Node: "n", ID: "join-a", Claim: "c", Seed: "s"}).String())
	f.Add("candor1-")
	f.Fuzz(func(t *testing.T, text string) {
		if token, err := ParseToken(text); err == nil {
			if again, err := ParseToken(token.String()); err != nil || again.ID != token.ID {
				t.Fatalf("what was read cannot be written: %v", err)
			}
			_ = token.expires()
		}
	})
}

// Many refusals of a user must leave the log small.
func TestRefusalsDoNotFillTheLog(t *testing.T) {
	s := newSite(t)
	alice := s.connect(identity.User, "alice")
	subject := messages.Subject("west", messages.Admission, messages.VerbRenew, "alice")
	const tries = 500
	began := time.Now()
	for range tries {
		if _, err := bus.Call[messages.RenewReply](t.Context(), alice, subject, messages.RenewRequest{Claim: "none"}); messages.KindOf(err) != messages.Invalid {
			t.Fatalf("a claim that is none: %v", err)
		}
	}
	most := maxRefusals * (2 + int(time.Since(began)/time.Second))
	if n := s.logged.Len(); n == 0 || n > most {
		t.Errorf("the log has %d lines of %d refusals, want 1 to %d", n, tries, most)
	}
	if n := s.counted("candor_admission_refused_total"); n != tries {
		t.Errorf("%v refusals were counted, want %d", n, tries)
	}
}
