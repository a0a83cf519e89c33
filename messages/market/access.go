package market

import (
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// Takes reports whether the lists Allow and Deny let the market take the jobs of an account. If a project pays for
// these jobs, the argument `project` is its name. Otherwise it is "".
func (m *Market) Takes(account, project messages.Name) bool {
	if names(m.Deny, account, project) {
		return false
	}
	return len(m.Allow) == 0 || names(m.Allow, account, project)
}

// DefaultOf reports whether DefaultFor sends the jobs of an account or project to this market.
func (m *Market) DefaultOf(account, project messages.Name) bool {
	return names(m.DefaultFor, account, project)
}

// names reports whether a list has the account or the project. For an account of another site, it also returns true if
// the list has the name of that site, such as "@west".
func names(list []messages.Name, account, project messages.Name) bool {
	return slices.ContainsFunc(list, func(n messages.Name) bool {
		return n == account || n == messages.Participant(account) || project != "" && n == project
	})
}

// needOwner returns an error unless a name is an account, a project, an account of another site, or all accounts of
// another site.
func needOwner(path string, name messages.Name) error {
	account, home, visits := strings.Cut(name, "@")
	if visits && messages.ValidName(home) && (account == "" || messages.ValidName(account)) || !visits && messages.ValidFreeName(name) {
		return nil
	}
	return messages.Errorf(messages.Invalid, "%s: %q must be an account or a project such as alice, an account of another site such as alice@west, or @west for all accounts of site west", path, messages.Clipped(name))
}
