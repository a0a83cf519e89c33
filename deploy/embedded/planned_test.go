package embedded

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// TestContractsAreQuotedByWhatWasSeen declares ten minutes for tasks that take a moment. Contracts must first promise
// for ten minutes and, after some runs, less than a minute.
func TestContractsAreQuotedByWhatWasSeen(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Replicas = 1
	c.Markets = []market.Market{{Name: "sold", Mechanism: market.ContractMenu, Classes: []messages.Name{"map"}}}
	s := start(t, c)
	t.Cleanup(func() { closeSite(t, s) })
	u := connect(t, s, "alice")
	spec := jobmsg.JobSpec{Name: "short", Market: "sold", Budget: 100 * messages.Credit, Length: messages.Duration(10 * time.Minute),
		Valuation: &jobmsg.Valuation{Class: jobmsg.LinearDecay, Max: 20, Mu: 3600, Delta: 3600},
		Stages:    []jobmsg.Stage{{Name: "main", Tasks: 3, Command: []string{"true"}}}}
	quoted := func() (market.QuotedContract, time.Duration) {
		began := time.Now()
		menu := request[market.QuoteReply](u, messages.Auctioneer, market.VerbQuote, market.QuoteRequest{Spec: spec})
		first := slices.MinFunc(menu.Contracts, func(a, b market.QuotedContract) int { return int(a.Completion - b.Completion) })
		return first, first.Completion.Sub(messages.TimeOf(began)).Std()
	}
	// these contracts are quoted now, because later ones would end too soon to be taken
	contracts := make([]market.QuotedContract, 5)
	var after time.Duration
	for i := range contracts {
		if contracts[i], after = quoted(); after < 7*time.Minute {
			t.Fatalf("before anything was seen it is quoted for after %v, want what three tasks of ten minutes take on four slots", after)
		}
	}
	for i, contract := range contracts {
		taken := spec
		taken.Contract, taken.Budget = contract.ID, contract.Budget
		if j := u.final(u.submit(fmt.Sprint("run", i), taken)); j.State != jobmsg.Completed {
			t.Fatalf("%+v", j.JobSummary)
		}
	}
	shape := market.RuntimeRequest{Name: spec.Name, Stages: []jobmsg.StageShape{spec.Stages[0].Shape()}}
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for ctx := within(t); ; {
		known := request[market.RuntimeReply](u, messages.Estimator, market.VerbRuntime, shape).Stages[0]
		if known.Runs >= 3 {
			break
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			t.Fatalf("of five jobs the estimator has seen %+v", known)
		}
	}
	if _, after = quoted(); after >= time.Minute {
		t.Errorf("after five jobs of a moment it is quoted for after %v", after)
	}
}

// TestOperatorsFetchAndUsersDoNot fetches another account's files over the real server. Only an operator may do it. A
// short retention and a small quota must take effect.
func TestOperatorsFetchAndUsersDoNot(t *testing.T) {
	t.Parallel()
	c := small(t.TempDir())
	c.Files = Files{Retention: messages.Duration(time.Hour), QuotaMiB: leastQuota}
	s := start(t, c)
	t.Cleanup(func() { closeSite(t, s) })
	f, _ := connect(t, s, "alice").send("a", []byte("for alice"))
	of := func(name messages.Name) (string, error) {
		u := connect(t, s, name)
		var content bytes.Buffer
		err := bus.ReceiveFileOf(within(t), u.bus, messages.Subject(u.site, messages.Depot, jobmsg.VerbGet, name), "alice", messages.Attempt{}, f, &content)
		return content.String(), err
	}
	if got, err := of("operator"); got != "for alice" || err != nil {
		t.Errorf("an operator gets %q, %v", got, err)
	}
	if _, err := of("bob"); messages.KindOf(err) != messages.PermissionDenied {
		t.Errorf("another user: %v, want PermissionDenied", err)
	}
	missing := f
	missing.Digest = strings.Repeat("0", len(f.Digest))
	if _, err := connect(t, s, "alice").receive(missing); err == nil || !strings.Contains(err.Error(), "keeps files for 1h0m0s") {
		t.Errorf("a file that is not there: %v, want it to say for how long files are kept", err)
	}
}
