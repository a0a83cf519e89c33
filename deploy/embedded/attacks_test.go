package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/quota"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/admission"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// fort is a site under attack. It counts the attacks in its metrics.
type fort struct {
	*testing.T
	*Site
}

// TestAttacks makes the attacks that users, nodes and strangers can try over NATS. Each must be refused and counted.
func TestAttacks(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Replicas = 1
	c.Limits = quota.Rules{PerSecond: 0.001, Burst: 20, PendingJobs: 50}
	s, err := Start(within(t), c, Options{Metrics: true, Log: logged(t, zap.ErrorLevel)})
	if err != nil {
		t.Fatal(err)
	}
	defer closeSite(t, s)
	f := fort{t, s}
	for _, attack := range []struct {
		name string
		do   func(fort)
	}{
		{"another's name", fort.anothersName}, {"a forged account", fort.forgedAccount}, {"listening", fort.listening},
		{"a node without a token", fort.nodeWithoutToken}, {"a token again", fort.tokenAgain},
		{"answers elsewhere", fort.reflection}, {"what the site hears", fort.insides}, {"a flood of bids", fort.flood}, {"leaked credentials", fort.leaked},
	} {
		t.Run(attack.name, func(t *testing.T) { attack.do(fort{t, s}) })
	}
	alice := connect(t, s, "alice")
	if job := alice.final(alice.submit("after all", twoStages(t.TempDir(), messages.Credit))); job.State != jobmsg.Completed {
		t.Errorf("alice's job ended %v", job.State)
	}
	books := request[money.BooksReply](f.as("operator"), messages.Bank, messages.VerbBooks, money.BooksRequest{Full: true})
	if !books.Balanced {
		t.Errorf("the books: %s", books.Message)
	}
}

func (f fort) as(name messages.Name) user { return connect(f.T, f.Site, name) }

func (f fort) raw(name messages.Name) *nats.Conn {
	f.Helper()
	nc, err := nats.Connect(f.URL(), nats.Timeout(patience), nats.UserCredentials(f.CredsFile(name)), nats.CustomInboxPrefix(messages.InboxPrefix(name)),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(nc.Close)
	return nc
}

// counted returns the sum of a metric over all series with a label. The argument `label` has the form "name=value".
func (f fort) counted(metric, label string) (sum float64) {
	f.Helper()
	all, err := f.Gatherer().Gather()
	if err != nil {
		f.Fatal(err)
	}
	for _, family := range all {
		for _, m := range family.Metric {
			labels := ""
			for _, l := range m.Label {
				labels += l.GetName() + "=" + l.GetValue() + ","
			}
			if family.GetName() == metric && strings.Contains(labels, label) {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// grows makes an attack, and waits until a metric has grown. It must wait, because the attacker may hear of the refusal
// before the metric counts it.
func (f fort) grows(metric, label string, attack func()) {
	f.Helper()
	before := f.counted(metric, label)
	attack()
	await.Until(f.T, fmt.Sprintf("%s{%s} grows above %v", metric, label, before), func() bool { return f.counted(metric, label) > before })
}

func (f fort) anothersName() {
	mallory := f.as("bob")
	f.grows("candor_nats_refused_total", "what=publish", func() {
		subject := messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "alice")
		_, err := bus.Call[jobmsg.SubmitReply](within(f.T), mallory.bus, subject, jobmsg.SubmitRequest{Key: "k", Spec: twoStages("/tmp", messages.Credit)})
		if messages.KindOf(err) != messages.PermissionDenied {
			f.Errorf("a job in another's name: %v", err)
		}
	})
	if jobs := request[jobmsg.JobsReply](f.as("alice"), messages.Auctioneer, messages.VerbJobs, jobmsg.JobsRequest{}); len(jobs.Jobs) != 0 {
		f.Errorf("alice has jobs: %+v", jobs.Jobs)
	}
}

// forgedAccount sends requests with the credentials of bob, but with the name of another account: in a header, then in
// an unknown field, and then in the field of the request that names an account.
func (f fort) forgedAccount() {
	nc := f.raw("bob")
	m := nats.NewMsg(messages.Subject("west", messages.Bank, messages.VerbAccount, "bob"))
	for _, header := range []string{"Candor-Account", "Account", "Nats-User", "X-User"} {
		m.Header.Set(header, "alice")
	}
	m.Header.Set("Content-Type", "application/json")
	m.Data = []byte(`{}`)
	reply, err := nc.RequestMsg(m, patience)
	var account money.AccountReply
	if err == nil {
		err = json.Unmarshal(reply.Data, &account)
	}
	if err != nil || account.Account != "bob" {
		f.Errorf("with alice in the headers the account is %q: %v", account.Account, err)
	}
	ask := func(actor, verb, payload string) string {
		m := nats.NewMsg(messages.Subject("west", actor, verb, "bob"))
		m.Header.Set("Content-Type", "application/json")
		m.Data = []byte(payload)
		reply, err := nc.RequestMsg(m, patience)
		if err != nil {
			f.Fatal(err)
		}
		return reply.Header.Get("Nats-Service-Error-Code")
	}
	f.grows("candor_bank_turned_down_total", "kind=PermissionDenied", func() {
		for payload, kind := range map[string]string{`{"account":"alice"}`: "PermissionDenied", `{"caller":"alice"}`: "Invalid"} {
			if got := ask(messages.Bank, messages.VerbStatement, payload); got != kind {
				f.Errorf("statement %s: %q, want %s", payload, got, kind)
			}
		}
	})
	if got := ask(messages.Auctioneer, messages.VerbJobs, `{"account":"alice"}`); got != "PermissionDenied" {
		f.Errorf("alice's jobs: %q", got)
	}
}

// listening tries to subscribe to the replies of all users, and to subjects that are not the user's own.
func (f fort) listening() {
	mallory := f.raw("bob")
	var heard atomic.Int64
	f.grows("candor_nats_refused_total", "what=subscribe", func() {
		for _, subject := range []string{"_INBOX.>", "_INBOX_alice.>", messages.InboxPrefix("alice") + ".*", "candor.>", ">",
			messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "*"), "*.*.*.*.alice", messages.VectorSubject("west", "main")} {
			if _, err := mallory.Subscribe(subject, func(*nats.Msg) { heard.Add(1) }); err != nil {
				f.Fatal(err)
			}
		}
		if err := mallory.FlushTimeout(patience); err != nil {
			f.Fatal(err)
		}
	})
	alice := f.as("alice")
	alice.final(alice.submit("overheard", twoStages(f.TempDir(), messages.Credit)))
	if err := mallory.FlushTimeout(patience); err != nil {
		f.Fatal(err)
	}
	if n := heard.Load(); n != 0 {
		f.Errorf("%d messages of others were heard", n)
	}
}

// nodeWithoutToken starts an agent without credentials, and one with a user's credentials. The site must refuse both.
func (f fort) nodeWithoutToken() {
	f.grows("candor_nats_refused_total", "what=connect", func() {
		if b, err := bus.Connect(bus.Config{URL: f.URL(), Name: "node9"}); messages.KindOf(err) != messages.PermissionDenied {
			f.Errorf("a connection without credentials: %v %v", b, err)
		}
	})
	f.grows("candor_nats_refused_total", "what=publish", func() {
		register := agentmsg.RegisterRequest{Session: 7, Slots: []jobmsg.ClassSlots{{Class: "map", Slots: 100}}}
		_, err := bus.Call[agentmsg.RegisterReply](within(f.T), f.as("bob").bus, messages.Subject("west", messages.Auctioneer, messages.VerbRegister, "bob"), register)
		if messages.KindOf(err) != messages.PermissionDenied {
			f.Errorf("a user registers as a node: %v", err)
		}
	})
	f.grows("candor_nats_refused_total", "what=publish", func() {
		_, err := bus.Call[messages.EnrolReply](within(f.T), f.as("bob").bus, messages.Subject("west", messages.Admission, messages.VerbEnrol, "bob"), messages.EnrolRequest{Key: "UA"})
		if messages.KindOf(err) != messages.PermissionDenied {
			f.Errorf("a user enrols: %v", err)
		}
	})
	if nodes := request[market.NodesReply](f.as("alice"), messages.Auctioneer, messages.VerbNodes, messages.Empty{}); len(nodes.Nodes) != len(f.config.Nodes) {
		f.Errorf("the nodes are %+v", nodes.Nodes)
	}
}

// tokenAgain uses a token twice, and uses a token that was revoked. Only the first use may succeed.
func (f fort) tokenAgain() {
	operator := f.as("operator")
	token := func() *admission.Token {
		reply := request[messages.TokenReply](operator, messages.Admission, messages.VerbToken, messages.TokenRequest{Node: "node7", Expires: messages.Duration(time.Hour)})
		t, err := admission.ParseToken(reply.Token)
		if err != nil {
			f.Fatal(err)
		}
		return t
	}
	used, revoked := token(), token()
	if err := admission.Join(within(f.T), used, "", filepath.Join(f.TempDir(), "node7.creds")); err != nil {
		f.Fatalf("the first use: %v", err)
	}
	request[messages.TokenState](operator, messages.Admission, messages.VerbForget, messages.TokenUse{ID: revoked.ID})
	f.grows("candor_admission_refused_total", "kind=PermissionDenied", func() {
		for what, t := range map[string]*admission.Token{"used": used, "revoked": revoked} {
			file := filepath.Join(f.TempDir(), "thief.creds")
			if err := admission.Join(within(f.T), t, "", file); messages.KindOf(err) != messages.PermissionDenied {
				f.Errorf("a token that was %s: %v", what, err)
			}
			if _, err := os.Stat(file); err == nil {
				f.Errorf("a token that was %s left credentials", what)
			}
		}
	})
	list := request[messages.TokensReply](operator, messages.Admission, messages.VerbTokens, messages.Empty{})
	if len(list.Tokens) != 2 || list.Tokens[0].Used == 0 || !list.Tokens[1].Revoked {
		f.Errorf("the tokens are %+v", list.Tokens)
	}
}

// flood sends 600 bids of one account at once. Meanwhile another account submits 10 bids. Of the 600 bids, only the
// first may be accepted. The other account must get an answer to every bid, and none may be refused.
func (f fort) flood() {
	const bids, few = 600, 10
	mallory, alice := f.as("bob"), f.as("alice")
	subject := messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "bob")
	var taken, limited, unknown atomic.Int64
	var flood sync.WaitGroup
	f.grows("candor_auctioneer_limited_total", "limit=rate", func() {
		for i := range bids {
			flood.Go(func() {
				ctx, cancel := context.WithTimeout(f.Context(), patience)
				defer cancel()
				spec := twoStages("/tmp", messages.Credit)
				spec.Stages[0].Tasks, spec.Stages[0].Script, spec.Stages = 1, "true", spec.Stages[:1]
				switch _, err := bus.Call[jobmsg.SubmitReply](ctx, mallory.bus, subject, jobmsg.SubmitRequest{Key: fmt.Sprint("flood", i), Spec: spec}); {
				case err == nil:
					taken.Add(1)
				case messages.KindOf(err) == messages.Exhausted:
					limited.Add(1)
				case messages.KindOf(err) == messages.Unknown: // the request got no answer, for example on a busy machine
					unknown.Add(1)
				default:
					f.Errorf("bid %d: %v", i, err)
				}
			})
		}
		var meanwhile []messages.JobID
		for i := range few {
			meanwhile = append(meanwhile, alice.submit(fmt.Sprint("meanwhile", i), twoStages(f.TempDir(), messages.Credit/100)))
		}
		flood.Wait()
		for _, job := range meanwhile { // a task that still writes would stop the removal of the directory
			if end := alice.final(job); end.State != jobmsg.Completed {
				f.Errorf("alice's job %d ended %v", job, end.State)
			}
		}
	})
	if burst := int64(f.config.Limits.Burst); taken.Load() > burst || taken.Load()+unknown.Load() < burst {
		f.Errorf("of %d bids %d were taken, %d limited, and %d have no known outcome", bids, taken.Load(), limited.Load(), unknown.Load())
	}
}

// leaked revokes credentials on a running site. They must then be refused, and new credentials must work.
func (f fort) leaked() {
	copied := filepath.Join(f.TempDir(), "carol.creds")
	creds, err := os.ReadFile(f.CredsFile("carol"))
	if err == nil {
		err = os.WriteFile(copied, creds, 0o600)
	}
	if err != nil {
		f.Fatal(err)
	}
	lost := make(chan struct{})
	nc, err := nats.Connect(f.URL(), nats.Timeout(patience), nats.UserCredentials(copied), nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { close(lost) }))
	if err != nil {
		f.Fatal(err)
	}
	defer nc.Close()
	bystander := f.as("alice")
	operator, err := identity.Open(f.config.KeysDir()) // opens the keys as another process on the same host does
	if err == nil {
		err = operator.Revoke(identity.User, "carol")
	}
	if err != nil {
		f.Fatal(err)
	}
	select {
	case <-lost:
	case <-within(f.T).Done():
		f.Fatal("the thief is still connected")
	}
	f.grows("candor_nats_refused_total", "what=connect", func() {
		if _, err := bus.Connect(bus.Config{URL: f.URL(), Name: "carol", CredsFile: copied}); messages.KindOf(err) != messages.PermissionDenied {
			f.Errorf("the thief connects again: %v", err)
		}
	})
	await.Until(f.T, "carol has new credentials", func() bool {
		now, err := os.ReadFile(f.CredsFile("carol"))
		return err == nil && string(now) != string(creds)
	})
	if a := f.as("carol").account(); a.Account != "carol" {
		f.Errorf("carol is %+v", a)
	}
	bystander.account()
}
