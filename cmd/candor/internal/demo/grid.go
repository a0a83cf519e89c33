package demo

import (
	"context"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// grid is a site as its users and its operator see it: it holds only connections.
type grid struct {
	site     messages.Name
	operator messages.Name
	watcher  bus.Bus                   // the operator's connection
	users    map[messages.Name]bus.Bus // each user's own
}

// connector gives a connection under an account; *embedded.Site is one.
type connector interface {
	Connect(account messages.Name) (bus.Bus, error)
}

// connect opens the connections of the workload's users and of the operator.
func connect(site connector, name, operator messages.Name, w *Workload) (*grid, error) {
	g := &grid{site: name, operator: operator, users: map[messages.Name]bus.Bus{}}
	var err error
	if g.watcher, err = site.Connect(operator); err != nil {
		return nil, err
	}
	for _, a := range w.Accounts {
		if g.users[a.Name], err = site.Connect(a.Name); err != nil {
			g.close()
			return nil, err
		}
	}
	return g, nil
}

func (g *grid) close() {
	g.watcher.Close()
	for _, b := range g.users {
		if b != nil {
			b.Close()
		}
	}
}

// submit hands in a job as one of the users.
func (g *grid) submit(ctx context.Context, account messages.Name, request messages.SubmitRequest) (messages.SubmitReply, error) {
	subject := messages.Subject(g.site, messages.Auctioneer, messages.VerbSubmit, account)
	return bus.Call[messages.SubmitReply](ctx, g.users[account], subject, request)
}

// ask sends the operator's request to an actor.
func ask[Reply any](ctx context.Context, g *grid, actor, verb string, request any) (Reply, error) {
	return bus.Call[Reply](ctx, g.watcher, messages.Subject(g.site, actor, verb, g.operator), request)
}

// statement reads the whole history of an account, page by page.
func (g *grid) statement(ctx context.Context, account messages.Name) (statement, error) {
	s := statement{account: account}
	request := messages.StatementRequest{Account: account, Limit: 1000}
	for {
		page, err := ask[messages.StatementReply](ctx, g, messages.Bank, messages.VerbStatement, request)
		if err != nil {
			return s, err
		}
		s.entries = append(s.entries, page.Entries...)
		if !page.More || len(page.Entries) == 0 {
			return s, nil
		}
		request.After = page.Entries[len(page.Entries)-1].Number
	}
}

// statements reads every account's history.
func (g *grid) statements(ctx context.Context) ([]statement, error) {
	accounts, err := ask[messages.AccountsReply](ctx, g, messages.Bank, messages.VerbAccounts, messages.Empty{})
	if err != nil {
		return nil, err
	}
	all := make([]statement, len(accounts.Accounts))
	for i, a := range accounts.Accounts {
		if all[i], err = g.statement(ctx, a.Account); err != nil {
			return nil, err
		}
	}
	return all, nil
}
