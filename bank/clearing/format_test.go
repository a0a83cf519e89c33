package clearing

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// oldBank is a bank of a ring, before anything was done.
func oldBank() *bank { return newBank("east", sound) }

func readTestdata(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// replayOld applies the log that a bank of some rules wrote, of hundreds of
// commands of all kinds, and returns the hashes that it came to there: of its
// ledger, and of its clearing.
func replayOld(t *testing.T, b *bank, name string) []byte {
	log := readTestdata(t, name)
	for {
		n := binary.BigEndian.Uint32(log)
		if log = log[4:]; n == 0 {
			return log
		}
		b.propose(log[:n])
		log = log[n:]
	}
}

// A log of the first rules comes to what it came to when it was written.
func TestALogOfTheFirstRules(t *testing.T) {
	b := oldBank()
	want := replayOld(t, b, "rules-0.log")
	if got := b.ledger.Hash(); !bytes.Equal(got[:], want) {
		t.Error("the ledger is another than it was")
	}
}

// A log of the bounded rules comes to the ledger that it came to when it was written, and
// an image of that time loads as what its log comes to.
func TestALogOfTheBoundedRules(t *testing.T) {
	b := oldBank()
	want := replayOld(t, b, "rules-1.log")
	books, state := b.ledger.Hash(), b.state.Hash()
	if !bytes.Equal(books[:], want[:len(books)]) {
		t.Error("the ledger is another than it was")
	}
	b.image, b.log = readTestdata(t, "format-2.image"), nil
	if err := b.restart(); err != nil {
		t.Fatal(err)
	}
	if b.state.Hash() != state || b.ledger.Hash() != books {
		t.Error("the image restores to another state than the log")
	}
}

// An image of the first format loads, as what its log came to, and is bounded as
// any other from then on.
func TestAnImageOfTheFirstFormat(t *testing.T) {
	b, live := oldBank(), oldBank()
	replayOld(t, live, "rules-0.log")
	b.image = readTestdata(t, "format-1.image")
	if err := b.restart(); err != nil {
		t.Fatal(err)
	}
	if b.state.Hash() != live.state.Hash() || b.ledger.Hash() != live.ledger.Hash() {
		t.Error("the image restores to another state than the log")
	}
	before := b.state.Peers()
	for _, peer := range before.Peers {
		if peer.Share != peer.Limit {
			t.Errorf("the share of %s is shown as %v, and its limit is %v", peer.Peer, peer.Share, peer.Limit)
		}
	}
	for _, peer := range before.Peers {
		p := b.state.peers.byName[peer.Peer]
		settle := messages.Instruction{Kind: messages.InstructSettle, Cycle: b.state.cycles.latest + 1, Amount: messages.MaxCredits}
		m := messages.Instructions{From: p.Name, To: "east", First: p.In.Total.Number + 1, List: []messages.Instruction{settle}, Known: p.In.Total, At: b.ledger.Now()}
		signed, err := SignInstructions(sealer(p.Name), m)
		if err != nil {
			t.Fatal(err)
		}
		if r := b.command(Command{At: b.ledger.Now(), Instructions: &signed}); r.Receipt == nil {
			t.Fatalf("%s: %v", p.Name, r.Error)
		}
		settled := b.state.terms.describe(p)
		if want := max(0, min(-peer.Owed, settled.Share)); settled.Settled != want || settled.Share == 0 {
			t.Errorf("%s owed %v, and settled %v of a share of %v", p.Name, -peer.Owed, settled.Settled, settled.Share)
		}
	}
	if fault := b.state.Fault(); fault != "" {
		t.Errorf("the fault is %q", fault)
	}
	if err := b.snapshot(); err != nil {
		t.Error(err)
	}
}
