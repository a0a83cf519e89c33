package books_test

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/books"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/clienttest"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// newSite returns a site whose user has the commands of the package, as subcommands of bank.
func newSite(t *testing.T) *clienttest.Site {
	return clienttest.New(t, func(a *cli.App) []*cobra.Command {
		bank := &cobra.Command{Use: "bank", Run: func(*cobra.Command, []string) {}}
		books.AddCommands(a, bank, bank.UsageTemplate())
		return []*cobra.Command{books.Command(a), bank}
	})
}

func TestBooksViews(t *testing.T) {
	books := money.BooksReply{Issued: 300 * messages.Credit, Balances: 300 * messages.Credit, Held: 12_500_000, Holds: 1, Accounts: 5, Transfers: 1234, Balanced: true}
	clienttest.CheckViews(t, newSite, map[string]clienttest.View{
		"books":        {Line: "books", Serve: clienttest.Gives[money.BooksRequest](messages.Bank, messages.VerbBooks, books)},
		"books_broken": {Line: "books", Serve: clienttest.Gives[money.BooksRequest](messages.Bank, messages.VerbBooks, money.BooksReply{Issued: 300 * messages.Credit, Balances: 299 * messages.Credit, Message: "1 credit is missing"})},
	})
}

func TestBooksThatDoNotBalanceExitWith1(t *testing.T) {
	s := newSite(t)
	clienttest.Answer(s, messages.Bank, messages.VerbBooks, func(money.BooksRequest) (money.BooksReply, error) {
		return money.BooksReply{Message: "hm"}, nil
	})
	s.Run("books").Expect(t, cli.CodeFailed, "The books do NOT balance", "")
}
