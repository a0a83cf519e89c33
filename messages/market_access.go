package messages

import (
	"slices"
	"strings"
)

// Takes reports whether the market takes the jobs of an account that a project pays for, "" if the account
// pays itself: by the fields Allow and Deny.
func (m *Market) Takes(account, project Name) bool {
	if names(m.Deny, account, project) {
		return false
	}
	return len(m.Allow) == 0 || names(m.Allow, account, project)
}

// DefaultOf reports whether a job of an account goes to the market if it names none: by the field DefaultFor.
func (m *Market) DefaultOf(account, project Name) bool { return names(m.DefaultFor, account, project) }

// names reports whether a list has an account, its site such as "@west" if it is another site's, or a project.
func names(list []Name, account, project Name) bool {
	return slices.ContainsFunc(list, func(n Name) bool {
		return n == account || n == Participant(account) || project != "" && n == project
	})
}

// needOwner checks the name of an account or a project, of an account of another site, or of all of them.
func needOwner(path string, name Name) error {
	account, home, visits := strings.Cut(name, "@")
	if visits && ValidName(home) && (account == "" || ValidName(account)) || !visits && ValidFreeName(name) {
		return nil
	}
	return Errorf(Invalid, "%s: %q must be an account or a project such as alice, an account of another site such as alice@west, or @west for all accounts of site west", path, clip(name))
}
