package accounts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
)

func TestBetweenSites(t *testing.T) {
	s := newSite(t)
	var remit clearing.RemitRequest
	clienttest.Answer(s, messages.Bank, clearing.VerbRemit, func(r clearing.RemitRequest) (clearing.ClearingReply, error) {
		remit = r
		return clearing.ClearingReply{Number: 12}, nil
	})
	var asked clearing.AuthoriseRequest
	clienttest.Answer(s, messages.Bank, clearing.VerbAuthorise, func(r clearing.AuthoriseRequest) (clearing.SignedAuthorisation, error) {
		asked = r
		return clearing.SignedAuthorisation{Authorisation: clearing.Authorisation{
			Peer: r.Peer, ID: "alice/" + r.Key, Account: "alice", Amount: r.Amount, Issued: clienttest.At(0), Interval: r.Interval, Margin: clearing.MaxClockSkew}}, nil
	})
	var revoked clearing.RevokeRequest
	number := uint64(13)
	clienttest.Answer(s, messages.Bank, clearing.VerbRevoke, func(r clearing.RevokeRequest) (clearing.ClearingReply, error) {
		revoked = r
		return clearing.ClearingReply{Number: number}, nil
	})
	run := func(code int, line, out, err string) {
		t.Helper()
		s.Run(strings.Fields(line)...).Expect(t, code, out, err)
	}
	run(cli.CodeOK, "remit bob@east 10 --key k --from climate --reason thanks", "The bank has set aside 10 credits for bob at east; this is request 12 to the bank of east", "")
	if want := (clearing.RemitRequest{Key: "k", Account: "climate", Peer: "east", Payee: "bob", Amount: 10 * messages.Credit, Reason: "thanks"}); remit != want {
		t.Errorf("asked for %+v", remit)
	}
	run(cli.CodeUsage, "remit bob 10", "", "like bob@east")
	run(cli.CodeUsage, "remit bob@east ten", "", "ten")
	run(cli.CodeOK, "authorise east 20 --for 2d --key k", "Site east may charge alice once, up to 20 credits, until 2026-03-03 12:00:00", "")
	if asked.Peer != "east" || asked.Amount != 20*messages.Credit || asked.Interval.Std() != 48*time.Hour || asked.Key != "k" {
		t.Errorf("asked for %+v", asked)
	}
	run(cli.CodeOK, "authorise east 20 --key k --json", `"id":"alice/k"`, "")
	if asked.Interval.Std() != 7*24*time.Hour {
		t.Errorf("by default for %v", asked.Interval)
	}
	run(cli.CodeUsage, "authorise east 20 --for ever", "", "--for")
	run(cli.CodeOK, "revoke alice/k", "this is request 13", "")
	number = 0
	run(cli.CodeOK, "revoke alice/k", "has this request already", "")
	if revoked.ID != "alice/k" {
		t.Errorf("revoked %+v", revoked)
	}
	other := newSite(t)
	clienttest.Refuse[clearing.RevokeRequest](other, messages.Bank, clearing.VerbRevoke, messages.Errorf(messages.NotFound, "no such authorisation"))
	other.Run("revoke", "x").Expect(t, cli.CodeNotFound, "", "no such authorisation")
}
