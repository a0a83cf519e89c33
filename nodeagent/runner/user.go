package runner

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner/users"
)

// userOfAccount as [Config.User] means the user of the same name as the account.
const userOfAccount = "account"

func validUser(s string) error {
	if r, isRange := users.Parse(s); isRange {
		if err := r.Check(); err != nil {
			return messages.Errorf(messages.Invalid, "runner: User %s", detail(err))
		}
	}
	return nil
}

// perAccount reports whether no two accounts have one user: then files and processes
// of different accounts are apart by that alone.
func (c *Config) perAccount() bool {
	_, isRange := users.Parse(c.User)
	return isRange || c.User == userOfAccount
}
