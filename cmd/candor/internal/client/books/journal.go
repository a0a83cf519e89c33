package books

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/bank/export"
	"github.com/candor-grid/candor/bank/history"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/durable"
	"github.com/candor-grid/candor/messages/money"
)

// AddCommands adds the commands about the books to the command bank. Unlike the command bank itself, these commands are
// clients of a running site. The argument `usage` is a help template with the flags of the connection.
func AddCommands(a *cli.App, bank *cobra.Command, usage string) {
	bank.AddGroup(&cobra.Group{ID: "books", Title: "Its books:"})
	for _, c := range []*cobra.Command{exportCommand(a), verifyCommand(a), signCommand(a)} {
		c.GroupID = "books"
		c.SetUsageTemplate(usage)
		bank.AddCommand(c)
	}
}

// journalSource is a running site, or the directory of a stopped replica.
type journalSource interface {
	site() messages.Name
	// each calls f for every record, in order, with the record's canonical bytes.
	each(ctx context.Context, f func(number uint64, record []byte) error) error
}

func withJournal(a *cli.App, directory *string, do func(ctx context.Context, source journalSource) error) func(*cobra.Command, []string) error {
	live := a.Operating(func(ctx context.Context, s *cli.Session, _ []string) error { return do(ctx, &liveJournal{session: s}) })
	return func(cmd *cobra.Command, args []string) error {
		if *directory == "" {
			return live(cmd, args)
		}
		files, err := openHistory(*directory)
		if err != nil {
			return err
		}
		return do(cmd.Context(), &storedJournal{files: files, name: a.Flags.Site})
	}
}

// openHistory opens the history of a replica. The argument `dir` is the directory of the history or of the replica.
func openHistory(dir string) (history.Files, error) {
	if inner := filepath.Join(dir, "history"); isDir(inner) {
		dir = inner
	}
	files, err := history.Existing(dir)
	if err != nil {
		return nil, messages.Errorf(messages.NotFound, "--history: %v: name the directory of a replica of the bank, such as STATE/bank/1", err)
	}
	return files, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// liveJournal reads the journal page by page from the bank's leader.
type liveJournal struct {
	session *cli.Session
	last    money.JournalReply // the last page, which has the balances of all accounts (standings)
}

func (j *liveJournal) site() messages.Name { return j.session.Site }

// each reads all pages of the journal and calls f for every record. The last page also has the balances of the
// accounts. These balances are the balances after the last record.
func (j *liveJournal) each(ctx context.Context, f func(uint64, []byte) error) error {
	r := money.JournalRequest{}
	for {
		page, err := cli.Call[money.JournalReply](ctx, j.session, messages.Bank, money.VerbJournal, r)
		if messages.KindOf(err) == messages.TooLarge && r.Standings {
			return nil // the site has too many accounts to compare; the caller says so
		}
		if err != nil {
			return err
		}
		for _, record := range page.Records {
			if record.Number != r.After+1 {
				return messages.Errorf(messages.Internal, "the bank sent record %d instead of record %d", record.Number, r.After+1)
			}
			if err := f(record.Number, record.Data); err != nil {
				return err
			}
			r.After = record.Number
		}
		if r.Standings && !page.More {
			j.last = page
			return nil
		}
		r.Standings = !page.More
	}
}

// storedJournal reads the journal from the files of a replica.
type storedJournal struct {
	files history.Files
	name  messages.Name
}

func (j *storedJournal) site() messages.Name { return cmp.Or(j.name, "stopped") }

func (j *storedJournal) each(ctx context.Context, f func(uint64, []byte) error) error {
	_, _, err := history.Walk(j.files, func(number uint64, record []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return f(number, record)
	})
	return err
}

const historyFlag = "read the journal of a stopped replica from its `directory`, such as STATE/bank/1, and ask no site"

func exportCommand(a *cli.App) *cobra.Command {
	var format, output, directory string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "write the whole journal as plain-text accounting (operators)",
		Long: `Write the whole journal of the bank for another program: hledger, which
checks that the journal balances, or CSV. The available credits and the holds of
an account are two accounts there. Tags have the job, the transfer, the kind and
the reason.

To recompute the balances from CSV, begin each account at 0. In each line with
the status done or lapsed, subtract "amount" from the account in "debit", and
add "amount" to the account in "credit", if there is one. Add "held", which can
be below 0, to what is held for the account in "debit". After each line the
columns debit_balance, debit_reserved, credit_balance and credit_reserved have
the same numbers. Amounts are credits. Texts that a spreadsheet would take for
a formula begin with an apostrophe.`,
		Example: `  candor bank export --format hledger --output books.journal &&
      hledger -f books.journal check --strict
  candor bank export --format csv --output books.csv`,
		RunE: withJournal(a, &directory, func(ctx context.Context, source journalSource) error {
			return exportBooks(ctx, source, format, output, a.Out)
		}),
	}
	cmd.Flags().StringVar(&format, "format", "hledger", "`format`: hledger or csv")
	cmd.Flags().StringVarP(&output, "output", "o", "", "`file` to write (default: standard output)")
	cmd.Flags().StringVar(&directory, "history", "", historyFlag)
	return cmd
}

// exportBooks writes the journal to the file named output. If output is "", it writes to the writer out.
func exportBooks(ctx context.Context, source journalSource, format, output string, out io.Writer) error {
	if output != "" {
		return exportFile(ctx, source, format, output, "--output")
	}
	w, err := export.New(format, out, source.site())
	if err != nil {
		return err
	}
	return exportAll(ctx, source, w)
}

// Export writes the whole journal of a site into a file, in a format of package export. The argument `flag` is the flag
// that named the file.
func Export(ctx context.Context, s *cli.Session, format, file, flag string) error {
	return exportFile(ctx, &liveJournal{session: s}, format, file, flag)
}

// exportFile writes a file under a temporary name, and renames it when it is complete.
func exportFile(ctx context.Context, source journalSource, format, output, flag string) error {
	output, err := durable.Place(output)
	if err != nil {
		return messages.Errorf(messages.Invalid, "%s: %v", flag, err)
	}
	f, err := os.CreateTemp(filepath.Dir(output), filepath.Base(output)+".new-")
	if err != nil {
		return messages.Errorf(messages.Invalid, "%s: %v", flag, cli.NotMade(output, err))
	}
	defer os.Remove(f.Name()) // after the rename, no file has this name
	w, err := export.New(format, f, source.site())
	if err == nil {
		err = exportAll(ctx, source, w)
	}
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), output)
}

func exportAll(ctx context.Context, source journalSource, w export.Writer) error {
	err := source.each(ctx, func(number uint64, record []byte) error {
		line, err := ledger.ReadLine(number, record)
		if err != nil {
			return messages.Errorf(messages.Internal, "%v: use the release of candor that the site runs", err)
		}
		return w.Line(&line)
	})
	if err != nil {
		return fmt.Errorf("exporting the journal: %w", err)
	}
	return w.Close()
}
