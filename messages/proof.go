package messages

// These are the bank's verbs with which a sender prepares proofs that it sent a request; see package proof.
const (
	VerbTrust   = "trust"   // Empty → TrustReply
	VerbSession = "session" // SessionRequest → SessionReply; services and operators
)

// Proof proves who made a request. It has two parts. The first part is a claim that a key belongs to a name; the site
// has signed the claim. The second part is a signature of the request with this key. The proof is sent in a header of
// the request.
type Proof struct {
	Token     string `json:"token"`     // the claim, in the form of a credentials file
	At        Time   `json:"at"`        // time of signing, by the caller's clock
	Signature []byte `json:"signature"` // covers the site, the verb, the caller, At and the payload
}

// SignedRequest is a request with its proof, in its original bytes.
type SignedRequest struct {
	Proof   Proof  `json:"proof"`
	Payload []byte `json:"payload"`
}

// TransferProof proves who sends the transfers of a request. Each transfer has a mark.
type TransferProof struct {
	Session uint64 `json:"session"`
	Marks   []byte `json:"marks"` // 16 bytes for each transfer, joined
}

// SessionRequest opens a session, whose secret then marks transfers.
type SessionRequest struct {
	Key []byte `json:"key"` // public X25519 key, made for this session
}

// SessionReply identifies the session.
type SessionReply struct {
	Session uint64 `json:"session"`
	Expires Time   `json:"expires"`
}

// TrustReply says whether a site's bank requires proofs. It has the bank's key, with which both sides agree on the
// secret of a session.
type TrustReply struct {
	Proven      bool   `json:"proven"`
	From        uint64 `json:"from"`        // the number of the record from which on everything is proven
	Exchange    []byte `json:"exchange"`    // the bank's public X25519 key
	Endorsement []byte `json:"endorsement"` // signature of Exchange with the key of the site's account
	// Succession leads from the account's first key to the key that signed Endorsement.
	Succession []Succession `json:"succession,omitempty"`
}

// Succession is a statement, signed by the present key of an account, that another key replaces it. This cannot be
// undone. In a list, each key replaces the key before it. The first key is the account's name in every credentials
// file. The last key signs for the account.
type Succession struct {
	Key       string `json:"key"`
	Signature []byte `json:"signature"` // made with the key before this one
}

// RoleKey is a public key that signs the credentials of a role.
type RoleKey struct {
	Role string `json:"role"`
	Key  string `json:"key"`
}

// SiteKeys is a site's statement about its keys. It cannot be taken back: a key that has ended or was revoked never
// proves anything again.
type SiteKeys struct {
	Site    Name      `json:"site"`
	Roles   []RoleKey `json:"roles"`   // keys that sign from now on
	Ended   []string  `json:"ended"`   // keys that no longer sign
	Revoked []string  `json:"revoked"` // users' keys that were revoked
	// Succession is the chain of keys from the account's first key to the key that signs this statement.
	Succession []Succession `json:"succession,omitempty"`
}
