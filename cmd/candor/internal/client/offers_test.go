package client

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/clearing"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

func someOffers() clearing.OffersReply {
	return clearing.OffersReply{
		Offers: []clearing.Offer{
			{Site: "west", Market: "main", Mechanism: market.Proportional, Completion: at(3700), Price: 5 * credit, Basis: "estimated from 12 runs"},
			{Site: "east", Market: "deals", Mechanism: market.ContractMenu, Completion: at(3660), Price: 2 * credit, Contract: "east/q7-1", Value: 8, Basis: "a contract"},
		},
		Silent: []clearing.Silent{{Site: "north", Error: messages.Errorf(messages.Unavailable, "did not answer within 2s")}},
		Best:   1, Why: "completion then is worth 8 credits to it",
	}
}

func TestQuoteOfSeveralSites(t *testing.T) {
	s := newSite(t)
	var asked clearing.OffersRequest
	answer(s, messages.Auctioneer, clearing.VerbOffers, func(r clearing.OffersRequest) (clearing.OffersReply, error) {
		asked = r
		return someOffers(), nil
	})
	s.write("job.yaml", "budget: 5\ncommand: [hostname]\n")
	got := s.run("quote", "--sites", "all", "--within", "1s", s.path("job.yaml"))
	got.expect(t, cli.CodeOK, "*  east", "")
	for _, words := range []string{"east/q7-1", "estimated from 12 runs", "north: did not answer within 2s", "submit --site auto would choose this offer: completion then is worth 8 credits"} {
		if !strings.Contains(strings.ToLower(got.out), strings.ToLower(words)) {
			t.Errorf("no %q in\n%s", words, got.out)
		}
	}
	if asked.Sites != nil || asked.Within != messages.Duration(time.Second) || asked.Spec.Budget != 5*credit {
		t.Errorf("asked %+v", asked)
	}
	for _, args := range [][]string{{"--sites", "west,east"}, {"--sites", "west", "--sites", "east"}} {
		s.run(append(append([]string{"quote"}, args...), s.path("job.yaml"))...).expect(t, cli.CodeOK, "", "")
		if !slices.Equal(asked.Sites, []messages.Name{"west", "east"}) {
			t.Errorf("%v: asked %v", args, asked.Sites)
		}
	}
	s.run("quote", "--sites", "West", s.path("job.yaml")).expect(t, cli.CodeUsage, "", "West")
	s.run("quote", "--site", "east", s.path("job.yaml")).expect(t, cli.CodeOK, "east/q7-1", "")
	if !slices.Equal(asked.Sites, []messages.Name{"east"}) {
		t.Errorf("asked %v", asked.Sites)
	}
}

// TestQuoteOfAShape asks for a quote without a valuation. The user's site must say what the resources cost now and
// when the job would start.
func TestQuoteOfAShape(t *testing.T) {
	s := newSite(t)
	var asked clearing.OffersRequest
	said := clearing.OffersReply{Offers: []clearing.Offer{{Site: "west", Market: "main", Mechanism: market.FIFO, Start: 1, Width: 4, SlotHour: credit / 4, Price: 2 * credit, Basis: "each task takes 4 slots"}}}
	answer(s, messages.Auctioneer, clearing.VerbOffers, func(r clearing.OffersRequest) (clearing.OffersReply, error) {
		asked = r
		return said, nil
	})
	s.write("job.sh", "#!/bin/sh\nhostname\n")
	got := s.run("quote", "--cpus", "4", "--memory", "16G", "--gpus", "1", s.path("job.sh"))
	got.expect(t, cli.CodeOK, "west  main    now    not known       4         1                2  each task takes 4 slots", "")
	if strings.Contains(got.out, "--site auto") {
		t.Errorf("one site is to be chosen from:\n%s", got.out)
	}
	now := 2400 * credit / 1000
	for want, hour := range map[string]clearing.CheapHour{
		"west/main: an hour of 4 slots of cpu: now 2.4 credits; cheapest in the last week: Sunday 03:00-04:00, 0.3 credits\n": {Slots: 4, Price: 3 * credit / 10, Now: &now},
		"west/main: bids for 1 slot of cpu: cheapest in the last week: Sunday 03:00-04:00, 0.3 credits\n":                     {Slots: 1, Price: 3 * credit / 10, Bids: true},
		"west/main: an hour of 4 slots of cpu: now 2.4 credits; no hour of the last week was cheaper\n":                       {Slots: 4, Price: 3 * credit, Now: &now},
	} {
		hour.Class, hour.Start = "cpu", messages.TimeOf(time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC))
		said.Offers[0].Cheapest = []clearing.CheapHour{hour}
		s.run("quote", "--cpus", "4", s.path("job.sh")).expect(t, cli.CodeOK, want, "")
	}
	s.run("quote", "--cpus", "4", "--memory", "16G", "--gpus", "1", s.path("job.sh"))
	if st := asked.Spec.Stages[0]; !slices.Equal(asked.Sites, []messages.Name{"west"}) || st.CPUs != 4 || st.GPUs != 1 || asked.Spec.Budget != 0 {
		t.Errorf("asked %+v", asked)
	}
	said = clearing.OffersReply{Best: -1, Silent: []clearing.Silent{{Site: "west", Error: messages.Errorf(messages.TooLarge, "stages[0]: no node of class cpu has that")}}}
	s.run("quote", "--cpus", "400", s.path("job.sh")).expect(t, cli.CodeUsage, "", "no node of class cpu has that")
}

func TestNoSiteMakesAnOffer(t *testing.T) {
	s := newSite(t)
	silent := clearing.Silent{Site: "north", Error: messages.Errorf(messages.Unavailable, "did not answer within 2s")}
	var replies []clearing.Silent
	answer(s, messages.Auctioneer, clearing.VerbOffers, func(clearing.OffersRequest) (clearing.OffersReply, error) {
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
		s.write("job.yaml", "budget: 5\ncommand: [hostname]\n")
		s.run("quote", "--sites", "all", s.path("job.yaml")).expect(t, c.code, "north: did not answer", "no site makes an offer")
	}
}

func TestSubmitToAnotherSite(t *testing.T) {
	s := newSite(t)
	var asked jobmsg.SubmitRequest
	answer(s, messages.Auctioneer, messages.VerbSubmit, func(r jobmsg.SubmitRequest) (jobmsg.SubmitReply, error) {
		asked = r
		return jobmsg.SubmitReply{Job: 17, Market: "main", Payer: "alice", Held: 5 * credit, Tasks: 1, Site: "east", Chosen: "it is the earliest"}, nil
	})
	s.write("job.yaml", "budget: 5\ncommand: [hostname]\n")
	s.write("east.yaml", "budget: 5\nsite: east\ncommand: [hostname]\n")
	s.write("job.sh", "#!/bin/sh\n#CANDOR --budget 5 --site east\nhostname\n")
	for name, args := range map[string][]string{
		"a flag":      {"--site", "east", s.path("job.yaml")},
		"the file":    {s.path("east.yaml")},
		"a directive": {s.path("job.sh")},
	} {
		s.run(append([]string{"submit"}, args...)...).expect(t, cli.CodeOK, "Submitted job 17 to site east (5 credits authorised from alice)\n  east: it is the earliest", "")
		if asked.Site != "east" || asked.Spec.Dir != "" {
			t.Errorf("%s: asked %+v", name, asked)
		}
	}
	s.run("submit", "--site", "auto", "-D", "/data", s.path("east.yaml")).expect(t, cli.CodeOK, "", "")
	if asked.Site != clearing.AnySite || asked.Spec.Dir != "/data" {
		t.Errorf("asked %+v", asked)
	}
	s.env["CANDOR_STATE"] = s.path("nothing") // without a state directory, no site to connect to is known
	s.run("submit", "--server", "nats://127.0.0.1:1", "--account", "alice", "--site", "west", s.path("job.yaml")).expect(t, cli.CodeOK, "", "")
	if s.last.Site != "west" {
		t.Errorf("connected to %+v", s.last)
	}
	s.run("submit", "--server", "nats://127.0.0.1:1", "--account", "alice", "--site", "auto", s.path("job.yaml")).expect(t, cli.CodeUsage, "", "--site: missing")
}

// awayJob returns a job that runs at site east. Its state was last reported ten seconds ago.
func awayJob() jobmsg.JobDetail {
	away := &jobmsg.Away{Site: "east", Phase: "There", Known: at(3590), Trouble: "the link is cut", Chosen: "it was the earliest"}
	return jobmsg.JobDetail{JobSummary: jobmsg.JobSummary{Job: 17, Name: "flights", Account: "alice", Payer: "alice", Market: "main",
		State: jobmsg.Running, Budget: 5 * credit, Tasks: 2, Running: 1, Submitted: at(3000), Started: at(3100), Away: away},
		Stages: []jobmsg.StageStatus{{Name: "main", Class: "cpu", Tasks: 2, Running: 1}}}
}

// TestRerunOfAVisitor shows a job from another site that runs an earlier job again. The output must name that site with
// the number of the earlier job, because here another job may have the same number.
func TestRerunOfAVisitor(t *testing.T) {
	s := newSite(t)
	reply(s, messages.Auctioneer, messages.VerbJob, jobmsg.JobDetail{JobSummary: jobmsg.JobSummary{Job: 4, Account: "bob@north", Visit: &jobmsg.Visit{Home: "north", Job: 9}},
		Spec: jobmsg.JobSpec{RerunOf: 3}})
	s.run("job", "4").expect(t, cli.CodeOK, "job 3 of site north", "")
}

func TestJobsOfAndAtOtherSites(t *testing.T) {
	s := newSite(t)
	job := awayJob()
	visit := jobmsg.JobSummary{Job: 4, Name: "guest", Account: "bob@north", Payer: "bob@north", Market: "main", Visit: &jobmsg.Visit{Home: "north", Job: 9}}
	reply(s, messages.Auctioneer, messages.VerbJob, job)
	answer(s, messages.Auctioneer, messages.VerbCancel, func(jobmsg.CancelRequest) (jobmsg.CancelReply, error) {
		return jobmsg.CancelReply{Job: 17, State: jobmsg.Running, Away: job.Away}, nil
	})
	answer(s, messages.Auctioneer, messages.VerbJobs, func(jobmsg.JobsRequest) (jobmsg.JobsReply, error) {
		return jobmsg.JobsReply{Jobs: []jobmsg.JobSummary{job.JobSummary, visit}}, nil
	})
	list := s.run("jobs")
	list.expect(t, cli.CodeOK, "east/main", "")
	if !strings.Contains(list.out, "bob@north/9  ") {
		t.Errorf("no number at home in\n%s", list.out)
	}
	one := s.run("job", "17")
	one.expect(t, cli.CodeOK, "east, and that site does not answer (the link is cut); last heard of 10s ago", "")
	if !strings.Contains(one.out, "it was the earliest") {
		t.Errorf("no reason in\n%s", one.out)
	}
	s.run("cancel", "17").expect(t, cli.CodeOK, "is cancelled as soon as site east answers: the link is cut", "")
}

// TestLogsOfAnotherSite reads the output of a task at another site through the user's own site.
func TestLogsOfAnotherSite(t *testing.T) {
	s := newSite(t)
	task := jobmsg.TaskStatus{Task: messages.TaskRef{Job: 17}, Attempt: 2, Node: "n1", State: "Done"}
	reply(s, messages.Auctioneer, messages.VerbJob, awayJob())
	answer(s, messages.Auctioneer, messages.VerbTasks, func(jobmsg.TasksRequest) (jobmsg.TasksReply, error) {
		return jobmsg.TasksReply{Tasks: []jobmsg.TaskStatus{task}}, nil
	})
	var asked clearing.OutputRequest
	answer(s, messages.Auctioneer, clearing.VerbOutput, func(r clearing.OutputRequest) (agent.LogsReply, error) {
		asked = r
		return agent.LogsReply{Data: []byte("hello\n"), Next: 6, End: true}, nil
	})
	s.run("logs", "17", "--task", "0", "--stderr").expect(t, cli.CodeOK, "hello\n", "")
	want := clearing.OutputRequest{Node: "n1", Logs: agent.LogsRequest{Attempt: messages.Attempt{Task: task.Task, Number: 2}, Stderr: true}}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("asked %+v, want %+v", asked, want)
	}
}
