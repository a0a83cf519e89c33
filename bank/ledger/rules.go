package ledger

// rules is a version of what commands do and of what is written down of it. A
// ledger is under the latest rules that any of its commands was of, so that a
// log in which two releases wrote comes to the same at every replica, and old
// journals come to what they came to. The list is append-only.
type rules uint8

const (
	// firstRules are those of commands up to version 2. Their records do not say
	// the rank of who asked, and who may ask for what was left to the leader.
	firstRules rules = iota + 1
	// secondRules have ranks. What an account owed of a grant
	// that expired goes back as soon as the account can cover it. The
	// correction of a correction restores what was spent. A payment that was made is
	// answered so to whoever made it, also once it owns the account no more. Holds
	// do not sum to more than can be counted, and what settles with other sites does
	// not expire. Of a refusal only the kind is written down.
	secondRules
)
