package money

import "github.com/candor-grid/candor/messages"

// These are the verbs of the bank for projects and for operators. The leader makes a command of each such request.
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

// These are the roles in a project. An account with a role may see the project's account and its statement.
const (
	RoleMember  Role = iota // may spend, within the member's limit
	RoleOwner               // may spend, pay, change members and freeze
	RoleAuditor             // may only see
	RoleSelf                // the account's own name: may do all that an owner may; this role cannot be given
)

var roleNames = []string{"member", "owner", "auditor", "self"}

// String returns the role's name.
func (r Role) String() string { return messages.NameOf(roleNames, r, "unknown") }

// Spends reports whether an account with the role may pay for its jobs from the project.
func (r Role) Spends() bool { return r != RoleAuditor }

// MarshalText writes the role's name.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a role's name.
func (r *Role) UnmarshalText(b []byte) error { return messages.ReadName(r, "role", roleNames, b) }

// Membership is the role of an account in a project, with the account's limit and the credits that it spent.
type Membership struct {
	Member messages.Name    `json:"member"`
	Role   Role             `json:"role"`
	Limit  messages.Credits `json:"limit"` // limit of Spent + Held; 0 means none
	Spent  messages.Credits `json:"spent"` // charged for its jobs, minus corrections
	Held   messages.Credits `json:"held"`  // held for its jobs
}

// Expiring is the remaining part of a grant that expires.
type Expiring struct {
	Grant   string           `json:"grant"` // ID of the grant's transfer
	Expires messages.Time    `json:"expires"`
	Free    messages.Credits `json:"free"` // unused: goes back to the issuer at the expiry
	Held    messages.Credits `json:"held"` // held: goes back to the issuer as soon as it is free
}

// ProjectRequest makes a project: an account with owners. The account is opened if needed, but a user's own account
// without members cannot become a project. A later request can change the title and add owners.
type ProjectRequest struct {
	Account messages.Name   `json:"account"`
	Title   string          `json:"title,omitempty"`
	Owners  []messages.Name `json:"owners,omitempty"`
}

// PayRequest moves credits from one account to another. An owner of the paying account must send it. Credits that
// expire keep their expiry.
type PayRequest struct {
	Key    string           `json:"key"`
	From   messages.Name    `json:"from,omitempty"` // the default is the caller's own
	To     messages.Name    `json:"to"`
	Amount messages.Credits `json:"amount"`
	Reason string           `json:"reason,omitempty"`
}

// FreezeRequest freezes an account or thaws it. A frozen account gets no new holds, and no credits leave it. Existing
// holds can still be charged, and the account can receive credits. Only an operator can thaw an account that an
// operator froze.
type FreezeRequest struct {
	Account messages.Name `json:"account"`
	Frozen  bool          `json:"frozen"`
	Reason  string        `json:"reason,omitempty"`
}

// CreditRequest sets how far the balance of an account may go below zero.
type CreditRequest struct {
	Account messages.Name    `json:"account"`
	Credit  messages.Credits `json:"credit"`
	Reason  string           `json:"reason,omitempty"`
}

// WithdrawRequest moves available credits back to the issuer.
type WithdrawRequest struct {
	Key     string           `json:"key"`
	Account messages.Name    `json:"account"`
	Amount  messages.Credits `json:"amount"`
	Reason  string           `json:"reason"`
}

// CorrectRequest takes a transfer back, or a part of it, by a new transfer in the other direction. A transfer can be
// corrected once, and so can its correction.
type CorrectRequest struct {
	Transfer string           `json:"transfer"`         // its identifier, as statements show it
	Amount   messages.Credits `json:"amount,omitempty"` // the default is the whole amount
	Reason   string           `json:"reason"`
}

// CorrectReply describes the transfer that took an earlier transfer back.
type CorrectReply struct {
	Transfer string           `json:"transfer"`
	Debit    messages.Name    `json:"debit"`
	Credit   messages.Name    `json:"credit"`
	Amount   messages.Credits `json:"amount"`
}

// AccountsRequest lists accounts by name.
type AccountsRequest struct {
	After    messages.Name `json:"after,omitempty"`    // only names after this one, for the next page
	Limit    int           `json:"limit,omitempty"`    // default and maximum: 1000
	Projects bool          `json:"projects,omitempty"` // only projects
}

// BooksRequest asks the bank to check its books. If Full is true, the bank computes its books again from the first
// record. Only operators may set Full.
type BooksRequest struct {
	Full bool `json:"full,omitempty"`
}

// Affords returns an error if an amount cannot be set aside on the account for a member now.
func (r *AccountReply) Affords(member messages.Name, amount messages.Credits) error {
	if r.Frozen != "" {
		return messages.Errorf(messages.PermissionDenied, "account %q is frozen by %q: nothing can be held on it until it is thawed", r.Account, r.Frozen)
	}
	if r.Available+r.Credit < amount {
		return messages.Errorf(messages.Insufficient, "account %q has %s available, and %v are needed", r.Account, (r.Available + r.Credit).Words(), amount)
	}
	if member == r.Account {
		return nil
	}
	for _, m := range r.Roles {
		switch {
		case m.Member != member || !m.Role.Spends():
		case m.Limit != 0 && m.Limit-m.Spent-m.Held < amount:
			return messages.Errorf(messages.Insufficient, "the limit of %q in account %q leaves %s to spend, and %v are needed", member, r.Account, max(m.Limit-m.Spent-m.Held, 0).Words(), amount)
		default:
			return nil
		}
	}
	return messages.Errorf(messages.PermissionDenied, "%q may not spend from account %q: ask an owner of the account to make %q a member", member, r.Account, member)
}
