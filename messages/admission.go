package messages

// Admission is the service of a site that lets new nodes in. It also lends the credentials of users to doors; see
// [DoorPrefix].
const Admission = "admission"

// These are the verbs of the admission, the service that gives credentials to people and hosts. Users may use only
// enrol, renew and lend. Operators may use all verbs.
const (
	VerbToken  = "token"  // TokenRequest → TokenReply
	VerbTokens = "tokens" // Empty → TokensReply
	VerbForget = "forget" // TokenUse → TokenState
	VerbEnrol  = "enrol"  // EnrolRequest → EnrolReply; the account is "$" and the token's identifier
	VerbRenew  = "renew"  // RenewRequest → RenewReply; for users and operators
	VerbLend   = "lend"   // LendRequest → LendReply; the account is "$", DoorPrefix and the name of the door
)

// DoorPrefix begins the name of a door. A door serves the users of one machine, such as $door-login1, and asks the site
// for their credentials.
const DoorPrefix = "door-"

// VerbAdmit is a verb of the auctioneer, whose log holds the join tokens. Only the admission service sends it.
const VerbAdmit = "admit" // AdmitRequest → TokensReply

// JoinPrefix is the prefix of the identifier of every join token. The holder of a token sends requests as "$" and the
// identifier.
const JoinPrefix = "join-"

// These are the shortest and the longest time for which a join token can be valid.
const (
	MinTokenLife = Duration(1_000_000_000)              // one second
	MaxTokenLife = Duration(30 * 24 * 3600_000_000_000) // 30 days
)

// TokenRequest asks for a token for a node. With it, the agent of the node can get credentials once, before the token
// expires.
type TokenRequest struct {
	Node    Name     `json:"node"`
	Expires Duration `json:"expires"` // time from now until the token expires
}

// Validate returns an error for the first fault of a request.
func (r *TokenRequest) Validate() error {
	if !ValidName(r.Node) {
		return BadName("node", r.Node)
	}
	if r.Expires < MinTokenLife || r.Expires > MaxTokenLife {
		return Errorf(Invalid, "expires: %v is out of range; use %v to %v", r.Expires, MinTokenLife, MaxTokenLife)
	}
	return nil
}

// TokenReply is a new token. Token is the secret; the site does not show it again.
type TokenReply struct {
	State TokenState `json:"state"`
	Token string     `json:"token"`
}

// TokenState is what a site records about a token, without the secret.
type TokenState struct {
	ID      string `json:"id"`
	Node    Name   `json:"node"`
	By      Name   `json:"by"` // the operator who made it
	Issued  Time   `json:"issued"`
	Expires Time   `json:"expires"`
	Used    Time   `json:"used"` // when it was used; 0 means not yet
	Key     string `json:"key"`  // public key of the agent that used it
	Revoked bool   `json:"revoked"`
}

// TokensReply lists tokens in the order in which they were made.
type TokensReply struct {
	Tokens []TokenState `json:"tokens"`
}

// TokenUse names a token, and the public key of the agent that uses it.
type TokenUse struct {
	ID  string `json:"id"`
	Key string `json:"key,omitempty"`
}

// AdmitRequest asks the auctioneer to record a token, to record its use, or to revoke it. At most one field is set. If
// no field is set, the reply lists the tokens.
type AdmitRequest struct {
	Issue  *TokenState `json:"issue,omitempty"`
	Use    *TokenUse   `json:"use,omitempty"`
	Revoke string      `json:"revoke,omitempty"`
}

// EnrolRequest asks for credentials for a key that the agent has made. The seed of the key stays with the agent.
type EnrolRequest struct {
	Key string `json:"key"` // a public NATS user key
}

// EnrolReply is the signed claim that the key belongs to the node.
type EnrolReply struct {
	Node  Name   `json:"node"`
	Claim string `json:"claim"`
}

// RenewRequest asks for a claim that ends later. The caller's present claim must still be valid. The request holds no
// secret.
type RenewRequest struct {
	Claim string `json:"claim"`
}

// RenewReply is the new claim, for the same key.
type RenewReply struct {
	Claim string `json:"claim"`
}

// LendRequest asks for the credentials of a user, for an hour.
type LendRequest struct {
	Account Name `json:"account"`
	// Box is a public key of the door that sends this request. It is an encryption key (kind X in nkeys). The site
	// encrypts the seed in its reply with this key.
	Box string `json:"box"`
}

// LendReply is a claim that expires, and the seed of its key, encrypted for the key in the request. Sender is the
// sender's public key, which is needed to decrypt the seed.
type LendReply struct {
	Claim   string `json:"claim"`
	Sender  string `json:"sender"`
	Seed    []byte `json:"seed"`
	Expires Time   `json:"expires"`
}
