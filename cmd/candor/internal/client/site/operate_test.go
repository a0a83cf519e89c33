package site_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
)

func someReplicas(actor string) messages.ReplicasReply {
	return messages.ReplicasReply{Actor: actor, Spare: -1, Replicas: []messages.ReplicaState{
		{ID: "rack1", Leads: true, Votes: true, Answers: true}, {ID: "rack2", Votes: true, Behind: 1234},
		{ID: "rack3", Votes: true, Answers: true}, {ID: "rack4", Answers: true, Behind: 7, Address: "10.0.0.4:7001"},
	}}
}

func someTokens() messages.TokensReply {
	token := func(id string, expires float64, used messages.Time, revoked bool) messages.TokenState {
		return messages.TokenState{ID: "join-" + id, Node: "node7", By: "operator", Issued: clienttest.At(0), Expires: clienttest.At(expires), Used: used, Revoked: revoked}
	}
	tokens := messages.TokensReply{Tokens: []messages.TokenState{token("open", 7200, 0, false), token("expired", 60, 0, false),
		token("used", 7200, clienttest.At(5), false), token("revoked", 7200, 0, true), token("late", 7200, clienttest.At(5), true)}}
	tokens.Tokens[2].Key = "UAJO53UP"
	return tokens
}

func TestOperatorsViews(t *testing.T) {
	clienttest.CheckViews(t, newSite, map[string]clienttest.View{
		"replicas": {Line: "replica list", Serve: func(s *clienttest.Site) {
			for _, actor := range []string{messages.Auctioneer, messages.Bank} {
				clienttest.Gives[messages.Empty](actor, messages.VerbReplicas, someReplicas(actor))(s)
			}
		}},
		"tokens":      {Line: "node tokens", Serve: clienttest.Gives[messages.Empty](messages.Admission, messages.VerbTokens, someTokens())},
		"tokens_none": {Line: "node tokens", Serve: clienttest.Gives[messages.Empty](messages.Admission, messages.VerbTokens, messages.TokensReply{})},
	})
}

func TestReplicaCommands(t *testing.T) {
	s := newSite(t)
	var asked messages.ReplicaRequest
	for _, actor := range []string{messages.Auctioneer, messages.Bank} {
		clienttest.Answer(s, actor, messages.VerbReplicas, func(messages.Empty) (messages.ReplicasReply, error) { return someReplicas(actor), nil })
		clienttest.Answer(s, actor, messages.VerbReplica, func(r messages.ReplicaRequest) (messages.ReplicasReply, error) {
			asked = r
			return someReplicas(actor), r.Validate()
		})
	}
	s.Run("replica", "list").Expect(t, cli.CodeOK, "The bank can lose no replica", "")
	two := newSite(t)
	for _, actor := range []string{messages.Auctioneer, messages.Bank} {
		r := someReplicas(actor)
		r.Replicas = r.Replicas[:2]
		clienttest.Answer(two, actor, messages.VerbReplicas, func(messages.Empty) (messages.ReplicasReply, error) { return r, nil })
	}
	two.Run("replica", "list").Expect(t, cli.CodeOK, "The bank needs both of its replicas", "")
	var all []messages.ReplicasReply
	if err := json.Unmarshal([]byte(s.Run("replica", "list", "bank", "--json").Out), &all); err != nil || len(all) != 1 || !reflect.DeepEqual(all[0], someReplicas("bank")) {
		t.Errorf("%+v, %v", all, err)
	}
	s.Run("replica", "add", "bank", "rack4", "--address", "10.0.0.4:7002").Expect(t, cli.CodeOK, "rack4", "")
	if want := (messages.ReplicaRequest{Add: "rack4", Address: "10.0.0.4:7002"}); asked != want {
		t.Errorf("asked %+v", asked)
	}
	s.Run("replica", "remove", "auctioneer", "rack2", "--force").Expect(t, cli.CodeOK, "rack1", "")
	if want := (messages.ReplicaRequest{Remove: "rack2", Force: true}); asked != want {
		t.Errorf("asked %+v", asked)
	}
	s.Run("replica", "add", "bank", "rack4", "--address", "nowhere").Expect(t, cli.CodeUsage, "", "address: \"nowhere\"")
	for _, args := range [][]string{{"replica"}, {"replica", "add", "estimator", "x"}, {"replica", "list", "estimator"}, {"replica", "remove", "bank"}} {
		s.Run(args...).Expect(t, cli.CodeUsage, "", "")
	}
}

// A token is written to a new file that only its owner can read, and never over an existing file.
func tokenFileIsItsOwners(t *testing.T, s *clienttest.Site) {
	file := filepath.Join(t.TempDir(), "token")
	got := s.Run("node", "token", "node7", "--output", file)
	got.Expect(t, cli.CodeOK, "", "With token join-open")
	text, err := os.ReadFile(file)
	info, statErr := os.Stat(file)
	if err != nil || statErr != nil || string(text) != "candor1-secret\n" || info.Mode() != 0o600 || got.Out != "" {
		t.Errorf("%q in %v (%v), printed %q", text, info, err, got.Out)
	}
	s.Run("node", "token", "node7", "--output", file).Expect(t, cli.CodeUsage, "", "exists")
}

// Standard output has only the token, so that it can go to a file. The text for the user is on standard error.
func TestTokenCommands(t *testing.T) {
	s := newSite(t)
	var asked any
	clienttest.Answer(s, messages.Admission, messages.VerbToken, func(r messages.TokenRequest) (messages.TokenReply, error) {
		asked = r
		return messages.TokenReply{State: someTokens().Tokens[0], Token: "candor1-secret"}, r.Validate()
	})
	clienttest.Answer(s, messages.Admission, messages.VerbTokens, func(messages.Empty) (messages.TokensReply, error) { return someTokens(), nil })
	clienttest.Answer(s, messages.Admission, messages.VerbForget, func(r messages.TokenUse) (messages.TokenState, error) {
		asked = r
		return someTokens().Tokens[2], nil
	})
	got := s.Run("node", "token", "node7", "--expires", "2h")
	got.Expect(t, cli.CodeOK, "", "With token join-open one agent can join as node node7, once, until 2026-03-01 14:00:00")
	got.Expect(t, cli.CodeOK, "", "Use --output to write the token to a file that nobody else can read") // not on a terminal
	if want := (messages.TokenRequest{Node: "node7", Expires: messages.Duration(2 * time.Hour)}); got.Out != "candor1-secret\n" || asked != want {
		t.Errorf("printed %q, asked %+v", got.Out, asked)
	}
	s.Run("node", "token", "node7", "--json").Expect(t, cli.CodeOK, `"token":"candor1-secret"`, "")
	tokenFileIsItsOwners(t, s)
	s.Run("node", "tokens").Expect(t, cli.CodeOK, "join-used", "")
	got = s.Run("node", "token", "--revoke", "join-used")
	got.Expect(t, cli.CodeOK, "Token join-used of node node7 is revoked", "")
	if asked != (messages.TokenUse{ID: "join-used"}) || !strings.Contains(got.Out, "candor user revoke node7 --node --key UAJO53UP") {
		t.Errorf("asked %+v, printed %s", asked, got.Out)
	}
	s.Run("node", "token", "node7", "--expires", "0s").Expect(t, cli.CodeUsage, "", "expires: 0s")
	s.Run("node", "token", "node7", "--expires", "soon").Expect(t, cli.CodeUsage, "", "--expires")
	s.Run("node", "token").Expect(t, cli.CodeUsage, "", "")
	s.Run("node", "token", "node7", "--revoke", "join-x").Expect(t, cli.CodeUsage, "", "")
}
