package client

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

func someReplicas(actor string) messages.ReplicasReply {
	return messages.ReplicasReply{Actor: actor, Spare: -1, Replicas: []messages.ReplicaState{
		{ID: "rack1", Leads: true, Votes: true, Answers: true}, {ID: "rack2", Votes: true, Behind: 1234},
		{ID: "rack3", Votes: true, Answers: true}, {ID: "rack4", Answers: true, Behind: 7, Address: "10.0.0.4:7001"},
	}}
}

func someTokens() messages.TokensReply {
	token := func(id string, expires float64, used messages.Time, revoked bool) messages.TokenState {
		return messages.TokenState{ID: "join-" + id, Node: "node7", By: "operator", Issued: at(0), Expires: at(expires), Used: used, Revoked: revoked}
	}
	tokens := messages.TokensReply{Tokens: []messages.TokenState{token("open", 7200, 0, false), token("expired", 60, 0, false),
		token("used", 7200, at(5), false), token("revoked", 7200, 0, true), token("late", 7200, at(5), true)}}
	tokens.Tokens[2].Key = "UAJO53UP"
	return tokens
}

func TestOperatorsViews(t *testing.T) {
	checkViews(t, map[string]view{
		"replicas": {"replica list", func(s *fakeSite) {
			for _, actor := range []string{messages.Auctioneer, messages.Bank} {
				gives[messages.Empty](actor, messages.VerbReplicas, someReplicas(actor))(s)
			}
		}},
		"tokens":      {"node tokens", gives[messages.Empty](messages.Admission, messages.VerbTokens, someTokens())},
		"tokens_none": {"node tokens", gives[messages.Empty](messages.Admission, messages.VerbTokens, messages.TokensReply{})},
	})
}

func TestReplicaCommands(t *testing.T) {
	s := newSite(t)
	var asked messages.ReplicaRequest
	for _, actor := range []string{messages.Auctioneer, messages.Bank} {
		answer(s, actor, messages.VerbReplicas, func(messages.Empty) (messages.ReplicasReply, error) { return someReplicas(actor), nil })
		answer(s, actor, messages.VerbReplica, func(r messages.ReplicaRequest) (messages.ReplicasReply, error) {
			asked = r
			return someReplicas(actor), r.Validate()
		})
	}
	s.run("replica", "list").expect(t, cli.CodeOK, "The bank can lose no replica", "")
	two := newSite(t)
	for _, actor := range []string{messages.Auctioneer, messages.Bank} {
		r := someReplicas(actor)
		r.Replicas = r.Replicas[:2]
		answer(two, actor, messages.VerbReplicas, func(messages.Empty) (messages.ReplicasReply, error) { return r, nil })
	}
	two.run("replica", "list").expect(t, cli.CodeOK, "The bank needs both of its replicas", "")
	var all []messages.ReplicasReply
	if err := json.Unmarshal([]byte(s.run("replica", "list", "bank", "--json").out), &all); err != nil || len(all) != 1 || !reflect.DeepEqual(all[0], someReplicas("bank")) {
		t.Errorf("%+v, %v", all, err)
	}
	s.run("replica", "add", "bank", "rack4", "--address", "10.0.0.4:7002").expect(t, cli.CodeOK, "rack4", "")
	if want := (messages.ReplicaRequest{Add: "rack4", Address: "10.0.0.4:7002"}); asked != want {
		t.Errorf("asked %+v", asked)
	}
	s.run("replica", "remove", "auctioneer", "rack2", "--force").expect(t, cli.CodeOK, "rack1", "")
	if want := (messages.ReplicaRequest{Remove: "rack2", Force: true}); asked != want {
		t.Errorf("asked %+v", asked)
	}
	s.run("replica", "add", "bank", "rack4", "--address", "nowhere").expect(t, cli.CodeUsage, "", "address: \"nowhere\"")
	for _, args := range [][]string{{"replica"}, {"replica", "add", "estimator", "x"}, {"replica", "list", "estimator"}, {"replica", "remove", "bank"}} {
		s.run(args...).expect(t, cli.CodeUsage, "", "")
	}
}

// tokenFileIsItsOwners checks that a token is written to a new file that only its owner can read, and never over an
// existing file.
func tokenFileIsItsOwners(t *testing.T, s *fakeSite) {
	file := filepath.Join(t.TempDir(), "token")
	got := s.run("node", "token", "node7", "--output", file)
	got.expect(t, cli.CodeOK, "", "Token join-open")
	text, err := os.ReadFile(file)
	info, statErr := os.Stat(file)
	if err != nil || statErr != nil || string(text) != "candor1-secret\n" || info.Mode() != 0o600 || got.out != "" {
		t.Errorf("%q in %v (%v), printed %q", text, info, err, got.out)
	}
	s.run("node", "token", "node7", "--output", file).expect(t, cli.CodeUsage, "", "exists")
}

// TestTokenCommands checks that standard output has only the token, so that it can go to a file. The text for the
// user is on standard error.
func TestTokenCommands(t *testing.T) {
	s := newSite(t)
	var asked any
	answer(s, messages.Admission, messages.VerbToken, func(r messages.TokenRequest) (messages.TokenReply, error) {
		asked = r
		return messages.TokenReply{State: someTokens().Tokens[0], Token: "candor1-secret"}, r.Validate()
	})
	answer(s, messages.Admission, messages.VerbTokens, func(messages.Empty) (messages.TokensReply, error) { return someTokens(), nil })
	answer(s, messages.Admission, messages.VerbForget, func(r messages.TokenUse) (messages.TokenState, error) {
		asked = r
		return someTokens().Tokens[2], nil
	})
	got := s.run("node", "token", "node7", "--expires", "2h")
	got.expect(t, cli.CodeOK, "", "Token join-open lets one agent of node node7 in, once, until 2026-03-01 14:00:00")
	got.expect(t, cli.CodeOK, "", "Use --output to write it to a file that nobody else can read") // not on a terminal
	if want := (messages.TokenRequest{Node: "node7", Expires: messages.Duration(2 * time.Hour)}); got.out != "candor1-secret\n" || asked != want {
		t.Errorf("printed %q, asked %+v", got.out, asked)
	}
	s.run("node", "token", "node7", "--json").expect(t, cli.CodeOK, `"token":"candor1-secret"`, "")
	tokenFileIsItsOwners(t, s)
	s.run("node", "tokens").expect(t, cli.CodeOK, "join-used", "")
	got = s.run("node", "token", "--revoke", "join-used")
	got.expect(t, cli.CodeOK, "Token join-used of node node7 is revoked", "")
	if asked != (messages.TokenUse{ID: "join-used"}) || !strings.Contains(got.out, "candor user revoke node7 --node --key UAJO53UP") {
		t.Errorf("asked %+v, printed %s", asked, got.out)
	}
	s.run("node", "token", "node7", "--expires", "0s").expect(t, cli.CodeUsage, "", "expires: 0s")
	s.run("node", "token", "node7", "--expires", "soon").expect(t, cli.CodeUsage, "", "--expires")
	s.run("node", "token").expect(t, cli.CodeUsage, "", "")
	s.run("node", "token", "node7", "--revoke", "join-x").expect(t, cli.CodeUsage, "", "")
}

// TestOperatorIsToldOfTheJobsOfOthers lists the jobs of an operator who has none. The command must mention that others
// have jobs, for example users of other sites. Users who may not see these jobs must not learn of them.
func TestOperatorIsToldOfTheJobsOfOthers(t *testing.T) {
	const none = "No jobs. Submit a job with candor submit.\n"
	s := newSite(t)
	var all []job.JobSummary
	answer(s, messages.Auctioneer, messages.VerbJobs, func(r job.JobsRequest) (job.JobsReply, error) {
		switch {
		case !r.All:
			return job.JobsReply{}, nil
		case s.callers[len(s.callers)-1] != "operator":
			return job.JobsReply{}, messages.Errorf(messages.PermissionDenied, "only operators may list the jobs of others")
		}
		return job.JobsReply{Jobs: all}, nil
	})
	s.run("jobs", "--account", "operator").expect(t, cli.CodeOK, none, "")
	all = []job.JobSummary{{Job: 1, Account: "alice@west", Payer: "alice@west", Market: "main", Visit: &job.Visit{Home: "west", Job: 17}}}
	s.run("jobs", "--account", "operator").expect(t, cli.CodeOK, "No jobs of operator; --all-accounts lists the jobs of all accounts.\n", "")
	s.run("jobs", "--account", "operator", "--all-accounts").expect(t, cli.CodeOK, "alice@west/17", "")
	s.run("jobs", "--account", "operator", "--owner", "bob").expect(t, cli.CodeOK, none, "")
	s.run("jobs").expect(t, cli.CodeOK, none, "")
}
