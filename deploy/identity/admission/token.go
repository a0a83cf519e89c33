package admission

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/candor-grid/candor/messages"
)

// tokenPrefix is the beginning of every token. It names the format.
const tokenPrefix = "candor1-"

// maxToken is the largest length of a token in bytes, with room for a chain of certificates.
const maxToken = 64 << 10

// Token is the secret that an operator carries to a new node.
type Token struct {
	Site    messages.Name `json:"site"`
	Node    messages.Name `json:"node"`
	ID      string        `json:"id"`
	Servers []string      `json:"servers"`      // NATS URLs
	CA      string        `json:"ca,omitempty"` // PEM that verifies the servers, with TLS
	Claim   string        `json:"claim"`
	Seed    string        `json:"seed"`
}

// String returns a token as one word.
func (t *Token) String() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(text)
}

// ParseToken reads the text of a token.
func ParseToken(text string) (*Token, error) {
	text = strings.TrimSpace(text)
	encoded, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok || len(text) > maxToken {
		return nil, messages.Errorf(messages.Invalid, "this is no join token: a join token begins with %q; an operator makes one with `candor node token`", tokenPrefix)
	}
	t := new(Token)
	data, err := base64.RawURLEncoding.DecodeString(encoded)
	if err == nil {
		err = json.Unmarshal(data, t)
	}
	if err != nil {
		return nil, messages.Errorf(messages.Invalid, "the join token is damaged; copy it whole")
	}
	return t, t.check()
}

func (t *Token) check() error {
	switch {
	case !messages.ValidName(t.Site) || !messages.ValidName(t.Node):
		return messages.Errorf(messages.Invalid, "the join token names no site and node; copy it whole")
	case !strings.HasPrefix(t.ID, messages.JoinPrefix) || !messages.ValidName(t.ID):
		return messages.Errorf(messages.Invalid, "the join token has no identifier; copy it whole")
	case t.Claim == "" || t.Seed == "":
		return messages.Errorf(messages.Invalid, "the join token holds no credentials; copy it whole")
	}
	return nil
}

// expires returns the time when the token's claim ends. It does not check the signature.
func (t *Token) expires() messages.Time {
	claims, err := jwt.DecodeUserClaims(t.Claim)
	if err != nil || claims.Expires == 0 {
		return 0
	}
	return messages.TimeOf(time.Unix(claims.Expires, 0))
}
