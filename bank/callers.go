package bank

import (
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
)

// callers says who may ask for what, by the configuration.
type callers struct {
	operators map[messages.Name]bool
	services  map[messages.Name]bool
}

// rank is that of a caller. The ledger takes the leader's word for it.
func (c *callers) rank(caller messages.Name) ledger.Rank {
	switch {
	case c.operators[caller]:
		return ledger.Operator
	case c.services[caller]:
		return ledger.Service
	}
	return ledger.User
}

// operator refuses whoever is not one.
func (c *callers) operator(caller messages.Name, what string) error {
	if c.operators[caller] {
		return nil
	}
	return messages.Errorf(messages.PermissionDenied, "account %q may not %s: ask an operator of the site", caller, what)
}

// owner refuses whoever can own no account: a service. Whether a user owns the
// one it names is for the ledger to say.
func (c *callers) owner(caller messages.Name, what string) error {
	if c.rank(caller) != ledger.Service {
		return nil
	}
	return messages.Errorf(messages.PermissionDenied, "%q may not %s: only owners and operators may", caller, what)
}

// seesAll reports whether a caller may see every account.
func (c *callers) seesAll(caller messages.Name) bool {
	return c.operators[caller] || c.services[caller]
}

func set(names []messages.Name) map[messages.Name]bool {
	s := make(map[messages.Name]bool, len(names))
	for _, name := range names {
		s[name] = true
	}
	return s
}
