package money

import "github.com/candor-grid/candor/messages"

// These are the accounts that the bank itself keeps. No user can choose a name with '$'.
const (
	IssuerAccount = "$issuer" // grants come from this account; its balance is minus the credits issued
	SiteAccount   = "$site"   // jobs pay into this account
)

// TransferKind is the effect of a transfer on its hold and balances.
type TransferKind uint8

// These are the kinds of transfer.
const (
	Posted TransferKind = iota // moves Amount from Debit to Credit at once
	Hold                       // sets Amount aside on Debit until the hold is posted, voided or expires
	Post                       // ends hold Pending: moves Amount (at most the held amount) to Credit, and frees the rest
	Void                       // ends hold Pending: frees all of it
	Extend                     // moves the expiry of hold Pending to Expires, if that is later
)

var transferNames = []string{"posted", "hold", "post", "void", "extend"}

// String returns the kind's name.
func (k TransferKind) String() string { return messages.NameOf(transferNames, k, "unknown") }

// MarshalText writes the kind's name.
func (k TransferKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a kind's name.
func (k *TransferKind) UnmarshalText(b []byte) error {
	return messages.ReadName(k, "transfer kind", transferNames, b)
}

// Transfer is one movement of credits. Its sender chooses the ID and stores it before sending. If the same ID is sent
// again with the same content, the sender gets the first result. If it is sent again with other content, the result is
// the error Conflict.
type Transfer struct {
	ID      string           `json:"id"`
	Kind    TransferKind     `json:"kind"`
	Debit   messages.Name    `json:"debit,omitempty"`
	Credit  messages.Name    `json:"credit,omitempty"`
	Amount  messages.Credits `json:"amount"`
	Pending string           `json:"pending,omitempty"` // ID of the hold for Post, Void or Extend
	Expires messages.Time    `json:"expires,omitempty"` // when a Hold or Extend expires; 0 means never
	// Member is the account that is responsible for the hold: the debit account or one of its members. It is set only
	// for Hold.
	Member messages.Name  `json:"member,omitempty"`
	Job    messages.JobID `json:"job,omitempty"`
	Reason string         `json:"reason,omitempty"`
	// Linked ties the transfer to the next one of the request. A chain of linked transfers is carried out as a whole
	// or not at all.
	Linked bool `json:"linked,omitempty"`
	// Timeout is used when a transfer makes a hold or extends one: the hold expires when this time has passed since the
	// transfer. It is for senders whose clock may differ from the bank's clock. Expires and Timeout may not both be
	// given.
	Timeout messages.Duration `json:"timeout,omitempty"`
}

// MaxLegs is the largest number of linked transfers in one chain that the bank always accepts.
const MaxLegs = 1024

// TransferRequest asks the bank for transfers, in order. Only services and operators may send it.
//
// A payment between many accounts in one step, such as the expected-externality payments of a batch queue, is one chain
// of up to MaxLegs transfers. All transfers except the last are Linked. They are carried out in order, each on the
// balances that the earlier ones left. Either all are done or none. Credits may pass through an account without
// credits, so n accounts pay m accounts in n + m legs:
//
//	post  hold of ada → $site  4    linked    (what she owes from her hold; the other credits are freed)
//	post  hold of bob → $site  2    linked
//	post  $site → cyd          5    linked    (what cyd is owed)
//	post  $site → dan          1    linked
//	void  hold of cyd               the end of the chain
//
// Each leg has a debit and a credit, so the sum of the chain is exactly zero. The balance of $site does not change if
// the amounts paid in equal the amounts paid out; the sender rounds once to make them equal. If one leg is refused, all
// are refused, and the error of each leg has the same kind.
type TransferRequest struct {
	Transfers []Transfer `json:"transfers"`
	// Proof is required if the site's bank asks for proofs.
	Proof *messages.TransferProof `json:"proof,omitempty"`
}

// TransferReply answers each transfer of the request, in order.
type TransferReply struct {
	Results []TransferResult `json:"results"`
}

// TransferResult is the remembered result of one transfer. If the transfer was done, Error is nil. Then Amount is what
// a Posted or Post moved, what a Hold set aside, or what a Void freed. For an Extend, it is the amount of the hold.
type TransferResult struct {
	Amount messages.Credits `json:"amount"`
	Error  *messages.Error  `json:"error,omitempty"`
}

// GrantRequest issues credits to an account, and opens the account if it does not exist.
type GrantRequest struct {
	Key     string           `json:"key"`
	Account messages.Name    `json:"account"`
	Amount  messages.Credits `json:"amount"`
	Reason  string           `json:"reason,omitempty"`
	// Expires is when the unspent part of the grant goes back to the issuer. If Expires is 0, it goes back when the
	// duration in Lasts has passed. If both are 0, it never goes back. A sender that wants to be able to repeat a
	// request should use Lasts, because Lasts is the same in the first request and in a later repetition.
	Expires messages.Time     `json:"expires,omitempty"`
	Lasts   messages.Duration `json:"lasts,omitempty"`
}

// MemberRequest allows an account to spend from a project's account, or removes this right. Operators and the project's
// owners may send it. Fields that are left out do not change. A new member may spend without a limit.
type MemberRequest struct {
	Account messages.Name `json:"account"` // the project
	Member  messages.Name `json:"member"`
	Remove  bool          `json:"remove,omitempty"`

	Role *Role `json:"role,omitempty"`
	// Limit bounds what the member has ever spent from the project, plus what it has set aside there now. 0 means no
	// bound.
	Limit *messages.Credits `json:"limit,omitempty"`
}

// AccountRequest names an account; empty means the caller's own account. Only members of the account and operators get
// an answer.
type AccountRequest struct {
	Account messages.Name `json:"account,omitempty"`
	Holds   bool          `json:"holds,omitempty"` // also list the holds, at most MaxPendingHolds of them
}

// MaxPendingHolds is the maximum number of an account's holds in a reply. The reply lists the newest holds.
const MaxPendingHolds = 200

// PendingHold is credits that are set aside.
type PendingHold struct {
	ID      string           `json:"id"`
	Amount  messages.Credits `json:"amount"`
	Expires messages.Time    `json:"expires"` // when it expires; 0 means never
	Job     messages.JobID   `json:"job,omitempty"`
	By      messages.Name    `json:"by"`     // the account that made it
	Member  messages.Name    `json:"member"` // the account that is responsible for it
	Payee   messages.Name    `json:"payee"`  // the only account that it can be paid to; "" means any account
}

// AccountReply is an account as the bank sees it. Members, Roles and Expiring are only in answers to questions about
// accounts, not to changes.
type AccountReply struct {
	Account   messages.Name    `json:"account"`
	Balance   messages.Credits `json:"balance"`
	Reserved  messages.Credits `json:"reserved"`  // held for jobs
	Available messages.Credits `json:"available"` // balance − reserved
	Granted   messages.Credits `json:"granted"`   // received from the issuer since the beginning, as far as it can be counted
	Spent     messages.Credits `json:"spent"`     // charged for jobs since the beginning
	Members   []messages.Name  `json:"members"`   // who may spend: owners and members, not auditors

	Credit   messages.Credits `json:"credit"`           // how far the balance may go below zero; usable by holds, not part of Available
	Holds    int              `json:"holds"`            // number of pending holds
	Project  bool             `json:"project"`          // the account was made as a project
	Title    string           `json:"title,omitempty"`  // title of a project
	Roles    []Membership     `json:"roles"`            // every account with a role in the project, by name
	Frozen   messages.Name    `json:"frozen,omitempty"` // who froze it; "" means that it is not frozen
	Why      string           `json:"why,omitempty"`    // why it was frozen
	Expiring []Expiring       `json:"expiring"`         // grants that expire, by expiry
	// Pending lists holds, the newest first, if the request asked for them.
	Pending []PendingHold `json:"pending,omitempty"`
}

// AccountsReply lists accounts by name.
type AccountsReply struct {
	Accounts []AccountReply `json:"accounts"`
	More     bool           `json:"more"` // there are more accounts: ask again with After
}

// StatementRequest asks for an account's history, oldest first.
type StatementRequest struct {
	Account messages.Name `json:"account,omitempty"`
	From    messages.Time `json:"from,omitempty"`
	To      messages.Time `json:"to,omitempty"`
	After   uint64        `json:"after,omitempty"` // only entries with a larger number, for the next page
	Limit   int           `json:"limit,omitempty"` // default 100, at most 1000
	// Newest asks for the last entries instead of the first entries. The field More of the answer then says that there
	// are older entries. To get the page before, the user sets Before: only entries with a smaller number are returned.
	Newest bool   `json:"newest,omitempty"`
	Before uint64 `json:"before,omitempty"`
}

// StatementReply is a page of an account's history.
type StatementReply struct {
	Account messages.Name    `json:"account"`
	Opening messages.Credits `json:"opening"` // balance before the first entry
	Entries []Entry          `json:"entries"`
	More    bool             `json:"more"`
}

// Entry is one line of a statement. Balance and Reserved are the amounts of the account after this entry.
type Entry struct {
	Number   uint64           `json:"number"`
	At       messages.Time    `json:"at"`
	Kind     TransferKind     `json:"kind"`
	Transfer string           `json:"transfer"`
	Other    messages.Name    `json:"other,omitempty"` // the other account
	Change   messages.Credits `json:"change"`          // change of the balance
	Hold     messages.Credits `json:"hold"`            // change of the reserved amount
	Balance  messages.Credits `json:"balance"`
	Reserved messages.Credits `json:"reserved"`
	Job      messages.JobID   `json:"job,omitempty"`
	Reason   string           `json:"reason"`
	Pending  string           `json:"pending,omitempty"` // the hold that it ends, the grant it returns, or the transfer it corrects
	Member   messages.Name    `json:"member,omitempty"`  // the account that was responsible for the hold
	By       messages.Name    `json:"by,omitempty"`      // the account that asked for it; "" means the bank itself
}

// BooksReply is the bank's own check of its books.
type BooksReply struct {
	Issued    messages.Credits `json:"issued"`
	Balances  messages.Credits `json:"balances"`        // sum over all accounts except the issuer
	Held      messages.Credits `json:"held,omitempty"`  // part of Balances that is set aside
	Holds     int              `json:"holds,omitempty"` // number of holds; only for operators, as Held, because a hold shows a budget
	Accounts  int              `json:"accounts"`
	Transfers uint64           `json:"transfers"`
	Balanced  bool             `json:"balanced"` // Balances = Issued, no limit is exceeded, and every hold is backed by its account
	Message   string           `json:"message"`
}
