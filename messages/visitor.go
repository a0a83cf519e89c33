package messages

import "strings"

// VisitorName returns this site's name for an account of another site that has jobs here, such as
// "alice@west". No account of this site can have such a name.
func VisitorName(account, home Name) Name { return account + "@" + home }

// IsVisitor reports whether the owner of a job is an account of another site.
func IsVisitor(owner Name) bool { return strings.Contains(owner, "@") }

// Participant returns the name under which a market counts an owner. For an account of another site, this is the name
// of the site, such as "@west". So all accounts of that site count as one owner: the site could give its users any
// number of names.
func Participant(owner Name) Name {
	if at := strings.IndexByte(owner, '@'); at >= 0 {
		return owner[at:]
	}
	return owner
}

// ValidOwner reports whether s names the owner of a job: an account of the site,
// or a visitor.
func ValidOwner(s string) bool {
	account, home, visits := strings.Cut(s, "@")
	return ValidName(account) && (!visits || ValidName(home))
}
