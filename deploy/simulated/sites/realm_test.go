package sites

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/auctioneer"
	"github.com/candor-grid/candor/bank"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
	wiremsg "github.com/candor-grid/candor/messages/wire"
)

// realm is a group of sites on a bus in memory. The test can disturb the bus, and does the work of the agents.
type realm struct {
	testing.TB
	network *bus.Network
	ahead   atomic.Int64 // how far the clock is ahead of the wall clock, in microseconds

	mu                sync.Mutex
	hook              func(from messages.Name, subject string, send func() ([]byte, error)) ([]byte, error)
	off               messages.Name // a site that is cut off; "": none
	west, east, north *realmSite
}

type realmSite struct {
	*realm
	name       messages.Name
	bank       *bank.Bank
	auctioneer *auctioneer.Auctioneer
	config     auctioneer.Config
	bankLog    *mailbox.Memory
	log        *mailbox.Memory
	seq        uint64
	running    []messages.Attempt
}

type wire struct {
	bus.Bus
	realm *realm
	site  messages.Name
}

func (w wire) Request(ctx context.Context, subject string, payload []byte) ([]byte, error) {
	w.realm.mu.Lock()
	hook := w.realm.hook
	w.realm.mu.Unlock()
	send := func() ([]byte, error) { return w.Bus.Request(ctx, subject, payload) }
	if hook == nil {
		hook = func(_ messages.Name, _ string, send func() ([]byte, error)) ([]byte, error) { return send() }
	}
	if err := w.realm.apart(w.site, subject); err != nil {
		return nil, err
	}
	answer, err := hook(w.site, subject, send)
	if cut := w.realm.apart(w.site, subject); cut != nil { // the cut happened while the answer was on its way
		return nil, cut
	}
	return answer, err
}

// meddle makes all further requests of actors pass through the function `hook`.
func (r *realm) meddle(hook func(from messages.Name, subject string, send func() ([]byte, error)) ([]byte, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hook, r.off = hook, ""
}

// cut separates a site from the other sites, until meddle is called again. Messages on their way are lost.
func (r *realm) cut(site messages.Name) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hook, r.off = nil, site
}

func (r *realm) apart(from messages.Name, subject string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if to := strings.Split(subject, ".")[1]; r.off != "" && from != to && (from == r.off || to == r.off) {
		return messages.Errorf(messages.Unavailable, "the link is cut")
	}
	return nil
}

const realmFunds = 100 * messages.Credit

var realmMarkets = []market.Market{
	{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"cpu"}, Settle: market.SettleOnCompletion},
	{Name: "queue", Mechanism: market.BatchQueue, Classes: []messages.Name{"queue"}, Pricing: "pivot"},
}

// newRealm starts the sites west and east, which are peers. alice has an account at each.
func newRealm(t testing.TB) *realm {
	r := &realm{TB: t, network: bus.NewMemory()}
	r.west, r.east = r.start("west"), r.start("east")
	r.introduce(r.west, r.east)
	return r
}

func (r *realm) clock() messages.Time {
	return messages.TimeOf(time.Now()) + messages.Time(r.ahead.Load())
}

func (r *realm) start(name messages.Name, tune ...func(*auctioneer.Config)) *realmSite {
	r.Helper()
	s := &realmSite{realm: r, name: name}
	keys, err := nkeys.CreateAccount()
	if err != nil {
		r.Fatal(err)
	}
	s.bank, err = bank.Start(r.Context(), bank.Config{
		Site: name, Replica: "b", Bus: wire{r.network.Connect("$bank"), r, name}, Operators: []messages.Name{"ops"},
		Services: []messages.Name{"$auctioneer"}, Signer: keys, Clock: r.clock,
		ExpiryInterval: messages.Duration(5 * time.Millisecond), FirstBackoff: messages.Duration(time.Millisecond), LastBackoff: messages.Duration(20 * time.Millisecond),
		Open: func(m mailbox.Machine) (mailbox.Mailbox, error) {
			s.bankLog = mailbox.NewMemory(m)
			return s.bankLog, nil
		},
	})
	if err != nil {
		r.Fatal(err)
	}
	s.config = auctioneer.Config{
		Site: name, Replica: "a", Bus: wire{r.network.Connect("$auctioneer"), r, name}, Operators: []messages.Name{"ops"},
		Markets: realmMarkets, Clock: r.clock, Lease: messages.Duration(time.Hour),
		Open: func(m mailbox.Machine) (mailbox.Mailbox, error) {
			s.log = mailbox.NewMemory(m)
			return s.log, nil
		},
	}
	for _, f := range tune {
		f(&s.config)
	}
	s.open(s.config)
	r.Cleanup(func() { _ = s.auctioneer.Close(); _ = s.bank.Close() })
	s.serveAgent()
	tell[money.AccountReply](s, "ops", messages.Bank, messages.VerbGrant, money.GrantRequest{Key: "1", Account: "alice", Amount: realmFunds})
	tell[agent.RegisterReply](s, "n1", messages.Auctioneer, messages.VerbRegister,
		agent.RegisterRequest{Session: 7, Slots: []job.ClassSlots{{Class: "cpu", Slots: 4}}})
	return s
}

func (s *realmSite) open(c auctioneer.Config) {
	s.Helper()
	a, err := auctioneer.Start(s.Context(), c)
	if err != nil {
		s.Fatal(err)
	}
	s.auctioneer = a
}

// serveAgent answers requests for the output of the site's tasks.
func (s *realmSite) serveAgent() {
	sub, err := s.network.Connect("n1").Serve(bus.Service{Name: "agent", Version: "1.0.0", Endpoints: []bus.Endpoint{{
		Name: "logs", Subject: messages.LogsSubject(s.name, "n1", "*"),
		Handle: bus.Handle("logs", func(_ context.Context, caller messages.Name, q agent.LogsRequest) (agent.LogsReply, error) {
			text := fmt.Sprintf("%s of %s at %s\n", q.Attempt.Task, caller, s.name)
			return agent.LogsReply{Data: []byte(text), Next: int64(len(text)), End: true}, nil
		})}}})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = sub.Stop() })
}

// introduce makes two sites peers, each with a limit of 50 credits.
func (r *realm) introduce(a, b *realmSite) {
	r.Helper()
	for _, pair := range [][2]*realmSite{{a, b}, {b, a}} {
		key := tell[clearing.PeersReply](pair[1], "ops", messages.Bank, clearing.VerbPeers, messages.Empty{}).Key
		tell[clearing.PeerReply](pair[0], "ops", messages.Bank, clearing.VerbPeer, clearing.PeerRequest{Peer: pair[1].name, Keys: []string{key}, Limit: 50 * messages.Credit})
	}
}

func asks[Reply any](s *realmSite, caller messages.Name, actor, verb string, request any) (Reply, error) {
	ctx, cancel := context.WithTimeout(s.Context(), 20*time.Second)
	defer cancel()
	return bus.Call[Reply](ctx, s.network.Connect(caller), messages.Subject(s.name, actor, verb, caller), request)
}

func tell[Reply any](s *realmSite, caller messages.Name, actor, verb string, request any) Reply {
	s.Helper()
	reply, err := asks[Reply](s, caller, actor, verb, request)
	if err != nil {
		s.Fatalf("%s: %s by %s: %v", s.name, verb, caller, err)
	}
	return reply
}

func roamingSpec(tasks int, change ...func(*job.JobSpec)) job.JobSpec {
	spec := job.JobSpec{Name: "flights", Budget: 10 * messages.Credit,
		Stages: []job.Stage{{Name: "main", Class: "cpu", Tasks: tasks, Command: []string{"true"}}}}
	for _, f := range change {
		f(&spec)
	}
	return spec
}

func (s *realmSite) submit(key string, site messages.Name, spec job.JobSpec) job.SubmitReply {
	s.Helper()
	return tell[job.SubmitReply](s, "alice", messages.Auctioneer, messages.VerbSubmit, job.SubmitRequest{Key: key, Spec: spec, Site: site})
}

func (s *realmSite) job(id messages.JobID) job.JobDetail {
	s.Helper()
	return tell[job.JobDetail](s, "alice", messages.Auctioneer, messages.VerbJob, job.JobRequest{Job: id})
}

func (s *realmSite) why(id messages.JobID) market.WhyReply {
	s.Helper()
	return tell[market.WhyReply](s, "alice", messages.Auctioneer, messages.VerbWhy, job.JobRequest{Job: id})
}

// claim makes the site's node claim the tasks that it can, once.
func (s *realmSite) claim() {
	s.Helper()
	if free := 4 - len(s.running); free > 0 {
		s.exchange(agent.Exchange{Claims: []agent.Claim{{Market: "main", Class: "cpu", Slots: free}}})
	}
}

func (s *realmSite) exchange(x agent.Exchange) {
	s.Helper()
	s.seq++
	x.Session, x.Seq = 7, s.seq
	reply := tell[agent.ExchangeReply](s, "n1", messages.Auctioneer, messages.VerbExchange, x)
	for _, g := range reply.Grants {
		s.running = append(s.running, g.Attempt)
	}
}

// finish makes all running tasks of the site's node end successfully.
func (s *realmSite) finish() {
	s.Helper()
	var x agent.Exchange
	for _, a := range s.running {
		x.Finished = append(x.Finished, agent.Finished{Attempt: a})
	}
	s.running = nil
	s.exchange(x)
}

// runs makes the site's node run tasks until the given number of tasks has finished.
func (s *realmSite) runs(tasks int) {
	s.Helper()
	for done := 0; done < tasks; {
		await.Until(s, "there is a task to run", func() bool { s.claim(); return len(s.running) > 0 })
		done += len(s.running)
		s.finish()
	}
}

// This method waits until a job has ended in the book of its home site, and returns the job.
func (s *realmSite) ends(id messages.JobID) (job job.JobDetail) {
	s.Helper()
	await.Until(s, "the job has ended", func() bool { return s.known(id).State.Final() })
	return s.job(id)
}

// known returns what a site knows about a job without asking another site.
func (s *realmSite) known(id messages.JobID) job.JobSummary {
	s.Helper()
	return tell[job.JobsReply](s, "alice", messages.Auctioneer, messages.VerbJobs, job.JobsRequest{Before: id + 1, Limit: 1}).Jobs[0]
}

// This method sends a request to a site's auctioneer, without a retry.
func (s *realmSite) once(caller messages.Name, verb string, request any) error {
	s.Helper()
	payload, err := wiremsg.Marshal(request, wiremsg.Msgpack)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.Context(), 20*time.Second)
	defer cancel()
	_, err = s.network.Connect(caller).Request(ctx, messages.Subject(s.name, messages.Auctioneer, verb, caller), payload)
	return err
}

func (s *realmSite) account(name messages.Name) money.AccountReply {
	s.Helper()
	return tell[money.AccountReply](s, "ops", messages.Bank, messages.VerbAccount, money.AccountRequest{Account: name})
}

// settled waits until nothing is in flight between the banks, and checks that no credit appeared or was lost.
func (r *realm) settled(sites ...*realmSite) {
	r.Helper()
	if len(sites) == 0 {
		sites = []*realmSite{r.west, r.east}
	}
	await.Until(r, "the banks agree", func() bool {
		var owed messages.Credits
		for _, s := range sites {
			reply := tell[clearing.PeersReply](s, "ops", messages.Bank, clearing.VerbPeers, messages.Empty{})
			for _, p := range reply.Peers {
				if p.Outstanding > 0 || p.Held > 0 || p.Dispute != "" {
					return false
				}
				owed += p.Owed
			}
		}
		return owed == 0
	})
	for _, s := range sites {
		if b := tell[money.BooksReply](s, "ops", messages.Bank, messages.VerbBooks, messages.Empty{}); !b.Balanced || b.Issued != realmFunds || b.Held != 0 {
			r.Errorf("the books of %s: %+v", s.name, b)
		}
		if fault := tell[clearing.PeersReply](s, "ops", messages.Bank, clearing.VerbPeers, messages.Empty{}).Fault; fault != "" {
			r.Errorf("%s: %s", s.name, fault)
		}
	}
}
