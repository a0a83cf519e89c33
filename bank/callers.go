package bank

import (
	"slices"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
)

// callers has the operators and services from the configuration. It says which caller may make which requests.
type callers struct {
	operators []messages.Name
	services  []messages.Name
}

func (c *callers) isOperator(caller messages.Name) bool { return slices.Contains(c.operators, caller) }
func (c *callers) isService(caller messages.Name) bool  { return slices.Contains(c.services, caller) }

// rank returns the rank of a caller, which decides what the caller may do. The ledger does not check the rank that it
// gets from the leader.
func (c *callers) rank(caller messages.Name) ledger.Rank {
	switch {
	case c.isOperator(caller):
		return ledger.Operator
	case c.isService(caller):
		return ledger.Service
	}
	return ledger.User
}

func (c *callers) operator(caller messages.Name, what string) error {
	if c.isOperator(caller) {
		return nil
	}
	return messages.Errorf(messages.PermissionDenied, "account %q may not %s: ask an operator of the site", caller, what)
}

// owner returns an error if the caller is a service, because a service cannot own an account. The ledger checks whether
// a user is an owner.
func (c *callers) owner(caller messages.Name, what string) error {
	if c.rank(caller) != ledger.Service {
		return nil
	}
	return messages.Errorf(messages.PermissionDenied, "%q may not %s: only owners and operators may", caller, what)
}

func (c *callers) seesAll(caller messages.Name) bool {
	return c.isOperator(caller) || c.isService(caller)
}
