package clearing

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	moneymsg "github.com/candor-grid/candor/messages/money"
)

// onBehalf returns an authorisation that the site's auctioneer asked for in ada's name, for her job 17.
func (s *side) onBehalf(other *side, credits messages.Credits) clearing.SignedAuthorisation {
	s.Helper()
	r := s.must(Command{By: "$auctioneer", Authorise: &clearing.AuthoriseRequest{
		Key: "job/17", Member: "ada", Job: 17, Peer: other.name, Amount: credits * messages.Credit, Interval: 3600 * span, Reason: "job 17"}})
	a, err := SignAuthorisation(s.keys, *r.Authorisation)
	if err != nil {
		s.Fatal(err)
	}
	return a
}

func TestAuthoriseOnBehalf(t *testing.T) {
	east, west := pair(t)
	a := east.onBehalf(west, 10)
	if got := a.Authorisation; got.ID != "$auctioneer/job/17" || got.Account != "ada" || got.Member != "ada" {
		t.Errorf("authorised %+v", got)
	}
	if again := east.onBehalf(west, 10); !reflect.DeepEqual(again, a) {
		t.Errorf("again: %+v", again)
	}
	east.has("ada", 100, 10)
	west.must(accepting(a))
	west.must(charging(a, 4))
	west.exchange(east)
	east.has("ada", 96, 0)
	statement, err := east.ledger.Statement(moneymsg.StatementRequest{Account: "ada", Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range statement.Entries[len(statement.Entries)-2:] { // the hold and the charge
		if e.Job != 17 {
			t.Errorf("the statement does not name the job: %+v", e)
		}
	}
	east.refuse(Ordinary, messages.Insufficient, Command{By: "$auctioneer", Authorise: &clearing.AuthoriseRequest{
		Key: "job/18", Member: "ada", Peer: "west", Amount: 97 * messages.Credit, Interval: 3600 * span}})
}

// An authorisation can be marked as Firm: its work is already running. Then nobody can give the authorisation up before
// it is charged.
func TestFirmAuthorisations(t *testing.T) {
	east, west := pair(t)
	a := east.onBehalf(west, 10)
	firm := accepting(a)
	firm.Accept.Firm = true
	west.must(firm)
	var image bytes.Buffer
	if _, err := west.state.Capture().WriteTo(&image); err != nil {
		t.Fatal(err)
	}
	if err := west.state.Restore(&image); err != nil {
		t.Fatal(err)
	}
	east.must(Command{By: "ada", Revoke: &clearing.RevokeRequest{ID: a.Authorisation.ID}})
	east.exchange(west)
	east.has("ada", 100, 10)
	west.must(firm)
	west.must(charging(a, 3))
	west.exchange(east)
	east.has("ada", 97, 0)
}

// TestRevokeOnBehalf checks that the service that asked for an authorisation may have it revoked, and no other user.
func TestRevokeOnBehalf(t *testing.T) {
	east, west := pair(t)
	a := east.onBehalf(west, 10)
	east.refuse(Ordinary, messages.NotFound, Command{By: "bob", Revoke: &clearing.RevokeRequest{ID: a.Authorisation.ID}})
	east.must(Command{By: "$auctioneer", Revoke: &clearing.RevokeRequest{ID: a.Authorisation.ID}})
	east.exchange(west)
	east.has("ada", 100, 0)
	west.refuse(Recharged, messages.Ended, accepting(a))
}
