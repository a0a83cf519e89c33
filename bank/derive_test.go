package bank

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/siteclock"
)

// tradingBed returns a bank with an honest journal that has records of every kind.
func tradingBed(t *testing.T) (*bed, *siteKeys) {
	b, k := provenBed(t)
	ops := b.as(k.issue("operator", "ops"), "ops")
	ops.grant("1", "alice", 1000*c)
	ops.grant("2", "bob", 10*c)
	must[money.AccountReply](ops, "ops", messages.VerbGrant, money.GrantRequest{Key: "3", Account: "carol", Amount: 7 * c, Reason: "r", Expires: b.clock() + 60_000_000})
	alice := b.as(k.issue("user", "alice"), "alice")
	must[money.AccountReply](alice, "alice", money.VerbPay, money.PayRequest{Key: "a", To: "bob", Amount: 5 * c, Reason: "lunch"})
	must[money.AccountReply](ops, "ops", money.VerbCredit, money.CreditRequest{Account: "bob", Credit: 3 * c, Reason: "r"})
	service := b.as(k.issue("service", "$auctioneer"), "$auctioneer")
	late := hold("late", "bob", 2*c)
	late.Expires = b.clock() + 30_000_000
	service.transfer(hold("h", "alice", 50*c), late, post("p", "h", 20*c))
	trade(b, k)
	b.setClock(b.clock() + 90_000_000)
	must[money.AccountReply](alice, "alice", money.VerbPay, money.PayRequest{Key: "b", To: "bob", Amount: c, Reason: "tea"})
	return b, k
}

// peered adds a peer to the bank. It returns the peer's key, and a function that carries out a command of the clearing.
func peered(b *bed, k *siteKeys) (east nkeys.KeyPair, do func(clearing.Command) clearing.Result) {
	b.Helper()
	east = accountKey(b.T)
	do = func(command clearing.Command) clearing.Result {
		b.Helper()
		command.At = b.clock()
		r := b.proposeClearing(command)
		if r.Error != nil {
			b.Fatal(r.Error)
		}
		return r
	}
	peer := clearingmsg.PeerRequest{Peer: "east", Keys: []string{public(b.T, east)}, Limit: 20 * c}
	do(clearing.Command{By: "ops", Peer: &peer, Asked: b.signed(k, "operator", "ops", clearingmsg.VerbPeer, peer)})
	return east, do
}

func trade(b *bed, k *siteKeys) {
	b.Helper()
	east, do := peered(b, k)
	in := clearing.Beginning("east", "here")
	for n := range uint64(2) {
		i := clearingmsg.Instruction{Kind: clearingmsg.InstructPay, ID: "x", Account: "alice", Amount: 3 * c, Reason: "r"}
		m, err := clearing.SignInstructions(east, clearingmsg.Instructions{From: "east", To: "here", First: n + 1, List: []clearingmsg.Instruction{i}, Known: in, At: b.clock()})
		if err != nil {
			b.Fatal(err)
		}
		do(clearing.Command{Instructions: &m})
		in = clearing.After(in, &i, &money.TransferResult{Amount: 3 * c})
	}
	may := clearingmsg.AuthoriseRequest{Key: "v", Peer: "east", Amount: 4 * c, Interval: clearingmsg.MinInterval}
	do(clearing.Command{By: "alice", Authorise: &may, Asked: b.signed(k, "user", "alice", clearingmsg.VerbAuthorise, may)})
	do(clearing.Command{Silent: "east"})
}

// standings derives a journal, and returns the balance and reserve of each account, or the error.
func standings(t *testing.T, k *siteKeys, records [][]byte) ([]money.Standing, error) {
	t.Helper()
	exchange, err := k.Exchange()
	if err != nil {
		t.Fatal(err)
	}
	v := ledger.NewVerifier(emptyStore(t))
	v.Trust(&ledger.Root{Site: "here", Account: k.AccountKey(), Exchange: exchange, Later: k.Later, Seen: seen}, clearing.Again("here"))
	for _, raw := range records {
		if err := v.Add(raw); err != nil {
			return nil, err
		}
	}
	return v.Standings(), v.End()
}

func (b *bed) restarts(image []byte) error {
	m := &machine{site: "here", metrics: newMetrics(), archive: b.bank.archive, root: b.bank.machine.root, time: siteclock.NewSteady(b.clock, nil, still)}
	m.ledger, m.clearing = m.open()
	return m.Restore(bytes.NewReader(image))
}

// imageOf returns the image of a bank whose ledger was changed by an attacker who can write its disk.
func (b *bed) imageOf(l *ledger.Ledger) []byte {
	b.Helper()
	var out bytes.Buffer
	b.bank.machine.readClearing(func(s *clearing.State) {
		if _, err := s.Capture().WriteTo(&out); err != nil {
			b.Fatal(err)
		}
	})
	if _, err := l.Capture().WriteTo(&out); err != nil {
		b.Fatal(err)
	}
	return out.Bytes()
}

func (b *bed) copied() *ledger.Ledger {
	b.Helper()
	var out bytes.Buffer
	b.bank.machine.read(func(l *ledger.Ledger) {
		if _, err := l.Capture().WriteTo(&out); err != nil {
			b.Fatal(err)
		}
	})
	l := ledger.New()
	l.Trust(b.bank.machine.root)
	if _, err := l.RestoreWith(&out, ledger.Checking{Settles: clearing.Again("here")}); err != nil {
		b.Fatal(err)
	}
	return l
}

func recordsOf(t *testing.T, l *ledger.Ledger, from uint64) (list [][]byte) {
	t.Helper()
	h := l.History()
	for n := from; n <= h.Count(); n++ {
		raw, err := h.Record(n)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, bytes.Clone(raw))
	}
	return list
}

// forged returns records as a ledger without proofs writes them.
func forged(t *testing.T, commands ...ledger.Command) [][]byte {
	t.Helper()
	l := ledger.New()
	for i := range commands {
		if r := l.ApplyOwn(commands[i].Encode()); r.Error != nil {
			t.Fatal(r.Error)
		}
	}
	return recordsOf(t, l, 1)
}

// In TestAPaymentFromAnothersAccountIsFound, bob signs a payment from alice's account. The journal records it as an
// operator's request. The books add up, and each signature is valid. A check of the journal must still fail.
func TestAPaymentFromAnothersAccountIsFound(t *testing.T) {
	b, k := tradingBed(t)
	l := b.copied()
	pay := money.PayRequest{Key: "x", From: "alice", To: "bob", Amount: 900 * c, Reason: "r"}
	asked := b.signed(k, "user", "bob", money.VerbPay, pay)
	if _, err := l.Asked(money.VerbPay, "bob", asked, l.Now()); err != nil {
		t.Fatal(err)
	}
	command := ledger.Command{Verb: ledger.Pay, At: l.Now(), By: "bob", Rank: ledger.Operator, Within: true, Pay: pay}
	if r := l.ApplyOwn(command.Encode()); r.Error != nil {
		t.Fatal(r.Error)
	}
	if a, err := l.Account("alice"); err != nil || a.Balance >= 200*c {
		t.Fatalf("nothing was planted: %+v %v", a, err)
	}
	if _, err := standings(t, k, recordsOf(t, l, 1)); err == nil {
		t.Error("it verifies")
	} else {
		t.Log(err)
	}
	if err := b.restarts(b.imageOf(l)); err == nil {
		t.Error("a replica starts with it")
	} else {
		t.Log(err)
	}
	if err := b.restarts(b.imageOf(b.copied())); err != nil {
		t.Errorf("a replica does not start with sound books: %v", err)
	}
}

// TestRecordsFromNothingAreFound adds records that nobody signed at the end of a journal. The check must find them.
func TestRecordsFromNothingAreFound(t *testing.T) {
	b, k := tradingBed(t)
	sound := b.records()
	if _, err := standings(t, k, sound); err != nil {
		t.Fatal(err)
	}
	at := b.clock()
	grant := ledger.Command{Verb: ledger.Grant, At: at, By: "ops", Grant: money.GrantRequest{Key: "9", Account: "bob", Amount: c, Expires: at + 1}}
	lapses := hold("h", "bob", c)
	lapses.Expires = at + 1
	expire := ledger.Command{Verb: ledger.Expire, At: at + 1}
	returned := forged(t, grant, expire)
	lapsed := forged(t, grant, ledger.Command{Verb: ledger.Transfers, At: at, By: "$auctioneer", Rank: ledger.Service, Transfers: []money.Transfer{lapses}}, expire)
	last := func(list [][]byte) []byte { return list[len(list)-1] }
	plants := map[string][][]byte{
		"a return of no grant":              {last(returned)},
		"a hold without expiry that lapses": {last(lapsed)},
	}
	// The function returns wrong records, which a replica must reject. They are written by a copy of the correct ledger
	// that checks no proofs. So the sums of the records are right, and only their causes are wrong.
	own := func(c ledger.Command) [][]byte {
		l := b.copied()
		c.At, c.Within = at, true
		if r := l.ApplyOwn(c.Encode()); r.Error != nil || len(r.Transfers) > 0 && r.Transfers[0].Error != nil {
			t.Fatalf("%+v", r)
		}
		if b.restarts(b.imageOf(l)) == nil {
			t.Errorf("a replica starts with %+v", c)
		}
		return recordsOf(t, l, uint64(len(sound))+1)
	}
	grant.Grant.Expires = 0
	plants["a grant that nobody asked for"] = own(grant)
	settles := ledger.Command{By: "$clearing", Rank: ledger.Clearing, Verb: ledger.Credit, Credit: money.CreditRequest{Account: "clearing-east", Credit: 1000 * c, Reason: "r"}}
	plants["a peer's limit raised by nobody"] = own(settles)
	claims := hold(clearing.TransferPrefix+"99", "alice", c)
	claims.Credit = "clearing-east"
	settles.Verb, settles.Transfers = ledger.Transfers, []money.Transfer{claims}
	plants["a hold on alice's credits that a peer may charge"] = own(settles)
	settles.Transfers = []money.Transfer{{ID: clearing.TransferPrefix + "98", Kind: money.Post, Pending: clearing.TransferPrefix + "authorisation/alice/v", Amount: c}}
	plants["a charge that the peer did not make"] = own(settles)
	settles.Transfers = []money.Transfer{{ID: clearing.TransferPrefix + "97", Kind: money.Posted, Debit: "clearing-east", Credit: "bob", Amount: c}}
	plants["a payment of a peer without a statement"] = own(settles)
	plants["a transfer without a mark"] = own(ledger.Command{By: "$auctioneer", Rank: ledger.Service, Verb: ledger.Transfers, Transfers: []money.Transfer{hold("q", "alice", c)}})
	plants["a freeze that nobody asked for"] = own(ledger.Command{By: "ops", Verb: ledger.Freeze, Freeze: money.FreezeRequest{Account: "bob", Frozen: true, Reason: "another"}})
	for i, raw := range sound {
		if line, err := ledger.ReadLine(uint64(i+1), raw); err == nil && line.Ground == "grant" {
			plants["a grant recorded twice"] = [][]byte{raw}
		}
	}
	for name, raw := range plants {
		if len(raw) == 0 {
			t.Errorf("%s: nothing was planted", name)
		}
		if _, err := standings(t, k, append(slices.Clone(sound), raw...)); err == nil {
			t.Errorf("%s: it verifies", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
}

// The records of a journal are correct. But the image in the same directory gives an account more than the records say.
// The replica must not use this image.
func TestAForgedImageIsNotBelieved(t *testing.T) {
	b, _ := tradingBed(t)
	sound := b.imageOf(b.copied())
	if err := b.restarts(sound); err != nil {
		t.Fatal(err)
	}
	for i := len(sound) - 600; i < len(sound)-32; i += 7 {
		image := bytes.Clone(sound)
		image[i] ^= 1
		resum(image)
		if err := b.restarts(image); err == nil {
			t.Errorf("byte %d of %d was changed, and it is believed", i, len(sound))
		}
	}
}

// TestAlteredJournalsAreFound changes a byte of one record, moves the record, or removes it. The verifier must find the
// change, with two exceptions: all balances are the same after the change, or a record was removed on which no later
// record depends. CANDOR_SEEDS is the number of journals.
func TestAlteredJournalsAreFound(t *testing.T) {
	b, k := tradingBed(t)
	sound := b.records()
	want, err := standings(t, k, sound)
	if err != nil {
		t.Fatalf("a false alarm: %v", err)
	}
	journals := 300
	if n, err := strconv.Atoi(os.Getenv("CANDOR_SEEDS")); err == nil {
		journals = n
	}
	found := 0
	for seed := range journals {
		rng := rand.New(rand.NewPCG(uint64(seed), 45))
		records, at := altered(rng, sound)
		is, err := standings(t, k, records)
		if err != nil {
			found++
		} else if !slices.Equal(is, want) && !isOmission(t, records, sound, at, is, want) {
			t.Errorf("seed %d: record %d was altered, and it verifies", seed, at+1)
		}
	}
	if found < journals*3/4 {
		t.Errorf("%d of %d were found", found, journals)
	}
	t.Logf("%d of %d journals were found", found, journals)
}

// altered returns a journal in which one record is altered, and the position of this record. Alterations include that a
// record is missing.
func altered(rng *rand.Rand, sound [][]byte) (records [][]byte, at int) {
	records = slices.Clone(sound)
	at, with := rng.IntN(len(records)), rng.IntN(len(records))
	switch rng.IntN(5) {
	case 0: // if the last record is missing, only a checkpoint shows it
		at = rng.IntN(len(records) - 1)
		records = slices.Delete(records, at, at+1)
	case 1:
		records = slices.Insert(records, with, records[at])
	case 2:
		records[at], records[with] = records[with], records[at]
	default:
		records[at] = bytes.Clone(records[at])
		records[at][rng.IntN(len(records[at]))] ^= 1 << rng.IntN(8)
	}
	return records, at
}

// isOmission reports whether the altered journal only lacks a transfer whose accounts do not appear again. Example: the
// journal had "ada pays bob" and then "cyd pays eve", and the first record was removed. Only a checkpoint shows this.
func isOmission(t *testing.T, records, sound [][]byte, at int, is, want []money.Standing) bool {
	t.Helper()
	if len(records) != len(sound)-1 {
		return false
	}
	lineAt := func(i int) ledger.Line {
		line, err := ledger.ReadLine(uint64(i+1), sound[i])
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	left := lineAt(at)
	of := func(name messages.Name) bool { return name != "" && (name == left.Debit || name == left.Credit) }
	for i := at + 1; i < len(sound); i++ {
		if line := lineAt(i); of(line.Debit) || of(line.Credit) {
			return false
		}
	}
	others := func(all []money.Standing) []money.Standing {
		return slices.DeleteFunc(slices.Clone(all), func(s money.Standing) bool { return of(s.Account) })
	}
	return left.Moves() && slices.Equal(others(is), others(want))
}

func resum(image []byte) {
	at := bytes.Index(image, []byte("candor-ledger-"))
	sum := sha256.Sum256(image[at : len(image)-sha256.Size])
	copy(image[len(image)-sha256.Size:], sum[:])
}
