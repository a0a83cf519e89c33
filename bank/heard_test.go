package bank

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
)

// audited verifies the records of the bank "here" with only the site's public key.
func audited(t *testing.T, k *siteKeys, records [][]byte) (ledger.ProofReport, error) {
	v := ledger.NewVerifier(emptyStore(t))
	v.Trust(&ledger.Root{Site: "here", Account: k.AccountKey(), Unread: true}, clearing.Again("here"))
	for _, raw := range records {
		if err := v.Add(raw); err != nil {
			return v.Proofs(), err
		}
	}
	return v.Proofs(), v.End()
}

// The auditor has only the journal. For each movement of credits to or from a peer's account, it must find a message
// that the peer's bank signed. No two movements may have the same message.
func TestAnAuditorChecksWhatPeersSigned(t *testing.T) {
	b, k := provenBed(t)
	b.as(k.issue("operator", "ops"), "ops").grant("1", "ada", 10*c)
	east := accountKey(t)
	ops := func(verb string, request any) *messages.SignedRequest {
		return b.signed(k, "operator", "ops", verb, request)
	}
	must := func(command clearing.Command) clearing.Result {
		t.Helper()
		command.At = b.clock()
		r := b.proposeClearing(command)
		if r.Error != nil {
			t.Fatal(r.Error)
		}
		return r
	}
	peer := clearingmsg.PeerRequest{Peer: "east", Keys: []string{public(t, east)}, Limit: 20 * c}
	must(clearing.Command{By: "ops", Peer: &peer, Asked: ops(clearingmsg.VerbPeer, peer)})

	// in this test, east makes two payments to Ada, and Ada makes one to an account at east
	in := clearing.Beginning("east", "here")
	pays := func(amount messages.Credits) {
		t.Helper()
		i := clearingmsg.Instruction{Kind: clearingmsg.InstructPay, ID: "x", Account: "ada", Amount: amount, Reason: "r"}
		m, err := clearing.SignInstructions(east, clearingmsg.Instructions{From: "east", To: "here", First: in.Number + 1, List: []clearingmsg.Instruction{i}, Known: in, At: b.clock()})
		if err != nil {
			t.Fatal(err)
		}
		must(clearing.Command{Instructions: &m})
		in = clearing.After(in, &i, &money.TransferResult{Amount: amount})
	}
	pays(5 * c)
	pays(5 * c)
	remit := clearingmsg.RemitRequest{Key: "r", Peer: "east", Payee: "eve", Amount: 4 * c}
	must(clearing.Command{By: "ada", Remit: &remit, Asked: b.signed(k, "user", "ada", clearingmsg.VerbRemit, remit)})
	sent := clearingmsg.Instructions{}
	b.bank.machine.readClearing(func(s *clearing.State) { sent, _ = s.Outgoing("east", b.clock()) })
	outcome := money.TransferResult{Amount: 4 * c}
	receipt, err := clearing.SignReceipt(east, clearingmsg.Receipt{From: "east", To: "here", First: 1, Outcomes: []money.TransferResult{outcome},
		Total: clearing.After(clearing.Beginning("here", "east"), &sent.List[0], &outcome), At: b.clock()})
	if err != nil {
		t.Fatal(err)
	}
	must(clearing.Command{Receipt: &receipt})

	records := b.records()
	report, err := audited(t, k, records)
	if err != nil || report.Said != 3 || report.Settled == 0 {
		t.Fatalf("got %+v, %v", report, err)
	}
	var statements []int
	for i, raw := range records {
		if bytes.Contains(raw, []byte("$east")) {
			statements = append(statements, i)
		}
	}
	with := func(at int, raw []byte) [][]byte {
		out := slices.Clone(records)
		out[at] = raw
		return out
	}
	flipped := bytes.Clone(records[statements[0]])
	flipped[len(flipped)-1] ^= 1
	more := bytes.Clone(records[statements[0]])
	more[bytes.Index(more, []byte("ada"))] = 'i'
	for name, c := range map[string]struct {
		records [][]byte
		says    string
	}{
		"a flipped signature":      {with(statements[0], flipped), "the signature is not from"},
		"another payee":            {with(statements[0], more), "the signature is not from"},
		"a statement that counted": {with(statements[1], records[statements[0]]), "does not follow from the records before it"},
		"another's statement":      {with(statements[2], records[statements[1]]), "does not follow from the records before it"},
	} {
		if _, err := audited(t, k, c.records); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
