package messages

// Verbs of the bank about projects and by operators; each is a command of the
// leader.
const (
	VerbProject  = "project"  // ProjectRequest → AccountReply; operators
	VerbPay      = "pay"      // PayRequest → AccountReply; the account itself, owners of a project, operators
	VerbFreeze   = "freeze"   // FreezeRequest → AccountReply; operators, owners of a project
	VerbCredit   = "credit"   // CreditRequest → AccountReply; operators
	VerbWithdraw = "withdraw" // WithdrawRequest → AccountReply; operators
	VerbCorrect  = "correct"  // CorrectRequest → CorrectReply; operators
)

// Role is what an account may do with a project's account.
type Role uint8

// The roles. Everybody with one may see the account and its statement.
const (
	RoleMember  Role = iota // spends, within its limit
	RoleOwner               // spends, pays, changes members, freezes
	RoleAuditor             // may only read
	RoleSelf                // the account's own name: may do all that an owner may; cannot be granted
)

var roleNames = []string{"member", "owner", "auditor", "self"}

// String returns the role's name.
func (r Role) String() string { return nameOf(roleNames, r, "unknown") }

// Spends reports whether the role may have credits held for its jobs.
func (r Role) Spends() bool { return r != RoleAuditor }

// MarshalText writes the role's name.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a role's name.
func (r *Role) UnmarshalText(b []byte) error { return readName(r, "role", roleNames, b) }

// Membership is the part that an account has in a project.
type Membership struct {
	Member Name    `json:"member"`
	Role   Role    `json:"role"`
	Limit  Credits `json:"limit"` // limit on Spent + Held; 0: none
	Spent  Credits `json:"spent"` // charged for its jobs, minus corrections
	Held   Credits `json:"held"`  // held for its jobs
}

// Expiring is the rest of a grant that expires.
type Expiring struct {
	Grant   string  `json:"grant"` // the grant's transfer
	Expires Time    `json:"expires"`
	Free    Credits `json:"free"` // returns to the issuer now
	Held    Credits `json:"held"` // returns to the issuer as soon as it is freed
}

// ProjectRequest makes a project: an account with owners, which is opened if
// need be. An account that is somebody's own, without members, cannot become
// one. Repeating the request changes nothing; a further one changes the title
// and adds owners.
type ProjectRequest struct {
	Account Name   `json:"account"`
	Title   string `json:"title,omitempty"`
	Owners  []Name `json:"owners,omitempty"`
}

// PayRequest moves credits between accounts for their owner. Credits that expire keep their expiry.
type PayRequest struct {
	Key    string  `json:"key"`
	From   Name    `json:"from,omitempty"` // default: the caller's own
	To     Name    `json:"to"`
	Amount Credits `json:"amount"`
	Reason string  `json:"reason,omitempty"`
}

// FreezeRequest freezes an account or thaws it. On a frozen account nothing new can be held, and nothing
// can be moved from it. Its holds can still be charged, and it can receive credits. Only an operator can
// thaw an account that an operator froze.
type FreezeRequest struct {
	Account Name   `json:"account"`
	Frozen  bool   `json:"frozen"`
	Reason  string `json:"reason,omitempty"`
}

// CreditRequest sets how far below zero the balance of an account may go.
type CreditRequest struct {
	Account Name    `json:"account"`
	Credit  Credits `json:"credit"`
	Reason  string  `json:"reason,omitempty"`
}

// WithdrawRequest takes credits that are available back to the issuer.
type WithdrawRequest struct {
	Key     string  `json:"key"`
	Account Name    `json:"account"`
	Amount  Credits `json:"amount"`
	Reason  string  `json:"reason"`
}

// CorrectRequest takes back a transfer, or part of it, by a new transfer in the other direction. A
// transfer can be corrected once. Its correction can be corrected too.
type CorrectRequest struct {
	Transfer string  `json:"transfer"`         // the identifier, as statements show it
	Amount   Credits `json:"amount,omitempty"` // default: all that it moved
	Reason   string  `json:"reason"`
}

// CorrectReply is the transfer that corrects.
type CorrectReply struct {
	Transfer string  `json:"transfer"`
	Debit    Name    `json:"debit"`
	Credit   Name    `json:"credit"`
	Amount   Credits `json:"amount"`
}

// AccountsRequest lists accounts by name.
type AccountsRequest struct {
	After    Name `json:"after,omitempty"`    // only names after this one, for the next page
	Limit    int  `json:"limit,omitempty"`    // default and most: 1000
	Projects bool `json:"projects,omitempty"` // only projects
}

// BooksRequest asks the bank to check its books. Full has them recomputed from
// the first record, which only operators may ask for.
type BooksRequest struct {
	Full bool `json:"full,omitempty"`
}

// Affords returns why an amount could not be held on the account for a member now; nil if it could.
func (r *AccountReply) Affords(member Name, amount Credits) error {
	if r.Frozen != "" {
		return Errorf(PermissionDenied, "account %q is frozen by %q: nothing can be held on it until it is thawed", r.Account, r.Frozen)
	}
	if r.Available+r.Credit < amount {
		return Errorf(Insufficient, "account %q has %s available, and %v are needed", r.Account, (r.Available + r.Credit).Words(), amount)
	}
	if member == r.Account {
		return nil
	}
	for _, m := range r.Roles {
		switch {
		case m.Member != member || !m.Role.Spends():
		case m.Limit != 0 && m.Limit-m.Spent-m.Held < amount:
			return Errorf(Insufficient, "the limit of %q in account %q leaves it %s, and %v are needed", member, r.Account, max(m.Limit-m.Spent-m.Held, 0).Words(), amount)
		default:
			return nil
		}
	}
	return Errorf(PermissionDenied, "%q may not spend from account %q: one of its owners can make it a member", member, r.Account)
}
