package messages

// Verbs of the bank by which a caller proves who asks; see package proof.
const (
	VerbTrust   = "trust"   // Empty → TrustReply
	VerbSession = "session" // SessionRequest → SessionReply; services and operators
)

// Proof says who made a request: a claim that the site signed for a key, and
// that key's signature of the request. It travels in a header of the request.
type Proof struct {
	Token     string `json:"token"`     // the claim, as in a credentials file
	At        Time   `json:"at"`        // by the caller's clock
	Signature []byte `json:"signature"` // of the site, the verb, the caller, At and the payload
}

// SignedRequest is a request with its proof, as it was made.
type SignedRequest struct {
	Proof   Proof  `json:"proof"`
	Payload []byte `json:"payload"`
}

// TransferProof says who asks for the transfers of a request, each by itself.
type TransferProof struct {
	Session uint64 `json:"session"`
	Marks   []byte `json:"marks"` // 16 bytes for each transfer
}

// SessionRequest opens a session, under whose secret transfers are marked.
type SessionRequest struct {
	Key []byte `json:"key"` // X25519, made for this session
}

// SessionReply names the session.
type SessionReply struct {
	Session uint64 `json:"session"`
	Expires Time   `json:"expires"`
}

// TrustReply says whether a site's bank wants proofs, and the key with which
// secrets of sessions are agreed.
type TrustReply struct {
	Proven      bool   `json:"proven"`
	From        uint64 `json:"from"`        // the record from which on everything is proven
	Exchange    []byte `json:"exchange"`    // X25519
	Endorsement []byte `json:"endorsement"` // of Exchange, by the key of the site's account
	// Succession leads from the account's first key to the key that endorses.
	Succession []Succession `json:"succession,omitempty"`
}

// Succession is the word of an account's key that another key follows, for good. The first
// key, which is the account's name in every credentials file, is followed by those of a list,
// one after another; the last speaks for the account.
type Succession struct {
	Key       string `json:"key"`
	Signature []byte `json:"signature"` // by the key before
}

// RoleKey is a public key that signs the credentials of a role.
type RoleKey struct {
	Role string `json:"role"`
	Key  string `json:"key"`
}

// SiteKeys is what a site says of its keys. What was said before stays true: a
// key that ended or was revoked proves nothing ever after.
type SiteKeys struct {
	Site    Name      `json:"site"`
	Roles   []RoleKey `json:"roles"`   // sign from now on
	Ended   []string  `json:"ended"`   // of those that signed
	Revoked []string  `json:"revoked"` // of users' own
	// Succession leads from the account's first key to the key that signs this statement.
	Succession []Succession `json:"succession,omitempty"`
}
