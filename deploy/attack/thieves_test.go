package attack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/admission"
	"github.com/candor-grid/candor/deploy/identity/natstest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/schema"
)

// fromThieves makes the attempts of somebody who has found a join token, or revoked credentials.
func fromThieves(t *testing.T, s *site) (attempts []attempt) {
	t.Helper()
	for _, try := range []struct {
		what string
		do   func(*site) (effect string, refusal error)
	}{
		{"uses a join token a second time", (*site).replaysToken},
		{"uses a join token that has expired, was revoked, guessed or made by another site", (*site).forgesTokens},
		{"does more with a join token than enrol", (*site).abusesToken},
		{"is another node with what a join token gave", (*site).isAnotherNode},
		{"has a connection with credentials that are revoked", (*site).staysConnected},
		{"connects with credentials that were revoked", (*site).connectsRevoked},
	} {
		effect, err := try.do(s)
		a := attempt{What: "a thief " + try.what, Effect: effect}
		if err != nil {
			a.Refusal = err.Error()
		}
		attempts = append(attempts, a)
	}
	return attempts
}

func (s *site) token(node messages.Name, life time.Duration) *admission.Token {
	s.Helper()
	reply := ask[messages.TokenReply](s, "operator", messages.Admission, messages.VerbToken, messages.TokenRequest{Node: node, Expires: messages.Duration(life)})
	token, err := admission.ParseToken(reply.Token)
	if err != nil {
		s.Fatal(err)
	}
	return token
}

func (s *site) joins(t *admission.Token) (file string, err error) {
	file = filepath.Join(s.TempDir(), "joined.creds")
	return file, admission.Join(s.within(), t, s.url, file)
}

func (s *site) replaysToken() (string, error) {
	token := s.token("node91", time.Hour)
	if _, err := s.joins(token); err != nil {
		s.Fatalf("the first use: %v", err)
	}
	if _, err := s.joins(token); err != nil {
		return "", err
	}
	return "got credentials of node91", nil
}

func (s *site) forgesTokens() (effect string, refusal error) {
	authority, err := identity.Create(filepath.Join(s.TempDir(), "keys"), s.name)
	if err != nil {
		return "", err
	}
	good := s.token("node92", time.Hour)
	ask[messages.TokenState](s, "operator", messages.Admission, messages.VerbForget, messages.TokenUse{ID: good.ID})
	guessed, foreign, renamed := *good, *good, *s.token("node93", time.Hour)
	guessed.ID = "join-aaaaaaaaaaaaaaaa"
	made, err := authority.JoinCredentials(good.ID, time.Now().Add(time.Hour))
	if err != nil {
		return "", err
	}
	foreign.Claim, foreign.Seed = made.Token, made.Seed
	renamed.ID = "join-bbbbbbbbbbbbbbbb" // uses the name of another token
	ended := s.token("node94", 2*time.Second)
	await.Until(s.T, "the token has expired", func() bool {
		nc, err := nats.Connect(s.url, nats.UserJWTAndSeed(ended.Claim, ended.Seed))
		if err == nil {
			nc.Close()
		}
		return err != nil
	})
	for what, token := range map[string]*admission.Token{"revoked": good, "guessed": &guessed, "of another site's key": &foreign, "renamed": &renamed, "expired": ended} {
		if _, err := s.joins(token); err == nil {
			effect += "a token that is " + what + " gave credentials; "
		} else {
			refusal = err
		}
	}
	return effect, refusal
}

// abusesToken publishes and listens on every subject, with the token's own credentials.
func (s *site) abusesToken() (string, error) {
	token := s.token("node95", time.Hour)
	a := &attacker{site: s, name: messages.ServiceIdentity(token.ID), refused: make(chan error, 1000)}
	nc, err := nats.Connect(s.url, nats.UserJWTAndSeed(token.Claim, token.Seed), nats.CustomInboxPrefix(messages.InboxPrefix(a.name)),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			select {
			case a.refused <- err:
			default:
			}
		}))
	if err != nil {
		return "", err
	}
	defer nc.Close()
	a.nc = nc
	subjects := a.forgeable()
	for _, v := range schema.Verbs() {
		for _, name := range []messages.Name{a.name, "node95", "node1", "alice"} {
			if v.Verb != messages.VerbEnrol || name != a.name {
				subjects = append(subjects, messages.Subject(s.name, v.Actor, v.Verb, name))
			}
		}
	}
	return a.publishedWithout(subjects, "")
}

// isAnotherNode sends requests under the names of another node, a user and a service, with the credentials of node96.
func (s *site) isAnotherNode() (string, error) {
	file, err := s.joins(s.token("node96", time.Hour))
	if err != nil {
		s.Fatal(err)
	}
	b := s.connected("node96", file)
	for _, name := range []messages.Name{"node1", "alice", "$bank"} {
		for _, verb := range []string{messages.VerbRegister, messages.VerbExchange, messages.VerbSubmit, market.VerbDrain} {
			ctx, cancel := context.WithTimeout(s.Context(), patience)
			_, err = b.Request(ctx, messages.Subject(s.name, messages.Auctioneer, verb, name), []byte("\x90"))
			cancel()
			if messages.KindOf(err) != messages.PermissionDenied || !strings.Contains(err.Error(), "credentials") {
				return fmt.Sprintf("spoke as %s: %v", name, err), nil
			}
		}
	}
	return "", err
}

func (s *site) stolen() string {
	text, err := os.ReadFile(s.creds("carol"))
	file := filepath.Join(s.TempDir(), "stolen.creds")
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		s.Fatal(err)
	}
	return file
}

func (s *site) staysConnected() (string, error) {
	lost := make(chan struct{})
	nc, err := nats.Connect(s.url, nats.UserCredentials(s.stolen()), nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { close(lost) }))
	if err != nil {
		return "", err
	}
	defer nc.Close()
	if out, err := s.revokes("carol"); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	select {
	case <-lost:
		return "", fmt.Errorf("the connection was cut: %v", nc.LastError())
	case <-time.After(patience):
		return "is still connected", nil
	}
}

func (s *site) revokes(name messages.Name) (string, error) {
	path, err := binary()
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(s.within(), path, "user", "revoke", name, "--state", s.state)
	command.SysProcAttr, command.Dir = &syscall.SysProcAttr{Credential: s.user}, filepath.Dir(s.state)
	text, err := command.CombinedOutput()
	return string(text), err
}

func (s *site) connectsRevoked() (string, error) {
	old := s.stolen()
	if _, err := s.revokes("carol"); err != nil {
		return "", err
	}
	var refusal error
	await.Until(s.T, "the revocation holds", func() bool {
		b, err := bus.Connect(bus.Config{URL: s.url, Name: "carol", CredsFile: old})
		if err == nil {
			_ = b.Close()
		}
		refusal = err
		return err != nil
	})
	return "", refusal
}

// TestAttackOfPeer publishes and listens on every subject as the owner of a peer site, whose servers obey no rules and
// have the peer's credentials.
func TestAttackOfPeer(t *testing.T) {
	t.Parallel()
	s := up(t, "--sites", "west,east")
	peer := s.peer("east")
	spoke := attempt{What: "a peer's servers speak on subjects beyond its own"}
	heard := attempt{What: "a peer's servers hear what is not theirs"}
	var mu sync.Mutex
	came := map[string]bool{}
	const word = "a word of the peer's"
	witness := s.conn("$bank", s.issued(identity.Service, "$bank"))
	if _, err := witness.Subscribe(">", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		came[m.Subject] = came[m.Subject] || string(m.Data) == word
	}); err != nil {
		t.Fatal(err)
	}
	var allowed, addressed []string // subjects that the peer may use, and subjects of requests to the peer
	for _, v := range clearing.PeerVerbs() {
		allowed = append(allowed, v.Subject("east", "west"))
		addressed = append(addressed, v.Subject("west", "east"))
	}
	var overheard, answers sync.Map
	if _, err := peer.Subscribe(">", func(m *nats.Msg) {
		switch {
		case slices.Contains(allowed, m.Subject) || slices.Contains(addressed, m.Subject): // the sites' own messages
			answers.Store(m.Reply, true)
		case !strings.HasPrefix(m.Subject, "_INBOX.") && !strings.HasPrefix(m.Subject, "$SYS.") && string(m.Data) != word:
			overheard.Store(m.Subject, true)
		}
	}); err != nil {
		t.Fatal(err)
	}
	s.flush(witness, peer)
	for _, subject := range s.everySubject() {
		if err := peer.PublishMsg(&nats.Msg{Subject: subject, Reply: "_INBOX.x", Data: []byte(word)}); err != nil {
			t.Fatal(err)
		}
	}
	reply := ask[job.SubmitReply](s, "alice", messages.Auctioneer, messages.VerbSubmit, job.SubmitRequest{Key: "unheard",
		Spec: job.JobSpec{Budget: messages.Credit, Stages: []job.Stage{{Name: "main", Script: "true"}}}})
	s.job("alice", reply.Job, func(j job.JobDetail) bool { return j.State.Final() })
	// The peer publishes on an allowed subject at the end. When this message arrives, all earlier messages have arrived
	// too.
	await.Until(t, "the peer is heard", func() bool {
		_ = peer.Publish(allowed[0], []byte(word))
		s.flush(peer, witness)
		mu.Lock()
		defer mu.Unlock()
		return came[allowed[0]]
	})
	for subject, itsOwn := range came {
		if itsOwn && !slices.Contains(allowed, subject) {
			spoke.Effect += subject + " "
		}
	}
	overheard.Range(func(subject, _ any) bool {
		if _, own := answers.Load(subject); !own {
			heard.Effect += fmt.Sprint(subject, " ")
		}
		return true
	})
	spoke.Refusal = fmt.Sprintf("of %d subjects, what banks and auctioneers ask of each other alone passes", len(s.everySubject()))
	heard.Refusal = "nothing of the site's passes"
	s.judge([]attempt{spoke, heard})
}

func (s *site) flush(all ...*nats.Conn) {
	s.Helper()
	for _, nc := range all {
		if err := nc.FlushTimeout(patience); err != nil {
			s.Fatal(err)
		}
	}
}

// everySubject returns the subjects of all requests to the site, from each possible sender, and of other messages that
// are worth forging.
func (s *site) everySubject() []string {
	all := (&attacker{site: s}).forgeable()
	for _, v := range schema.Verbs() {
		for _, name := range []messages.Name{"$east", "$west", "$auctioneer", "$bank", "alice", "operator", "node1"} {
			all = append(all, messages.Subject(s.name, v.Actor, v.Verb, name))
		}
	}
	return append(all, messages.LogsSubject(s.name, "node1", "alice"), agent.StreamSubject(s.name, "node1", "alice"), "$SRV.PING", "$SRV.STATS")
}

// peer returns a connection to a NATS server that is linked to the site with the peer's credentials.
func (s *site) peer(name messages.Name) *nats.Conn {
	s.Helper()
	authority, err := identity.Open(filepath.Join(s.state, "keys"))
	if err != nil {
		s.Fatal(err)
	}
	creds, err := authority.IssueLink(name)
	if err != nil {
		s.Fatal(err)
	}
	own := natstest.Run(s, natstest.Stranger(s, s.leaf, creds))
	await.Until(s.T, "the peer's server is linked", func() bool { return own.NumLeafNodes() == 1 })
	nc, err := nats.Connect(own.ClientURL())
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(nc.Close)
	return nc
}
