package messages

// Verbs of the bank for proving who sends a request; see package proof.
const (
	VerbTrust   = "trust"   // Empty → TrustReply
	VerbSession = "session" // SessionRequest → SessionReply; services and operators
)

// Proof says who made a request: a claim about a key that the site signed, and that key's signature
// of the request. It travels in a header of the request.
type Proof struct {
	Token     string `json:"token"`     // the claim, as in a credentials file
	At        Time   `json:"at"`        // by the caller's clock
	Signature []byte `json:"signature"` // covers the site, the verb, the caller, At and the payload
}

// SignedRequest is a request with its proof, as it was made.
type SignedRequest struct {
	Proof   Proof  `json:"proof"`
	Payload []byte `json:"payload"`
}

// TransferProof says who asks for the transfers of a request. Each transfer has its own mark.
type TransferProof struct {
	Session uint64 `json:"session"`
	Marks   []byte `json:"marks"` // 16 bytes for each transfer
}

// SessionRequest opens a session. The session's secret then marks transfers.
type SessionRequest struct {
	Key []byte `json:"key"` // X25519, made for this session
}

// SessionReply names the session.
type SessionReply struct {
	Session uint64 `json:"session"`
	Expires Time   `json:"expires"`
}

// TrustReply reports whether a site's bank requires proofs, and has the bank's key for agreeing on the
// secrets of sessions.
type TrustReply struct {
	Proven      bool   `json:"proven"`
	From        uint64 `json:"from"`        // the record from which on everything is proven
	Exchange    []byte `json:"exchange"`    // X25519
	Endorsement []byte `json:"endorsement"` // signature of Exchange by the key of the site's account
	// Succession leads from the account's first key to the key that endorses.
	Succession []Succession `json:"succession,omitempty"`
}

// Succession is a statement by the account's current key: another key replaces it, and this cannot
// be undone. Each key of the list replaces the one before, starting from the first key, which is
// the account's name in every credentials file. The last key speaks for the account.
type Succession struct {
	Key       string `json:"key"`
	Signature []byte `json:"signature"` // by the key before
}

// RoleKey is a public key that signs the credentials of a role.
type RoleKey struct {
	Role string `json:"role"`
	Key  string `json:"key"`
}

// SiteKeys is a site's statement about its keys. It cannot be taken back: a key that ended or was
// revoked never proves anything again.
type SiteKeys struct {
	Site    Name      `json:"site"`
	Roles   []RoleKey `json:"roles"`   // sign from now on
	Ended   []string  `json:"ended"`   // keys that no longer sign
	Revoked []string  `json:"revoked"` // users' keys that were revoked
	// Succession leads from the account's first key to the key that signs this statement.
	Succession []Succession `json:"succession,omitempty"`
}
