//go:build browser

package browser

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/deploy/identity/natstest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// ill is a text of a peer that must not reach a page unchanged. It would run a script, clear a terminal, and reverse
// the text after it.
const ill = hostile + "\x1b[2J\u009b31m\u202e\u200b\r\n"

// impostor answers a site in the name of its peer north. It puts harmful text everywhere: into its server's name, into
// refusals of its bank, and into facts about a job. It also pays alice.
func impostor(t *testing.T, leaf string, creds []byte, key clearing.Signer) {
	t.Helper()
	o := natstest.Stranger(t, leaf, creds)
	o.ServerName = "<script>window.hacked=1</script>"
	s := natstest.Run(t, o)
	b, err := bus.Connect(bus.Config{URL: s.ClientURL(), Name: messages.ServiceIdentity("north")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	said := func(id messages.JobID) jobmsg.JobSummary {
		return jobmsg.JobSummary{Job: id, Account: ill, Name: ill, Market: ill, State: jobmsg.Running, Reason: ill, Message: ill, Payer: ill, Tasks: 1, Running: 1}
	}
	service := bus.Service{Name: "impostor", Version: "1.0.0"}
	serve := func(actor, verb string, h bus.Handler) {
		service.Endpoints = append(service.Endpoints, bus.Endpoint{Name: verb, Subject: clearingmsg.PeerVerb{Actor: actor, Verb: verb}.Subject("west", "north"), Handle: h})
	}
	refuse := func(context.Context, bus.Request) ([]byte, error) {
		return nil, messages.Errorf(messages.Unavailable, "%s", ill)
	}
	serve(messages.Bank, clearingmsg.VerbInstruct, refuse)
	serve(messages.Bank, clearingmsg.VerbPosition, refuse)
	serve(messages.Auctioneer, clearingmsg.VerbPeerTasks, refuse)
	serve(messages.Auctioneer, clearingmsg.VerbPeerSubmit, bus.Handle(clearingmsg.VerbPeerSubmit, func(_ context.Context, _ messages.Name, r clearingmsg.PeerSubmitRequest) (clearingmsg.PeerSubmitReply, error) {
		return clearingmsg.PeerSubmitReply{Job: said(r.Job)}, nil
	}))
	serve(messages.Auctioneer, clearingmsg.VerbPeerJob, bus.Handle(clearingmsg.VerbPeerJob, func(_ context.Context, _ messages.Name, r jobmsg.JobRequest) (jobmsg.JobDetail, error) {
		return jobmsg.JobDetail{JobSummary: said(r.Job), Stages: []jobmsg.StageStatus{{Name: ill, Tasks: 1, Running: 1}}}, nil
	}))
	serve(messages.Auctioneer, clearingmsg.VerbPeerWhy, bus.Handle(clearingmsg.VerbPeerWhy, func(_ context.Context, _ messages.Name, r jobmsg.JobRequest) (market.WhyReply, error) {
		return market.WhyReply{Job: r.Job, Reason: ill, Message: ill, Change: []string{ill}}, nil
	}))
	if _, err := b.Serve(service); err != nil {
		t.Fatal(err)
	}
	pays, err := clearing.SignInstructions(key, clearingmsg.Instructions{From: "north", To: "west", First: 1, Known: clearing.Beginning("north", "west"), At: messages.TimeOf(time.Now()),
		List: []clearingmsg.Instruction{{Kind: clearingmsg.InstructPay, Account: "alice", Amount: messages.Credit, Reason: hostile + "\u202e\u200b"}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := bus.Call[clearingmsg.SignedReceipt](ctx, b, clearingmsg.PeerVerb{Actor: messages.Bank, Verb: clearingmsg.VerbInstruct}.Subject("north", "west"), pays); err != nil {
		t.Fatal(err)
	}
}

// Texts of a peer must be shown as one line of plain text, on two pages: the page Sites, and the page where users see
// their jobs at the peer.
func TestWordsOfAPeer(t *testing.T) {
	chromium(t)
	keys := func(name messages.Name) (dir, public string, a *identity.Authority) {
		dir = filepath.Join(t.TempDir(), "keys")
		a, err := identity.Create(dir, name)
		if err == nil {
			public, err = a.PublicKey()
		}
		if err != nil {
			t.Fatal(err)
		}
		return dir, public, a
	}
	west, _, authority := keys("west")
	_, north, key := keys("north")
	s := start(t, func(c *embedded.Config) {
		c.Site, c.Keys, c.ListenLeaf = "west", west, "127.0.0.1:0"
		c.Peers = []embedded.Peer{{Name: "north", Keys: []string{north}, Limit: 500 * messages.Credit}}
	})
	creds, err := authority.IssueLink("north")
	if err != nil {
		t.Fatal(err)
	}
	impostor(t, s.Info().Leaf, creds, key)
	spec := jobmsg.JobSpec{Name: "away", Budget: messages.Credit, Stages: []jobmsg.Stage{{Name: "main", Script: "true"}}}
	job := ask[jobmsg.SubmitReply](s, "alice", messages.Auctioneer, messages.VerbSubmit, jobmsg.SubmitRequest{Key: "k", Spec: spec, Site: "north"}).Job
	await.Until(t, "the peer has spoken of the job", func() bool {
		return ask[jobmsg.JobDetail](s, "alice", messages.Auctioneer, messages.VerbJob, jobmsg.JobRequest{Job: job}).State == jobmsg.Running
	})
	w := browse(t)
	for _, look := range []struct {
		account     messages.Name
		path, shows string
	}{{"operator", "sites", "<script>"}, {"operator", "alerts", ""}, {"alice", "jobs", "away"}, {"alice", "money", "From site north: <img"}, {"alice", "job/" + job.String(), "<script>"}} {
		w.connect(s, look.account)
		w.open(look.path)
		w.shows(look.shows)
		var hacked, strange bool
		var raw string
		w.run(chromedp.Evaluate(`"hacked" in window`, &hacked), chromedp.Evaluate(`document.querySelector("main img, main script, main iframe") !== null`, &strange),
			chromedp.Evaluate(`[...document.documentElement.outerHTML.matchAll(/.{0,40}[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069].{0,40}/gs)].join("\n")`, &raw))
		if hacked || strange || raw != "" {
			t.Errorf("page %s: a script ran %v, an element is there %v, and so is %q", look.path, hacked, strange, raw)
		}
	}
	w.fine()
}
