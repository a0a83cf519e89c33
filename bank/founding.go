package bank

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/money"
)

// founding has the accounts that a new site opens by itself. Until such an account is open, the bank does not accept
// requests about it: the caller must ask again later. Otherwise the bank would answer "there is no such account",
// remember this answer, and give it again to a repeated request.
type founding struct {
	accounts []messages.Name
	machine  *machine
	callers  *callers
	over     atomic.Bool // all accounts are open
}

// await returns an error of the kind Unavailable if one of the named accounts is not open yet.
func (f *founding) await(names ...messages.Name) error {
	if f.over.Load() {
		return nil
	}
	missing := read(f.machine, func(l *ledger.Ledger) (missing []messages.Name) {
		for _, name := range f.accounts {
			if _, err := l.Account(name); err != nil {
				missing = append(missing, name)
			}
		}
		return missing
	})
	if len(missing) == 0 {
		f.over.Store(true)
		return nil
	}
	for _, name := range names {
		if slices.Contains(missing, name) {
			return messages.Errorf(messages.Unavailable, "the site is opening its accounts, and the account of %q is not open yet: ask again in a moment", name)
		}
	}
	return nil
}

// bound wraps a service. Users get an error until the accounts of their request are open. Operators get no such error,
// because they open the accounts.
func (f *founding) bound(s bus.Service) bus.Service {
	for i := range s.Endpoints {
		handle := s.Endpoints[i].Handle
		s.Endpoints[i].Handle = func(ctx context.Context, r bus.Request) ([]byte, error) {
			if !f.callers.isOperator(r.Caller) {
				if err := f.await(r.Caller); err != nil {
					return nil, err
				}
			}
			return handle(ctx, r)
		}
	}
	return s
}

// parties returns the accounts that the transfers debit, and the members for whom the transfers are made.
func parties(list []money.Transfer) (names []messages.Name) {
	for i := range list {
		names = append(names, list[i].Debit, list[i].Member)
	}
	return names
}
