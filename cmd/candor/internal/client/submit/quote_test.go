package submit_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func someOffers() clearing.OffersReply {
	return clearing.OffersReply{
		Offers: []clearing.Offer{
			{Site: "west", Market: "main", Mechanism: market.Proportional, Completion: clienttest.At(3700), Price: 5 * messages.Credit, Basis: "estimated from 12 runs"},
			{Site: "east", Market: "deals", Mechanism: market.ContractMenu, Completion: clienttest.At(3660), Price: 2 * messages.Credit, Contract: "east/q7-1", Value: 8, Basis: "a contract"},
		},
		Silent: []clearing.Silent{{Site: "north", Error: messages.Errorf(messages.Unavailable, "did not answer within 2s")}},
		Best:   1, Why: "completion then is worth 8 credits to it",
	}
}

func TestQuoteOfSeveralSites(t *testing.T) {
	s := newSite(t)
	var asked clearing.OffersRequest
	clienttest.Answer(s, messages.Auctioneer, clearing.VerbOffers, func(r clearing.OffersRequest) (clearing.OffersReply, error) {
		asked = r
		return someOffers(), nil
	})
	s.Write("job.yaml", "budget: 5\ncommand: [hostname]\n")
	got := s.Run("quote", "--sites", "all", "--within", "1s", s.Path("job.yaml"))
	got.Expect(t, cli.CodeOK, "*  east", "")
	for _, words := range []string{"east/q7-1", "estimated from 12 runs", "north: did not answer within 2s", "submit --site auto` would choose this offer: completion then is worth 8 credits"} {
		if !strings.Contains(strings.ToLower(got.Out), strings.ToLower(words)) {
			t.Errorf("no %q in\n%s", words, got.Out)
		}
	}
	if asked.Sites != nil || asked.Within != messages.Duration(time.Second) || asked.Spec.Budget != 5*messages.Credit {
		t.Errorf("asked %+v", asked)
	}
	for _, args := range [][]string{{"--sites", "west,east"}, {"--sites", "west", "--sites", "east"}} {
		s.Run(append(append([]string{"quote"}, args...), s.Path("job.yaml"))...).Expect(t, cli.CodeOK, "", "")
		if !slices.Equal(asked.Sites, []messages.Name{"west", "east"}) {
			t.Errorf("%v: asked %v", args, asked.Sites)
		}
	}
	s.Run("quote", "--sites", "West", s.Path("job.yaml")).Expect(t, cli.CodeUsage, "", "West")
	s.Run("quote", "--site", "east", s.Path("job.yaml")).Expect(t, cli.CodeOK, "east/q7-1", "")
	if !slices.Equal(asked.Sites, []messages.Name{"east"}) {
		t.Errorf("asked %v", asked.Sites)
	}
}

// Without a valuation, the site must say what the resources cost now and when the job would start.
func TestQuoteOfAShape(t *testing.T) {
	s := newSite(t)
	var asked clearing.OffersRequest
	said := clearing.OffersReply{Offers: []clearing.Offer{{Site: "west", Market: "main", Mechanism: market.FIFO, Start: 1, Width: 4, SlotHour: messages.Credit / 4, Price: 2 * messages.Credit, Basis: "each task takes 4 slots"}}}
	clienttest.Answer(s, messages.Auctioneer, clearing.VerbOffers, func(r clearing.OffersRequest) (clearing.OffersReply, error) {
		asked = r
		return said, nil
	})
	s.Write("job.sh", "#!/bin/sh\nhostname\n")
	got := s.Run("quote", "--cpus", "4", "--memory", "16G", "--gpus", "1", s.Path("job.sh"))
	got.Expect(t, cli.CodeOK, "west  main    now    not known       4         1                2  each task takes 4 slots", "")
	if strings.Contains(got.Out, "--site auto") {
		t.Errorf("one site is to be chosen from:\n%s", got.Out)
	}
	now := 2400 * messages.Credit / 1000
	for want, hour := range map[string]clearing.CheapHour{
		"west/main: an hour of 4 slots of cpu: now 2.4 credits; cheapest in the last week: Sunday 03:00-04:00, 0.3 credits\n": {Slots: 4, Price: 3 * messages.Credit / 10, Now: &now},
		"west/main: bids for 1 slot of cpu: cheapest in the last week: Sunday 03:00-04:00, 0.3 credits\n":                     {Slots: 1, Price: 3 * messages.Credit / 10, Bids: true},
		"west/main: an hour of 4 slots of cpu: now 2.4 credits; no hour of the last week was cheaper\n":                       {Slots: 4, Price: 3 * messages.Credit, Now: &now},
	} {
		hour.Class, hour.Start = "cpu", messages.TimeOf(time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC))
		said.Offers[0].Cheapest = []clearing.CheapHour{hour}
		s.Run("quote", "--cpus", "4", s.Path("job.sh")).Expect(t, cli.CodeOK, want, "")
	}
	s.Run("quote", "--cpus", "4", "--memory", "16G", "--gpus", "1", s.Path("job.sh"))
	if st := asked.Spec.Stages[0]; !slices.Equal(asked.Sites, []messages.Name{"west"}) || st.CPUs != 4 || st.GPUs != 1 || asked.Spec.Budget != 0 {
		t.Errorf("asked %+v", asked)
	}
	s.In = "" // options alone, in a script without an input
	s.Run("quote", "--cpus", "4").Expect(t, cli.CodeOK, "PRICE", "")
	said = clearing.OffersReply{Best: -1, Silent: []clearing.Silent{{Site: "west", Error: messages.Errorf(messages.TooLarge, "stages[0]: no node of class cpu has that")}}}
	s.Run("quote", "--cpus", "400", s.Path("job.sh")).Expect(t, cli.CodeUsage, "", "no node of class cpu has that")
}

func TestNoSiteMakesAnOffer(t *testing.T) {
	s := newSite(t)
	silent := clearing.Silent{Site: "north", Error: messages.Errorf(messages.Unavailable, "did not answer within 2s")}
	var replies []clearing.Silent
	clienttest.Answer(s, messages.Auctioneer, clearing.VerbOffers, func(clearing.OffersRequest) (clearing.OffersReply, error) {
		return clearing.OffersReply{Silent: replies, Best: -1, Why: "there is no offer"}, nil
	})
	for _, c := range []struct {
		code    int
		replies []clearing.Silent
	}{
		{cli.CodeUnavailable, []clearing.Silent{silent}},
		{cli.CodeUsage, []clearing.Silent{{Site: "west", Error: messages.Errorf(messages.Invalid, "class: unknown")}, silent}},
	} {
		replies = c.replies
		s.Write("job.yaml", "budget: 5\ncommand: [hostname]\n")
		s.Run("quote", "--sites", "all", s.Path("job.yaml")).Expect(t, c.code, "north: did not answer", "no site makes an offer")
	}
}

func TestSubmitToAnotherSite(t *testing.T) {
	s := newSite(t)
	var asked jobmsg.SubmitRequest
	clienttest.Answer(s, messages.Auctioneer, messages.VerbSubmit, func(r jobmsg.SubmitRequest) (jobmsg.SubmitReply, error) {
		asked = r
		return jobmsg.SubmitReply{Job: 17, Market: "main", Payer: "alice", Held: 5 * messages.Credit, Tasks: 1, Site: "east", Chosen: "it is the earliest"}, nil
	})
	s.Write("job.yaml", "budget: 5\ncommand: [hostname]\n")
	s.Write("east.yaml", "budget: 5\nsite: east\ncommand: [hostname]\n")
	s.Write("job.sh", "#!/bin/sh\n#CANDOR --budget 5 --site east\nhostname\n")
	for name, args := range map[string][]string{
		"a flag":      {"--site", "east", s.Path("job.yaml")},
		"the file":    {s.Path("east.yaml")},
		"a directive": {s.Path("job.sh")},
	} {
		s.Run(append([]string{"submit"}, args...)...).Expect(t, cli.CodeOK, "Submitted job 17 to site east, which may charge up to 5 credits to alice\n  east: it is the earliest", "")
		if asked.Site != "east" || asked.Spec.Dir != "" {
			t.Errorf("%s: asked %+v", name, asked)
		}
	}
	s.Run("submit", "--site", "auto", "-D", "/data", s.Path("east.yaml")).Expect(t, cli.CodeOK, "", "")
	if asked.Site != clearing.AnySite || asked.Spec.Dir != "/data" {
		t.Errorf("asked %+v", asked)
	}
	s.Env["CANDOR_STATE"] = s.Path("nothing") // without a state directory, no site to connect to is known
	s.Run("submit", "--server", "nats://127.0.0.1:1", "--account", "alice", "--site", "west", s.Path("job.yaml")).Expect(t, cli.CodeOK, "", "")
	if s.Last.Site != "west" {
		t.Errorf("connected to %+v", s.Last)
	}
	s.Run("submit", "--server", "nats://127.0.0.1:1", "--account", "alice", "--site", "auto", s.Path("job.yaml")).Expect(t, cli.CodeUsage, "", "--site: missing")
}

func someMenu() market.QuoteReply {
	return market.QuoteReply{Quote: "q7", Market: "sold", Expires: clienttest.At(300), Contracts: []market.QuotedContract{
		{ID: "q7-1", Completion: clienttest.At(60), Price: 12 * messages.Credit, Budget: 13 * messages.Credit, Promised: 19.75},
		{ID: "q7-2", Completion: clienttest.At(120), Price: 4 * messages.Credit, Budget: 5 * messages.Credit, Promised: 12, Declared: true},
		{ID: "q7-3", Completion: clienttest.At(3600), Budget: 1, Promised: 3, Free: true},
	}}
}

// menuSite returns a site that answers requests for a menu of contracts. The result `asked` is the last request.
func menuSite(t *testing.T) (s *clienttest.Site, asked *market.QuoteRequest) {
	s, asked = newSite(t), new(market.QuoteRequest)
	clienttest.Answer(s, messages.Auctioneer, market.VerbQuote, func(r market.QuoteRequest) (market.QuoteReply, error) {
		*asked = r
		return someMenu(), nil
	})
	return s, asked
}

func TestQuoteShowsTheMenu(t *testing.T) {
	s, asked := menuSite(t)
	s.Write("job.yaml", "market: sold\nlength: 10s\ncommand: [hostname]\nvaluation: {class: hard, max: 20, deadline: 90}\n")
	got := s.Run("quote", s.Path("job.yaml"))
	got.Expect(t, cli.CodeOK, "Quote q7 of market sold", "")
	for _, words := range []string{"as declared", "earliest free", "q7-1", "12", "19.75"} {
		if !strings.Contains(got.Out, words) {
			t.Errorf("%q is not in:\n%s", words, got.Out)
		}
	}
	spec := asked.Spec
	want := &jobmsg.Valuation{Class: jobmsg.Hard, Max: 20, Deadline: 90}
	if !reflect.DeepEqual(spec.Valuation, want) || spec.Length != messages.Duration(10*time.Second) || spec.Budget != 0 {
		t.Errorf("asked for %+v", spec)
	}
	s.Write("bad.yaml", "market: sold\ncommand: [hostname]\nvaluation: {class: hard, max: -1}\n")
	s.Run("quote", s.Path("bad.yaml")).Expect(t, cli.CodeUsage, "", "valuation.max: must be from 0")
	var menu market.QuoteReply
	if err := json.Unmarshal([]byte(s.Run("quote", "--json", s.Path("job.yaml")).Out), &menu); err != nil || !reflect.DeepEqual(menu, someMenu()) {
		t.Errorf("%+v, %v", menu, err)
	}
}
