package demo

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/accounts"
	"github.com/candor-grid/candor/cmd/candor/internal/client/books"
	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/money"
)

// grid is a site as users see it: only the connections of the users and of the operator.
type grid struct {
	operator *cli.Session
	users    map[messages.Name]*cli.Session
}

// connector connects to a site as an account. *embedded.Site implements it.
type connector interface {
	Connect(account messages.Name) (bus.Bus, error)
}

// patience is the time limit of each request. In practice the time limit of the whole demo, which is shorter, ends a
// request earlier.
const patience = time.Hour

func connect(site connector, name, operator messages.Name, w *Workload) (*grid, error) {
	g := &grid{users: map[messages.Name]*cli.Session{}}
	open := func(account messages.Name) (*cli.Session, error) {
		b, err := site.Connect(account)
		return &cli.Session{Bus: b, Site: name, Account: account, Timeout: patience}, err
	}
	var err error
	if g.operator, err = open(operator); err != nil {
		return nil, err
	}
	for _, a := range w.Accounts {
		user, err := open(a.Name)
		if err != nil {
			g.close()
			return nil, err
		}
		g.users[a.Name] = user
	}
	return g, nil
}

func (g *grid) close() {
	g.operator.Bus.Close()
	for _, user := range g.users {
		user.Bus.Close()
	}
}

func ask[Reply any](ctx context.Context, g *grid, actor, verb string, request any) (Reply, error) {
	return cli.Call[Reply](ctx, g.operator, actor, verb, request)
}

func (g *grid) statements(ctx context.Context) ([]statement, error) {
	list, err := ask[money.AccountsReply](ctx, g, messages.Bank, messages.VerbAccounts, messages.Empty{})
	if err != nil {
		return nil, err
	}
	var all []statement
	for _, a := range list.Accounts {
		whole, err := accounts.FullStatement(ctx, g.operator, money.StatementRequest{Account: a.Account})
		if err != nil {
			return nil, err
		}
		all = append(all, statement{a.Account, whole.Entries})
	}
	return all, nil
}

// formats are the formats of exported books, by the ending of the file's name.
var formats = map[string]string{".journal": "hledger", ".csv": "csv"}

// checkBooksFile refuses a file name whose ending is not in formats.
func checkBooksFile(name string) error {
	if name == "" || formats[filepath.Ext(name)] != "" {
		return nil
	}
	return fmt.Errorf("--books %s: the name must end in .journal (hledger) or .csv", name)
}

func (g *grid) exportBooks(ctx context.Context, name string) error {
	return books.Export(ctx, g.operator, formats[filepath.Ext(name)], name, "--books")
}
