package embedded

import (
	"context"
	"encoding/json"
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

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// cluster is a site of three hosts. Each host is a process of the real binary.
type cluster struct {
	*testing.T
	binary string
	config string // configuration file
	dir    string
	Config
	processes map[messages.Name]*await.Process
}

// binary builds the program once for all tests that start it. TestMain removes it.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "candor-embedded")
	if err != nil {
		return "", err
	}
	built = dir
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "candor"), "./cmd/candor")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the binary: %w\n%s", err, out)
	}
	return filepath.Join(dir, "candor"), nil
})

var built string

func newCluster(t *testing.T) *cluster {
	c := &cluster{T: t, dir: t.TempDir(), processes: map[messages.Name]*await.Process{}}
	built, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	// The binary's unique name keeps other processes from counting as part of this cluster.
	c.binary = filepath.Join(c.dir, "candor")
	if err := os.Link(built, c.binary); err != nil {
		t.Fatal(err)
	}
	c.Config = Default()
	c.Markets[0].Settle = market.SettleOnCompletion
	c.State = filepath.Join(c.dir, "state")
	c.Keys = filepath.Join(c.dir, "keys")
	c.Lease = messages.Duration(10 * time.Second)
	c.Replicas = 0
	c.Hosts = ownAddresses(t)
	if _, err := identity.Create(c.Keys, c.Site); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(&c.Config) // JSON is valid YAML
	if err != nil {
		t.Fatal(err)
	}
	c.config = filepath.Join(c.dir, "site.yaml")
	if err := os.WriteFile(c.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.stopAll)
	return c
}

func (c *cluster) start(host messages.Name) *await.Process {
	c.Helper()
	p := await.Start(c, exec.Command(c.binary, "up", "--config", c.config, "--host", host,
		"--state", filepath.Join(c.dir, host), "--log-level", "warn"), "is up")
	c.processes[host] = p
	return p
}

func (c *cluster) awaitUp(p *await.Process) {
	c.Helper()
	select {
	case <-p.Found:
	case <-p.Ended:
		c.Fatalf("%v ended:\n%s", p.Args, p.Output)
	case <-within(c.T).Done():
		c.Fatalf("%v is not up:\n%s", p.Args, p.Output)
	}
}

func (c *cluster) kill(host messages.Name) {
	c.Helper()
	p := c.processes[host]
	if p == nil {
		c.Fatalf("there is no host %q to kill", host)
	}
	if err := p.Process.Kill(); err != nil {
		c.Fatal(err)
	}
	<-p.Ended
	delete(c.processes, host)
}

func (c *cluster) stopAll() {
	for _, p := range c.processes {
		_ = p.Process.Signal(syscall.SIGTERM) // not SIGINT, which a process may have inherited as ignored
	}
	for host, p := range c.processes {
		select {
		case <-p.Ended:
		case <-time.After(patience):
			_ = p.Process.Signal(syscall.SIGQUIT) // the process prints its stacks, if it can
			select {
			case <-p.Ended:
			case <-time.After(10 * time.Second):
				_ = p.Process.Kill()
				<-p.Ended
			}
			c.Errorf("host %s did not stop:\n%s", host, p.Output)
		}
		if c.Failed() {
			c.Logf("host %s printed:\n%s", host, p.Output)
		}
	}
}

// connect connects a user to the cluster, at any server that answers.
func (c *cluster) connect(name messages.Name) user {
	c.Helper()
	var urls []string
	for _, h := range c.Hosts {
		urls = append(urls, "nats://"+h.Listen)
	}
	b, err := bus.Connect(bus.Config{URL: strings.Join(urls, ","), Name: name, CredsFile: CredsFile(filepath.Join(c.dir, c.Hosts[0].Name), name), Retry: true})
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = b.Close() })
	return user{c.T, b, c.Site, name}
}

func (u user) leader(actor string) messages.Name {
	u.Helper()
	return request[messages.StatusReply](u, actor, messages.VerbStatus, messages.Empty{}).Leader
}

func work() jobmsg.JobSpec {
	return jobmsg.JobSpec{
		Budget: messages.Credit,
		Stages: []jobmsg.Stage{
			{Name: "map", Class: "map", Tasks: 4, Command: []string{"sleep", "0.05"}},
			{Name: "reduce", Class: "reduce", After: []messages.Name{"map"}, Command: []string{"true"}},
		},
	}
}

type submission struct {
	key string
	job messages.JobID
}

// load submits jobs, one after another, until stop is closed. It sends each acknowledged job to the channel. Like any
// client, it repeats unanswered requests with their key.
func (u user) load(stop <-chan struct{}, prefix string) <-chan submission {
	acknowledged := make(chan submission)
	ctx := within(u.T)
	go func() {
		defer close(acknowledged)
		every := time.NewTicker(50 * time.Millisecond)
		defer every.Stop()
		for i := 0; ; i++ {
			s := submission{key: fmt.Sprintf("%s-%d", prefix, i)}
			var err error
			if s.job, err = u.insist(ctx, s.key); err != nil {
				u.Errorf("submission %s: %v", s.key, err)
				return
			}
			select {
			case acknowledged <- s:
			case <-ctx.Done():
				return
			}
			select {
			case <-stop:
				return
			case <-every.C:
			}
		}
	}()
	return acknowledged
}

// insist repeats a submission with a key until there is an answer.
func (u user) insist(ctx context.Context, key string) (messages.JobID, error) {
	subject := messages.Subject(u.site, messages.Auctioneer, messages.VerbSubmit, u.name)
	for {
		reply, err := bus.Call[jobmsg.SubmitReply](ctx, u.bus, subject, jobmsg.SubmitRequest{Key: key, Spec: work()})
		if err == nil || ctx.Err() != nil || !messages.KindOf(err).Retriable() {
			return reply.Job, err
		}
	}
}

// TestKilledLeaderLosesNothing kills the leaders of the auctioneer and then of the bank with kill -9, while users
// submit. All acknowledged jobs must finish and be paid once. The killed processes must come back with their stored
// state.
func TestKilledLeaderLosesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for _, h := range c.Hosts {
		c.start(h.Name)
	}
	for _, p := range c.processes {
		c.awaitUp(p)
	}
	alice, operator := c.connect("alice"), c.connect("operator")
	all := c.killUnderLoad(alice, operator, messages.Auctioneer)
	all = append(all, c.killUnderLoad(alice, operator, messages.Bank)...)
	c.checkWork(alice, all)
	c.checkMoney(alice, operator, len(all))
}

// killUnderLoad kills the process that leads an actor while alice submits. It starts the process again when submissions
// continue.
func (c *cluster) killUnderLoad(alice, operator user, actor string) (acknowledged []submission) {
	c.Helper()
	const enough = 10
	stop := make(chan struct{})
	load := alice.load(stop, actor)
	take := func(n int) {
		for range n {
			if s, ok := <-load; ok {
				acknowledged = append(acknowledged, s)
			}
		}
	}
	take(enough)
	host := operator.leader(actor)
	c.kill(host)
	take(enough)
	await.Until(c, "another leads the "+actor+" after the death of "+host, func() bool {
		led := operator.leader(actor)
		return led != host && led != ""
	})
	close(stop)
	for s := range load {
		acknowledged = append(acknowledged, s)
	}
	c.awaitUp(c.start(host))
	return acknowledged
}

// Every acknowledged job must exist once, under its number, and be completed.
func (c *cluster) checkWork(alice user, acknowledged []submission) {
	c.Helper()
	key := map[messages.JobID]string{}
	for _, s := range acknowledged {
		if other, twice := key[s.job]; twice {
			c.Errorf("job %d was acknowledged for %s and for %s", s.job, s.key, other)
		}
		key[s.job] = s.key
		if job := alice.final(s.job); job.State != jobmsg.Completed || job.Done != 5 {
			c.Errorf("job %d, acknowledged, ended %v with %d of 5 tasks done", s.job, job.State, job.Done)
		}
		if again := alice.submit(s.key, work()); again != s.job {
			c.Errorf("submission %s was acknowledged as job %d and is job %d when repeated", s.key, s.job, again)
		}
	}
}

// Each job must be charged once, no hold may be left, and the books must balance.
func (c *cluster) checkMoney(alice, operator user, jobs int) {
	c.Helper()
	spent := messages.Credits(jobs) * work().Budget
	account := alice.account()
	if account.Spent != spent || account.Reserved != 0 || account.Balance != account.Granted-spent {
		c.Errorf("account %+v after %d jobs of %v each", account, jobs, work().Budget)
	}
	books := request[money.BooksReply](operator, messages.Bank, messages.VerbBooks, messages.Empty{})
	if !books.Balanced || books.Holds != 0 {
		c.Errorf("books: %+v, want them to balance without holds", books)
	}
	await.Until(c, "all nodes are up after all hosts came back", func() bool {
		nodes := request[market.NodesReply](operator, messages.Auctioneer, messages.VerbNodes, messages.Empty{}).Nodes
		return len(nodes) > 0 && !slices.ContainsFunc(nodes, func(n market.NodeStatus) bool { return n.State != "Up" })
	})
}
