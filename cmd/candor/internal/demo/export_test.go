package demo

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/money"
)

// The bank sends only one record in each reply. The exported file must still have all records.
func TestBooksAreExportedPageByPage(t *testing.T) {
	kept := ledger.New()
	for i, name := range []messages.Name{"ada", "bob"} {
		c := ledger.Command{Verb: ledger.Grant, At: messages.Time(1_790_000_000_000_000 + i), By: "ops", Grant: money.GrantRequest{Key: name, Account: name, Amount: 5}}
		if r := kept.Apply(c.Encode()); r.Error != nil {
			t.Fatal(r.Error)
		}
	}
	history := kept.History()
	network := bus.NewMemory()
	handle := bus.Handle(money.VerbJournal, func(_ context.Context, _ messages.Name, r money.JournalRequest) (money.JournalReply, error) {
		if r.After == history.Count() {
			return money.JournalReply{}, nil
		}
		record, err := history.Record(r.After + 1)
		return money.JournalReply{Records: []money.JournalRecord{{Number: r.After + 1, Data: record}}, More: r.After+1 < history.Count()}, err
	})
	_, err := network.Connect("bank").Serve(bus.Service{Name: "bank", Version: "1.0.0", Endpoints: []bus.Endpoint{
		{Name: money.VerbJournal, Subject: messages.Subject("west", messages.Bank, money.VerbJournal, "*"), Handle: handle}}})
	if err != nil {
		t.Fatal(err)
	}
	g := &grid{operator: &cli.Session{Bus: network.Connect("operator"), Site: "west", Account: "operator", Timeout: patience}}
	for ending, part := range map[string]string{"journal": "assets:bob:available", "csv": "$issuer,bob"} {
		file := filepath.Join(t.TempDir(), "books."+ending)
		if err := g.exportBooks(t.Context(), file); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), part) {
			t.Errorf("%s: %v\n%s", ending, err, text)
		}
	}
}

func TestBooksFileSaysItsFormat(t *testing.T) {
	for name, right := range map[string]bool{"": true, "b.journal": true, "b.csv": true, "b": false, "b.txt": false} {
		if err := checkBooksFile(name); (err == nil) != right {
			t.Errorf("%q: %v", name, err)
		}
	}
}
