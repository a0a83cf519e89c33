package auctioneer

import (
	"testing"

	"github.com/candor-grid/candor/messages"
)

// Only the admission service gets join tokens from the log. Users, operators and nodes are refused.
func TestAdmissionAloneKeepsTokens(t *testing.T) {
	f := start(t)
	token := messages.TokenState{ID: "join-a", Node: "node7", By: "operator", Issued: 1, Expires: f.Clock().Add(messages.MaxTokenLife)}
	for _, caller := range []messages.Name{"alice", "operator", "node7", "$bank", "$join-a"} {
		if _, err := call[messages.TokensReply](f, caller, messages.VerbAdmit, messages.AdmitRequest{Issue: &token}); messages.KindOf(err) != messages.PermissionDenied {
			t.Errorf("%s: %v, want PermissionDenied", caller, err)
		}
	}
	ask := func(r messages.AdmitRequest) []messages.TokenState {
		return must[messages.TokensReply](f, "$admission", messages.VerbAdmit, r).Tokens
	}
	if got := ask(messages.AdmitRequest{}); len(got) != 0 {
		t.Errorf("before, there are %+v", got)
	}
	if got := ask(messages.AdmitRequest{Issue: &token}); len(got) != 1 || got[0] != token {
		t.Errorf("issued: %+v", got)
	}
	if got := ask(messages.AdmitRequest{Use: &messages.TokenUse{ID: "join-a", Key: "K"}}); len(got) != 1 || got[0].Key != "K" || got[0].Used == 0 {
		t.Errorf("used: %+v", got)
	}
	if got := ask(messages.AdmitRequest{Revoke: "join-a"}); len(got) != 1 || !got[0].Revoked {
		t.Errorf("revoked: %+v", got)
	}
	for _, bad := range []messages.TokenState{{ID: "a", Node: "node7"}, {ID: "join-b", Node: "Node"}} {
		if _, err := call[messages.TokensReply](f, "$admission", messages.VerbAdmit, messages.AdmitRequest{Issue: &bad}); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%+v: %v, want Invalid", bad, err)
		}
	}
}

// Only an operator can add or remove a replica. Nobody can if the group has no replicas.
func TestOperatorsChangeReplicas(t *testing.T) {
	f := start(t)
	for caller, want := range map[messages.Name]messages.Kind{"alice": messages.PermissionDenied, "$bank": messages.PermissionDenied, "operator": messages.Invalid} {
		if _, err := call[messages.ReplicasReply](f, caller, messages.VerbReplica, messages.ReplicaRequest{Remove: "a1", Force: true}); messages.KindOf(err) != want {
			t.Errorf("%s removes: %v, want %v", caller, err, want)
		}
		if _, err := call[messages.ReplicasReply](f, caller, messages.VerbReplicas, messages.Empty{}); messages.KindOf(err) != want {
			t.Errorf("%s lists: %v, want %v", caller, err, want)
		}
	}
}
