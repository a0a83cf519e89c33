package books_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/bank/history"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

type keptBooks struct {
	site        *clienttest.Site
	ledger      *ledger.Ledger
	records     [][]byte
	standings   []money.Standing
	checkpoints []money.Checkpoint
	signer      nkeys.KeyPair
}

func withBooks(t *testing.T) *keptBooks {
	b := &keptBooks{site: newSite(t), ledger: ledger.New()}
	var err error
	if b.signer, err = nkeys.CreateAccount(); err != nil {
		t.Fatal(err)
	}
	for i, c := range []ledger.Command{
		{Verb: ledger.Grant, By: "ops", Grant: money.GrantRequest{Key: "k", Account: "alice", Amount: 10 * messages.Credit}},
		{Verb: ledger.Transfers, By: "$auctioneer", Rank: ledger.Service, Transfers: []money.Transfer{{ID: "h", Kind: money.Hold, Debit: "alice", Member: "alice", Amount: 4}}},
		{Verb: ledger.Transfers, By: "$auctioneer", Rank: ledger.Service, Transfers: []money.Transfer{{ID: "c", Kind: money.Post, Pending: "h", Credit: "$site", Amount: 3}}},
	} {
		c.At = messages.Time(1_790_000_000_000_000 + i)
		b.ledger.Apply(c.Encode())
	}
	kept := b.ledger.History()
	for n := uint64(1); n <= kept.Count(); n++ {
		record, err := kept.Record(n)
		if err != nil {
			t.Fatal(err)
		}
		b.records = append(b.records, slices.Clone(record))
	}
	if b.standings, err = b.ledger.Standings(10); err != nil {
		t.Fatal(err)
	}
	b.sign(t, kept.Count(), kept.Head())
	clienttest.Answer(b.site, messages.Bank, money.VerbJournal, b.journal)
	clienttest.Answer(b.site, messages.Bank, money.VerbCheckpoints, func(money.CheckpointsRequest) (money.CheckpointsReply, error) {
		return money.CheckpointsReply{Checkpoints: b.checkpoints}, nil
	})
	return b
}

func (b *keptBooks) sign(t *testing.T, records uint64, head ledger.Head) {
	t.Helper()
	c, err := history.Sign(b.signer, money.Checkpoint{Site: "west", Records: records, Head: hex.EncodeToString(head[:])})
	if err != nil {
		t.Fatal(err)
	}
	b.checkpoints = append(b.checkpoints, c)
}

// journal answers a request with at most two records.
func (b *keptBooks) journal(r money.JournalRequest) (money.JournalReply, error) {
	kept := b.ledger.History()
	head := kept.Head()
	reply := money.JournalReply{Count: kept.Count(), Head: hex.EncodeToString(head[:]), Records: []money.JournalRecord{}}
	for n := int(r.After); n < len(b.records) && n < int(r.After)+2; n++ {
		reply.Records = append(reply.Records, money.JournalRecord{Number: uint64(n + 1), Data: b.records[n]})
	}
	reply.More = int(r.After)+2 < len(b.records)
	if r.Standings {
		reply.Standings = b.standings
	}
	return reply, nil
}

func TestVerifySaysWhatItChecked(t *testing.T) {
	b := withBooks(t)
	key, _ := b.signer.PublicKey()
	b.site.Run("bank", "verify", "--key", key).Expect(t, cli.CodeOK, "every record is the result of the bank's rules", "")
	b.site.Run("bank", "verify", "--key", key).Expect(t, cli.CodeOK, "1 checkpoint signed by the site's key; the last covers 4 records", "")
	b.site.Run("bank", "verify").Expect(t, cli.CodeOK, "3 balances match the balances that the bank states", "")
	b.site.Run("bank", "verify").Expect(t, cli.CodeOK, "compare this key with the site's key", "")
	var r struct {
		Records  uint64
		Issued   messages.Credits
		Compared int
		Rules    bool
	}
	if err := json.Unmarshal([]byte(b.site.Run("bank", "verify", "--json").Out), &r); err != nil || r.Records != 4 || r.Issued != 10*messages.Credit || r.Compared != 3 || !r.Rules {
		t.Errorf("%+v, %v", r, err)
	}
	b.checkpoints = nil
	b.site.Run("bank", "verify").Expect(t, cli.CodeOK, "not checked: signatures", "")
}

// The journal lacks the only payment from ada to bob. The check accepts its records, because an honest bank could have
// written them. The site's signed checkpoint must show the fraud.
func TestCheckpointShowsAPaymentThatWasLeftOut(t *testing.T) {
	grant := func(at int, to messages.Name) ledger.Command {
		return ledger.Command{At: messages.Time(at), Verb: ledger.Grant, By: "ops", Grant: money.GrantRequest{Key: to, Account: to, Amount: 10 * messages.Credit}}
	}
	pay := func(at int, from, to messages.Name) ledger.Command {
		return ledger.Command{At: messages.Time(at), Verb: ledger.Transfers, By: "$auctioneer", Rank: ledger.Service,
			Transfers: []money.Transfer{{ID: fmt.Sprint(at), Kind: money.Posted, Debit: from, Credit: to, Amount: 4}}}
	}
	booksOf := func(commands ...ledger.Command) *ledger.Ledger {
		l := ledger.New()
		for _, c := range commands {
			l.Apply(c.Encode())
		}
		return l
	}
	begins := []ledger.Command{grant(1, "ada"), grant(2, "cyd")}
	honest := booksOf(append(slices.Clone(begins), pay(3, "ada", "bob"), pay(4, "cyd", "eve"))...)
	kept := honest.History()
	for name, tc := range map[string]struct {
		after []ledger.Command
		code  int
		says  string
	}{
		"nothing follows": {nil, cli.CodeUnavailable, "records are missing at the end"},
		"more follows":    {[]ledger.Command{pay(5, "cyd", "fay")}, cli.CodeFailed, "signed another history"},
	} {
		t.Run(name, func(t *testing.T) {
			b := withBooks(t)
			dir := t.TempDir()
			files, err := history.Directory(filepath.Join(dir, "history"))
			if err != nil {
				t.Fatal(err)
			}
			forged := booksOf(append(append(slices.Clone(begins), pay(4, "cyd", "eve")), tc.after...)...)
			if err := history.New(files, history.SegmentBytes, nil).SaveTail(forged.Capture().Tail()); err != nil {
				t.Fatal(err)
			}
			b.site.Run("bank", "verify", "--history", dir).Expect(t, cli.CodeOK, "The books verify", "")
			b.checkpoints = nil
			b.sign(t, kept.Count(), kept.Head())
			signed, err := history.ReadCheckpoints(files)
			if err == nil {
				err = signed.Add(b.checkpoints[0])
			}
			if err != nil {
				t.Fatal(err)
			}
			b.site.Run("bank", "verify", "--history", dir).Expect(t, tc.code, "", tc.says)
		})
	}
}

func TestVerifySeesWhatIsWrong(t *testing.T) {
	stranger, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	other, _ := stranger.PublicKey()
	for name, tc := range map[string]struct {
		plant func(*testing.T, *keptBooks)
		args  []string
		says  string
	}{
		"a record altered":        {func(_ *testing.T, b *keptBooks) { b.records[2][len(b.records[2])-3]++ }, nil, "the books do NOT verify"},
		"a record left out":       {func(_ *testing.T, b *keptBooks) { b.records = b.records[:3] }, nil, "records are missing at the end"},
		"a balance":               {func(_ *testing.T, b *keptBooks) { b.standings[2].Balance++ }, nil, "the bank states balance 9.999998"},
		"an account too many":     {func(_ *testing.T, b *keptBooks) { b.standings = append(b.standings, money.Standing{Account: "eve"}) }, nil, "the bank states 4 accounts"},
		"another history signed":  {func(t *testing.T, b *keptBooks) { b.checkpoints = nil; b.sign(t, 3, ledger.Head{1}) }, nil, "signed another history"},
		"a signature altered":     {func(_ *testing.T, b *keptBooks) { b.checkpoints[0].At++ }, nil, "does not have the signature"},
		"signed by somebody else": {func(*testing.T, *keptBooks) {}, []string{"--key", other}, "but the site's key is " + other},
	} {
		b := withBooks(t)
		tc.plant(t, b)
		r := b.site.Run(append([]string{"bank", "verify"}, tc.args...)...)
		if r.Code != cli.CodeFailed || !strings.Contains(r.Err, tc.says) {
			t.Errorf("%s: exit code %d: %s", name, r.Code, r.Err)
		}
	}
}

func TestExportWritesBooks(t *testing.T) {
	b := withBooks(t)
	b.site.Run("bank", "export").Expect(t, cli.CodeOK, "assets:alice:available", "")
	b.site.Run("bank", "export", "--format", "csv").Expect(t, cli.CodeOK, "number,at,status", "")
	file := filepath.Join(t.TempDir(), "books.csv")
	b.site.Run("bank", "export", "--format", "csv", "--output", file).Expect(t, cli.CodeOK, "", "")
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "$issuer,alice") {
		t.Errorf("%s, %v", text, err)
	}
	b.site.Run("bank", "export", "--format", "qif").Expect(t, cli.CodeUsage, "", "hledger, csv")
	b.site.Run("bank", "export", "--output", file+"/x").Expect(t, cli.CodeUsage, "", "--output")
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	b.site.Run("bank", "export", "--output", pipe).Expect(t, cli.CodeUsage, "", "not a regular file")
	if info, err := os.Stat(pipe); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("the export took the place of a pipe: %v, %v", info.Mode(), err)
	}
	b.records[1] = []byte("nonsense")
	b.site.Run("bank", "export", "--output", file).Expect(t, cli.CodeFailed, "", "record 2")
	if again, _ := os.ReadFile(file); string(again) != string(text) {
		t.Error("an export that failed took the place of one that did not")
	}
}

func TestVerifyWithoutASite(t *testing.T) {
	b := withBooks(t)
	dir := t.TempDir()
	files, err := history.Directory(filepath.Join(dir, "history"))
	if err != nil {
		t.Fatal(err)
	}
	if err := history.New(files, history.SegmentBytes, nil).SaveTail(b.ledger.Capture().Tail()); err != nil {
		t.Fatal(err)
	}
	b.site.Run("bank", "verify", "--history", dir).Expect(t, cli.CodeOK, "The books verify: 4 records", "")
	kept, err := history.ReadCheckpoints(files)
	if err != nil {
		t.Fatal(err)
	}
	b.sign(t, 9, ledger.Head{9})
	for i, c := range []money.Checkpoint{b.checkpoints[0], b.checkpoints[len(b.checkpoints)-1]} {
		if err := kept.Add(c); err != nil {
			t.Fatal(err)
		}
		code, says := cli.CodeOK, ""
		if i == 1 { // the record was signed, but the replica was killed before it told anybody
			code, says = cli.CodeUnavailable, "start and stop the replica"
		}
		b.site.Run("bank", "verify", "--history", dir).Expect(t, code, "", says)
	}
	b.site.Run("bank", "export", "--history", filepath.Join(dir, "history")).Expect(t, cli.CodeOK, "equity:$issuer", "")
	b.site.Run("bank", "verify", "--history", filepath.Join(dir, "none")).Expect(t, cli.CodeNotFound, "", "name the directory of a replica")
}
