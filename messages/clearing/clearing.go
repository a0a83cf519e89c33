package clearing

import (
	"cmp"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// These are the verbs of the bank for business between sites. Users send authorise, remit and revoke to their home
// bank. Services send accept and charge to the bank of the site that runs the job. Operators send peer, reserve and
// close. The bank of another site sends instruct and lines. It sends them as an account whose name is "$" followed by
// the name of its site.
const (
	VerbAuthorise = "authorise" // AuthoriseRequest → SignedAuthorisation
	VerbRevoke    = "revoke"    // RevokeRequest → ClearingReply
	VerbRemit     = "remit"     // RemitRequest → ClearingReply
	VerbAccept    = "accept"    // AcceptRequest → ClearingReply
	VerbCharge    = "charge"    // ChargeRequest → ClearingReply
	VerbPeer      = "peer"      // PeerRequest → PeerReply
	VerbReserve   = "reserve"   // ReserveRequest → AccountReply
	VerbClose     = "close"     // CloseRequest → SignedPosition
	VerbPeers     = "peers"     // Empty → PeersReply
	VerbInstruct  = "instruct"  // SignedInstructions → SignedReceipt
	VerbLines     = "lines"     // LinesRequest → SignedLines
)

// These are limits of the settlement between banks.
const (
	MaxInstructions   = 256  // instructions in one message
	MaxBookLines      = 1000 // lines in one page
	MaxPeerKeys       = 4
	MaxClearingReason = 256 // bytes of the text that a user gives with a payment
	MaxPeerName       = 54  // bytes; the account of a peer adds a prefix
)

// An authorisation may be charged during its interval, which is between MinInterval and MaxInterval long. After the
// interval, the home bank keeps the credits for a further time. This time is called the margin. The margin must cover
// clocks that differ by MaxClockSkew, and the time that a charge needs to arrive.
const (
	MinInterval  = messages.Duration(1_000_000_000)               // a second
	MaxInterval  = messages.Duration(90 * 24 * 3600_000_000_000)  // 90 days
	MaxMargin    = messages.Duration(365 * 24 * 3600_000_000_000) // a year
	MaxClockSkew = messages.Duration(3600_000_000_000)            // an hour
)

// Authorisation is a statement of a home bank: Amount credits of Account are set aside for one charge by Peer. Peer
// may charge before Issued+Interval by its own clock. At Issued+Interval+Margin by its own clock, the home bank frees
// the credits that are left.
type Authorisation struct {
	Issuer   messages.Name     `json:"issuer"` // the home site
	Peer     messages.Name     `json:"peer"`   // the only site that may charge
	ID       string            `json:"id"`     // unique at the issuer
	Account  messages.Name     `json:"account"`
	Member   messages.Name     `json:"member"` // who asked for it
	Amount   messages.Credits  `json:"amount"`
	Issued   messages.Time     `json:"issued"`
	Interval messages.Duration `json:"interval"`
	Margin   messages.Duration `json:"margin"`
}

// Ends returns when the authorisation can no longer be charged.
func (a *Authorisation) Ends() messages.Time { return a.Issued.Add(a.Interval) }

// Frees returns when the home bank frees the credits. The bank refuses a charge that arrives later.
func (a *Authorisation) Frees() messages.Time { return a.Ends().Add(a.Margin) }

// Validate checks the fields of an authorisation.
func (a *Authorisation) Validate() error {
	err := cmp.Or(messages.NeedName("issuer", a.Issuer), messages.NeedName("peer", a.Peer), messages.NeedFreeName("account", a.Account), messages.NeedName("member", a.Member))
	switch {
	case err != nil:
		return err
	case a.Issued <= 0 || a.Issued > maxIssued:
		return messages.Errorf(messages.Invalid, "issued: is no instant before the year 9999")
	case a.Margin < MaxClockSkew || a.Margin > MaxMargin:
		return messages.Errorf(messages.Invalid, "margin: %v must be from %v, the largest difference of clocks, to %v", a.Margin, MaxClockSkew, MaxMargin)
	}
	return cmp.Or(checkIdentifier(a.ID), checkAmount(a.Amount), checkInterval(a.Interval))
}

// maxIssued is the latest time at which an authorisation may be issued. It is so small that adding durations to it does
// not overflow.
const maxIssued = messages.Time(253_402_300_799_000_000) // the end of the year 9999

// SignedAuthorisation is an authorisation, signed by the home bank.
type SignedAuthorisation struct {
	Authorisation Authorisation `json:"authorisation"`
	Signature     []byte        `json:"signature"`
}

// Validate checks the fields of the authorisation.
func (s *SignedAuthorisation) Validate() error { return s.Authorisation.Validate() }

// AcceptRequest lets the bank of a site accept another site's authorisation for a purpose. The service chooses the
// purpose, for example a job's key. A repeated request with the same purpose gets the same answer. A request with
// another purpose is refused, so that nobody can run two jobs on one authorisation.
type AcceptRequest struct {
	Purpose       string              `json:"purpose"`
	Authorisation SignedAuthorisation `json:"authorisation"`
	// Firm means that work is done for the authorisation from now on. The bank then keeps the authorisation, even if
	// its issuer asks for it back. Only a charge, which may be 0, ends the authorisation.
	Firm bool `json:"firm,omitempty"`
}

// Validate checks the fields of the request.
func (r *AcceptRequest) Validate() error {
	if r.Purpose == "" {
		return messages.Errorf(messages.Invalid, "purpose: is empty; name what the authorisation pays for, the same in every repetition")
	}
	return cmp.Or(messages.CheckLine("purpose", r.Purpose, messages.MaxKey+64), r.Authorisation.Validate())
}

// AuthorisationHold begins the identifier of the hold for an authorisation. The authorisation's identifier follows it.
const AuthorisationHold = "clearing/authorisation/"

// AuthoriseRequest sets credits aside for one charge by another site. The same key and content return the same
// authorisation.
type AuthoriseRequest struct {
	Key      string            `json:"key"`
	Account  messages.Name     `json:"account,omitempty"` // the default is the caller's own
	Peer     messages.Name     `json:"peer"`
	Amount   messages.Credits  `json:"amount"`
	Interval messages.Duration `json:"interval"`
	Reason   string            `json:"reason,omitempty"`
	// Member is the account that is responsible for the hold; the default is the caller's. Only services may set it.
	Member messages.Name  `json:"member,omitempty"`
	Job    messages.JobID `json:"job,omitempty"` // the job that the credits are for
}

// Validate checks the fields of the request.
func (r *AuthoriseRequest) Validate() error {
	return cmp.Or(
		messages.CheckName("member", r.Member),
		checkAsked(r.Key, r.Account, r.Peer, r.Reason),
		checkAmount(r.Amount),
		checkInterval(r.Interval),
	)
}

// RevokeRequest asks the site that may charge an authorisation to give it up. When that site agrees, the credits are
// free.
type RevokeRequest struct {
	ID string `json:"id"`
	// The service that made the authorisation sets Ended after the other site has said that the job ended. The bank
	// then does not ask the other site. That site may still charge the job until ChargeWithin has passed. After this
	// time the credits are free.
	Ended bool `json:"ended,omitempty"`
}

// ChargeWithin is how long a site may still charge a job after it has said that the job ended.
const ChargeWithin = messages.Duration(24 * 3600_000_000_000)

// Validate checks the fields of the request.
func (r *RevokeRequest) Validate() error { return checkIdentifier(r.ID) }

// RemitRequest moves credits to an account of another site. The credits are set aside until that site's bank has
// answered. If that bank refuses, they become free again.
type RemitRequest struct {
	Key     string           `json:"key"`
	Account messages.Name    `json:"account,omitempty"` // the default is the caller's own
	Peer    messages.Name    `json:"peer"`
	Payee   messages.Name    `json:"payee"` // an account of the peer
	Amount  messages.Credits `json:"amount"`
	Reason  string           `json:"reason,omitempty"`
}

// Validate checks the fields of the request.
func (r *RemitRequest) Validate() error {
	return cmp.Or(checkAsked(r.Key, r.Account, r.Peer, r.Reason), messages.NeedFreeName("payee", r.Payee), checkAmount(r.Amount))
}

// ChargeRequest charges an authorisation once, with at most its amount. Amount 0 frees all its credits. A repeated
// request returns the same answer.
type ChargeRequest struct {
	Issuer messages.Name    `json:"issuer"`
	ID     string           `json:"id"`
	Amount messages.Credits `json:"amount"`
	Payee  messages.Name    `json:"payee,omitempty"` // the default is the site's account
	Job    messages.JobID   `json:"job,omitempty"`
	Reason string           `json:"reason,omitempty"`
}

// Validate checks the fields of the request.
func (r *ChargeRequest) Validate() error {
	var payee, amount error
	if r.Payee != money.SiteAccount {
		payee = messages.CheckFreeName("payee", r.Payee)
	}
	if r.Amount != 0 {
		amount = checkAmount(r.Amount)
	}
	return cmp.Or(messages.NeedName("issuer", r.Issuer), payee, checkIdentifier(r.ID), amount, messages.CheckLine("reason", r.Reason, MaxClearingReason))
}

// ClearingReply answers a request that must be passed on to another site's bank. Number is the number of the
// instruction to that bank. It is 0 if the instruction has been answered, or if there is no instruction.
type ClearingReply struct {
	Number uint64 `json:"number"`
}

// PeerRequest opens an account for another site's bank, or changes the keys, the limit or the share of this account.
type PeerRequest struct {
	Peer  messages.Name    `json:"peer"`
	Keys  []string         `json:"keys"`  // public nkeys; the peer's bank signs with any of them; the newest is last
	Limit messages.Credits `json:"limit"` // the most that the peer may owe
	// Share is the part of the reserve that this peer may use. It is the most that the peer may owe by settlements that
	// are not paid yet outside the ledgers. If Share is absent, a known peer keeps its share, and a new peer gets its
	// limit as its share.
	Share *messages.Credits `json:"share,omitempty"`
	// If Retire is true, keys that the request leaves out are never trusted again. Without Retire, such a request is
	// refused.
	Retire bool `json:"retire,omitempty"`
}

// Validate checks the fields of the request.
func (r *PeerRequest) Validate() error {
	if !messages.ValidName(r.Peer) {
		return messages.BadName("peer", r.Peer)
	}
	switch r.Peer {
	case messages.Auctioneer, messages.NodeAgent, messages.Bank, messages.Estimator, messages.Depot, messages.Admission, messages.Links:
		return messages.Errorf(messages.Invalid, "peer: %q is the name of an actor, and cannot also be the name of a site: the site must have another name", r.Peer)
	}
	if len(r.Peer) > MaxPeerName {
		return messages.Errorf(messages.TooLarge, "peer: the name of a peer has at most %d bytes", MaxPeerName)
	}
	if len(r.Keys) == 0 || len(r.Keys) > MaxPeerKeys {
		return messages.Errorf(messages.Invalid, "keys: give 1 to %d public keys of the peer's bank", MaxPeerKeys)
	}
	if r.Share != nil && (*r.Share < 0 || *r.Share > messages.MaxCredits) {
		return messages.Errorf(messages.Invalid, "share: %v must be from 0 to %v credits", *r.Share, messages.MaxCredits)
	}
	return checkLimit(r.Limit)
}

// PeerReply is a peer as this bank sees it.
type PeerReply struct {
	Peer        messages.Name    `json:"peer"`
	Keys        []string         `json:"keys"`
	Limit       messages.Credits `json:"limit"`
	Owed        messages.Credits `json:"owed"`              // What this site owes the peer; a negative value means that the peer owes this site
	Held        messages.Credits `json:"held"`              // used part of the limit: authorisations, and charges not yet confirmed
	Outstanding int              `json:"outstanding"`       // instructions that the peer has not answered
	Sent        RunningTotal     `json:"sent"`              // instructions that the peer has answered
	Received    RunningTotal     `json:"received"`          // instructions of the peer that this bank has answered
	Heard       messages.Time    `json:"heard"`             // the latest time, by the peer's clock, in its signed messages
	Dispute     string           `json:"dispute"`           // the first difference between the two books; empty: none
	Waiting     messages.Credits `json:"waiting"`           // sum of the instructions that are not answered yet
	Tries       int              `json:"tries"`             // messages since the peer last answered; 0: it answers
	Failure     string           `json:"failure"`           // error of the latest of these messages
	Share       messages.Credits `json:"share"`             // part of the bank's reserve: the most that the peer may owe by settlements
	Settled     messages.Credits `json:"settled"`           // What the peer owes by settlements that are not paid yet
	Retired     []string         `json:"retired,omitempty"` // keys that are never trusted again
	Standing    PeerStanding     `json:"standing"`
	Since       messages.Time    `json:"since,omitempty"`   // when the standing began; 0 means from the beginning
	Lost        messages.Credits `json:"lost,omitempty"`    // debts of the peer that were written off
	Leaving     bool             `json:"leaving,omitempty"` // the peer has settled everything, and is parting
	// Restored is true if this site was restored from a backup, and does not know whether its books with the peer are
	// complete. Incarnation is the time of the peer's last restore from a backup, in microseconds since 1970; 0 means
	// never.
	Restored    bool   `json:"restored,omitempty"`
	Incarnation uint64 `json:"incarnation,omitempty"`
}

// PeersReply lists the peers by name. It also says how many messages were refused for each reason.
type PeersReply struct {
	Site    messages.Name    `json:"site"`
	Peers   []PeerReply      `json:"peers"`
	Settled messages.Credits `json:"settled"` // by settlements of all cycles: paid minus received
	Refused []RefusalTally   `json:"refused"`
	Key     string           `json:"key"`     // the site's public key, for its peers
	Reserve messages.Credits `json:"reserve"` // the most that all other sites together may owe by settlements
	Cycle   uint64           `json:"cycle"`   // the latest closed cycle; 0 means none
	Fault   string           `json:"fault"`   // the first command that the ledger refused although it should not; empty means none
	// Incarnation is when the site was last restored from a backup, in microseconds since 1970; 0 means never.
	Incarnation uint64 `json:"incarnation,omitempty"`
	// Correction is the amount that was booked because this bank lost instructions in a restore from a backup. A
	// negative amount is a loss of this site.
	Correction messages.Credits `json:"correction,omitempty"`
}

// RefusalTally says how many messages were refused for one reason.
type RefusalTally struct {
	Reason string `json:"reason"`
	Count  uint64 `json:"count"`
}

// ReserveRequest sets the reserve. It limits what all other sites together may owe this site. Each debt is from a
// settlement, and remains until it is paid outside the ledgers. If the shares of the peers add up to more than the
// reserve, each share is reduced. The reserve 0 means the sum of the shares.
type ReserveRequest struct {
	Limit messages.Credits `json:"limit"`
}

// Validate checks the fields of the request.
func (r *ReserveRequest) Validate() error { return checkLimit(r.Limit) }

// CloseRequest ends a cycle. The bank then offers each peer the amount that this site owes to the peer.
type CloseRequest struct {
	Cycle uint64 `json:"cycle"` // 0 means to return only the state of the latest one
	// If Correct is true, the request reopens the cycles after the cycle with the number Cycle. This
	// corrects cycles that were closed by mistake. It is refused if a peer has accepted an amount in one of them.
	Correct bool `json:"correct,omitempty"`
}

// checkAsked checks the fields that all requests of users have, and returns an error for the first fault.
func checkAsked(key string, account, peer messages.Name, reason string) error {
	if key == "" {
		return messages.Errorf(messages.Invalid, "key: is empty; choose a key; if no answer comes, send the request again with the same key")
	}
	return cmp.Or(
		messages.CheckLine("key", key, messages.MaxKey),
		messages.CheckFreeName("account", account),
		messages.NeedName("peer", peer),
		messages.CheckLine("reason", reason, MaxClearingReason),
	)
}

// An identifier of an authorisation is a member, a slash and a key, on one line.
func checkIdentifier(id string) error {
	if id == "" {
		return messages.Errorf(messages.Invalid, "id: is empty; name an authorisation")
	}
	return messages.CheckLine("id", id, messages.MaxKey+64)
}

func checkAmount(amount messages.Credits) error {
	if amount <= 0 {
		return messages.Errorf(messages.Invalid, "amount: %v must be above 0", amount)
	}
	if amount > messages.MaxCredits {
		return messages.Errorf(messages.TooLarge, "amount: is above %v credits, the maximum for one request", messages.MaxCredits)
	}
	return nil
}

func checkLimit(limit messages.Credits) error {
	if limit < 0 || limit > messages.MaxCredits {
		return messages.Errorf(messages.Invalid, "limit: %v must be from 0 to %v credits", limit, messages.MaxCredits)
	}
	return nil
}

func checkInterval(d messages.Duration) error {
	if d < MinInterval || d > MaxInterval {
		return messages.Errorf(messages.Invalid, "interval: %v must be from %v to %v", d, MinInterval, MaxInterval)
	}
	return nil
}
