package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/candor-grid/candor/bank/export"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
)

// formats are the formats of the books by the ending of their file's name.
var formats = map[string]string{".journal": "hledger", ".beancount": "beancount", ".csv": "csv"}

// checkBooksFile refuses, before anything runs, a name that says no format.
func checkBooksFile(name string) error {
	if name == "" || formats[filepath.Ext(name)] != "" {
		return nil
	}
	return fmt.Errorf("--books %s: end its name in .journal (hledger), .beancount or .csv", name)
}

// exportBooks writes the bank's whole journal into a file.
func (g *grid) exportBooks(ctx context.Context, name string) error {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("--books: %w", err)
	}
	w, err := export.New(formats[filepath.Ext(name)], f, g.site)
	if err == nil {
		err = g.journal(ctx, w)
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// journal writes every record.
func (g *grid) journal(ctx context.Context, w export.Writer) error {
	request := messages.JournalRequest{}
	for {
		page, err := ask[messages.JournalReply](ctx, g, messages.Bank, messages.VerbJournal, request)
		if err != nil {
			return err
		}
		for _, record := range page.Records {
			line, err := ledger.ReadLine(record.Number, record.Data)
			if err != nil {
				return err
			}
			if err := w.Line(&line); err != nil {
				return err
			}
			request.After = record.Number
		}
		if !page.More {
			return w.Close()
		}
	}
}
