package messages

import "cmp"

// Verbs of the bank between sites. Users send authorise, remit and revoke to their home bank. Services send accept
// and charge to the bank of the site that runs the job. Operators send peer, reserve and close. The bank of another
// site sends the command instruct and the query lines; its account is "$" and the name of its site.
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

// Limits of the settlement between banks.
const (
	MaxInstructions   = 256  // instructions in one message
	MaxBookLines      = 1000 // lines in one page
	MaxPeerKeys       = 4
	MaxClearingReason = 256 // bytes of the text that a user gives with a payment
	MaxPeerName       = 54  // bytes; the account of a peer adds a prefix
)

// Bounds on how long an authorisation may be charged (the interval), and on how long after that the home bank keeps
// the credits set aside (the margin). The margin covers clocks that differ by MaxClockSkew, and the time that a
// charge takes to arrive.
const (
	MinInterval  = Duration(1_000_000_000)               // a second
	MaxInterval  = Duration(90 * 24 * 3600_000_000_000)  // 90 days
	MaxMargin    = Duration(365 * 24 * 3600_000_000_000) // a year
	MaxClockSkew = Duration(3600_000_000_000)            // an hour
)

// Authorisation is a statement of a home bank: Amount credits of Account are set aside for one charge by Peer. Peer
// may charge before Issued+Interval by its own clock. At Issued+Interval+Margin by its own clock, the home bank frees
// the credits that are left.
type Authorisation struct {
	Issuer   Name     `json:"issuer"` // the home site
	Peer     Name     `json:"peer"`   // the only site that may charge
	ID       string   `json:"id"`     // unique at the issuer
	Account  Name     `json:"account"`
	Member   Name     `json:"member"` // who asked for it
	Amount   Credits  `json:"amount"`
	Issued   Time     `json:"issued"`
	Interval Duration `json:"interval"`
	Margin   Duration `json:"margin"`
}

// Ends returns when the authorisation can no longer be charged.
func (a *Authorisation) Ends() Time { return a.Issued.Add(a.Interval) }

// Frees returns when the home bank frees the credits. It refuses a charge that arrives later.
func (a *Authorisation) Frees() Time { return a.Ends().Add(a.Margin) }

// Validate checks the fields of an authorisation.
func (a *Authorisation) Validate() error {
	err := cmp.Or(needName("issuer", a.Issuer), needName("peer", a.Peer), needFreeName("account", a.Account), needName("member", a.Member))
	switch {
	case err != nil:
		return err
	case a.Issued <= 0 || a.Issued > maxIssued:
		return Errorf(Invalid, "issued: is no instant before the year 9999")
	case a.Margin < MaxClockSkew || a.Margin > MaxMargin:
		return Errorf(Invalid, "margin: %v must be from %v, by which clocks may differ, to %v", a.Margin, MaxClockSkew, MaxMargin)
	}
	return cmp.Or(checkIdentifier(a.ID), checkAmount(a.Amount), checkInterval(a.Interval))
}

// maxIssued is so small that sums of times and durations do not overflow.
const maxIssued = Time(253_402_300_799_000_000) // the end of the year 9999

// SignedAuthorisation is an authorisation, signed by the home bank.
type SignedAuthorisation struct {
	Authorisation Authorisation `json:"authorisation"`
	Signature     []byte        `json:"signature"`
}

// Validate checks the fields of the authorisation.
func (s *SignedAuthorisation) Validate() error { return s.Authorisation.Validate() }

// AcceptRequest lets the bank of a site accept another site's authorisation for a purpose. The service chooses the
// purpose, for example a job's key. Repeating the request with the same purpose returns the same answer. With another
// purpose it is refused, so that nobody can run two jobs on one authorisation.
type AcceptRequest struct {
	Purpose       string              `json:"purpose"`
	Authorisation SignedAuthorisation `json:"authorisation"`
	// Firm means that work is done for the authorisation from now on. The bank does not give it up if the issuer
	// asks. Only a charge ends it, perhaps of 0.
	Firm bool `json:"firm,omitempty"`
}

// Validate checks the fields of the request.
func (r *AcceptRequest) Validate() error {
	if r.Purpose == "" {
		return Errorf(Invalid, "purpose: is empty; name what the authorisation pays for, the same in every repetition")
	}
	return cmp.Or(checkLine("purpose", r.Purpose, MaxKey+64), r.Authorisation.Validate())
}

// AuthorisationHold followed by the identifier of an authorisation is the identifier of the hold that sets its
// credits aside.
const AuthorisationHold = "clearing/authorisation/"

// AuthoriseRequest sets credits aside for one charge by another site. Repeating the request with the same key and
// content returns the same authorisation.
type AuthoriseRequest struct {
	Key      string   `json:"key"`
	Account  Name     `json:"account,omitempty"` // default: the caller's own
	Peer     Name     `json:"peer"`
	Amount   Credits  `json:"amount"`
	Interval Duration `json:"interval"`
	Reason   string   `json:"reason,omitempty"`
	// Member is the account that is responsible for the hold; default: the caller's. Only services may set it.
	Member Name  `json:"member,omitempty"`
	Job    JobID `json:"job,omitempty"` // the job that the credits are for
}

// Validate checks the fields of the request.
func (r *AuthoriseRequest) Validate() error {
	return cmp.Or(
		checkName("member", r.Member),
		checkAsked(r.Key, r.Account, r.Peer, r.Reason),
		checkAmount(r.Amount),
		checkInterval(r.Interval),
	)
}

// RevokeRequest asks the site that may charge an authorisation to give it up. When that site agrees, the credits are
// free.
type RevokeRequest struct {
	ID string `json:"id"`
	// Ended is set by the service that made the authorisation when the other site has said that the job has ended.
	// Then the bank does not ask that site. The site can still charge within ChargeWithin; after that the credits are
	// free.
	Ended bool `json:"ended,omitempty"`
}

// ChargeWithin is how long a site may still charge a job after it has said that the job ended.
const ChargeWithin = Duration(24 * 3600_000_000_000)

// Validate checks the fields of the request.
func (r *RevokeRequest) Validate() error { return checkIdentifier(r.ID) }

// RemitRequest moves credits to an account of another site. They are set aside until that site's bank has answered.
// If it refuses, they are free again.
type RemitRequest struct {
	Key     string  `json:"key"`
	Account Name    `json:"account,omitempty"` // default: the caller's own
	Peer    Name    `json:"peer"`
	Payee   Name    `json:"payee"` // an account of the peer
	Amount  Credits `json:"amount"`
	Reason  string  `json:"reason,omitempty"`
}

// Validate checks the fields of the request.
func (r *RemitRequest) Validate() error {
	return cmp.Or(checkAsked(r.Key, r.Account, r.Peer, r.Reason), needFreeName("payee", r.Payee), checkAmount(r.Amount))
}

// ChargeRequest charges an authorisation once, with at most its amount. Amount 0 frees all its credits. Repeating the
// request returns the same answer.
type ChargeRequest struct {
	Issuer Name    `json:"issuer"`
	ID     string  `json:"id"`
	Amount Credits `json:"amount"`
	Payee  Name    `json:"payee,omitempty"` // default: the site's account
	Job    JobID   `json:"job,omitempty"`
	Reason string  `json:"reason,omitempty"`
}

// Validate checks the fields of the request.
func (r *ChargeRequest) Validate() error {
	var payee, amount error
	if r.Payee != SiteAccount {
		payee = checkFreeName("payee", r.Payee)
	}
	if r.Amount != 0 {
		amount = checkAmount(r.Amount)
	}
	return cmp.Or(needName("issuer", r.Issuer), payee, checkIdentifier(r.ID), amount, checkLine("reason", r.Reason, MaxClearingReason))
}

// ClearingReply answers a request that the bank of another site must hear of. Number is the number of the instruction
// to that bank; 0 if it has been answered, or if there is none.
type ClearingReply struct {
	Number uint64 `json:"number"`
}

// PeerRequest opens an account for another site's bank, or changes its terms.
type PeerRequest struct {
	Peer  Name     `json:"peer"`
	Keys  []string `json:"keys"`  // public nkeys; the peer's bank signs with any of them; the newest is last
	Limit Credits  `json:"limit"` // the most that the peer may owe
	// Share is a part of the reserve: the most that the peer may owe by settlements that are not paid yet outside the
	// ledgers. Default: no change; for a new peer the limit.
	Share *Credits `json:"share,omitempty"`
	// Retire says that keys which the request leaves out are never trusted again. Without Retire, a request that
	// leaves a key out is refused.
	Retire bool `json:"retire,omitempty"`
}

// Validate checks the fields of the request.
func (r *PeerRequest) Validate() error {
	if !ValidName(r.Peer) {
		return badName("peer", r.Peer)
	}
	switch r.Peer {
	case Auctioneer, NodeAgent, Bank, Estimator, Depot, Admission, Links:
		return Errorf(Invalid, "peer: %q is the name of an actor, and cannot also be the name of a site: the site must have another name", r.Peer)
	}
	if len(r.Peer) > MaxPeerName {
		return Errorf(TooLarge, "peer: the name of a peer has at most %d bytes", MaxPeerName)
	}
	if len(r.Keys) == 0 || len(r.Keys) > MaxPeerKeys {
		return Errorf(Invalid, "keys: give 1 to %d public keys of the peer's bank", MaxPeerKeys)
	}
	if r.Share != nil && (*r.Share < 0 || *r.Share > MaxCredits) {
		return Errorf(Invalid, "share: %v must be from 0 to %v credits", *r.Share, MaxCredits)
	}
	return checkLimit(r.Limit)
}

// PeerReply is a peer as this bank sees it.
type PeerReply struct {
	Peer        Name         `json:"peer"`
	Keys        []string     `json:"keys"`
	Limit       Credits      `json:"limit"`
	Owed        Credits      `json:"owed"`              // what this site owes the peer; negative: the peer owes this site
	Held        Credits      `json:"held"`              // used part of the limit: authorisations, and charges not yet confirmed
	Outstanding int          `json:"outstanding"`       // instructions that the peer has not answered
	Sent        RunningTotal `json:"sent"`              // instructions that the peer has answered
	Received    RunningTotal `json:"received"`          // instructions of the peer that this bank has answered
	Heard       Time         `json:"heard"`             // the latest time, by the peer's clock, in its signed messages
	Dispute     string       `json:"dispute"`           // the first difference between the two books; empty: none
	Waiting     Credits      `json:"waiting"`           // sum of the instructions that are not answered yet
	Tries       int          `json:"tries"`             // messages since the peer last answered; 0: it answers
	Failure     string       `json:"failure"`           // error of the latest of these messages
	Share       Credits      `json:"share"`             // part of the bank's reserve: the most that the peer may owe by settlements
	Settled     Credits      `json:"settled"`           // what the peer owes by settlements that are not paid yet
	Retired     []string     `json:"retired,omitempty"` // keys that are never trusted again
	Standing    PeerStanding `json:"standing"`
	Since       Time         `json:"since,omitempty"`   // when the standing began; 0: from the beginning
	Lost        Credits      `json:"lost,omitempty"`    // debts of the peer that were written off
	Leaving     bool         `json:"leaving,omitempty"` // the peer has settled everything, and is parting
	// Restored says that this site was restored from a backup, and does not know yet whether its books with the peer
	// are complete. Incarnation is when the peer was last restored; 0: never.
	Restored    bool   `json:"restored,omitempty"`
	Incarnation uint64 `json:"incarnation,omitempty"`
}

// PeersReply lists the peers by name, the credits that are waiting, and how many messages were refused for each
// reason.
type PeersReply struct {
	Site    Name           `json:"site"`
	Peers   []PeerReply    `json:"peers"`
	Settled Credits        `json:"settled"` // by settlements of all cycles: paid minus received
	Refused []RefusalTally `json:"refused"`
	Key     string         `json:"key"`     // the site's public key, for its peers
	Reserve Credits        `json:"reserve"` // the most that all other sites together may owe by settlements
	Cycle   uint64         `json:"cycle"`   // the latest closed cycle; 0: none
	Fault   string         `json:"fault"`   // the first command that the ledger refused although it should not; empty: none
	// Incarnation is when the site was last restored from a backup, in microseconds since 1970; 0: never.
	Incarnation uint64 `json:"incarnation,omitempty"`
	// Correction is the amount that was booked for instructions whose numbers this bank lost; below 0: the site lost
	// that amount.
	Correction Credits `json:"correction,omitempty"`
}

// RefusalTally is how often messages were refused for a reason.
type RefusalTally struct {
	Reason string `json:"reason"`
	Count  uint64 `json:"count"`
}

// ReserveRequest sets how much all other sites together may owe this site by settlements that are not paid yet
// outside the ledgers. If the peers' shares add up to more, each share is reduced. 0 means the sum of the shares.
type ReserveRequest struct {
	Limit Credits `json:"limit"`
}

// Validate checks the fields of the request.
func (r *ReserveRequest) Validate() error { return checkLimit(r.Limit) }

// CloseRequest ends a cycle. The bank then offers each peer the amount that it owes the peer.
type CloseRequest struct {
	Cycle uint64 `json:"cycle"` // 0: only return the state of the latest one
	// Correct takes back later cycles, which were closed by mistake. This is possible while no peer has accepted
	// anything in them.
	Correct bool `json:"correct,omitempty"`
}

// checkAsked returns an error for the first fault in the fields that the requests of users share.
func checkAsked(key string, account, peer Name, reason string) error {
	if key == "" {
		return Errorf(Invalid, "key: is empty; choose one, and send it again with the request if no answer comes")
	}
	return cmp.Or(
		checkLine("key", key, MaxKey),
		checkFreeName("account", account),
		needName("peer", peer),
		checkLine("reason", reason, MaxClearingReason),
	)
}

// checkIdentifier returns an error unless the identifier of an authorisation is a member, a slash and a key.
func checkIdentifier(id string) error {
	if id == "" {
		return Errorf(Invalid, "id: is empty; name an authorisation")
	}
	return checkLine("id", id, MaxKey+64)
}

func checkAmount(amount Credits) error {
	if amount <= 0 {
		return Errorf(Invalid, "amount: %v must be above 0", amount)
	}
	if amount > MaxCredits {
		return Errorf(TooLarge, "amount: is above %v credits, the most of one request", MaxCredits)
	}
	return nil
}

func checkLimit(limit Credits) error {
	if limit < 0 || limit > MaxCredits {
		return Errorf(Invalid, "limit: %v must be from 0 to %v credits", limit, MaxCredits)
	}
	return nil
}

func checkInterval(d Duration) error {
	if d < MinInterval || d > MaxInterval {
		return Errorf(Invalid, "interval: %v must be from %v to %v", d, MinInterval, MaxInterval)
	}
	return nil
}
