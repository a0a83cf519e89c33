package intake

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// DefaultQuote is how long a menu is valid if its market sets no time.
const DefaultQuote = messages.Duration(5 * time.Minute)

// MenuKey is the secret for the seeds of menus: 32 random bytes. Each leader makes a new key.
type MenuKey []byte

// NewMenuKey returns a random key.
func NewMenuKey() MenuKey {
	k := make(MenuKey, sha256.Size)
	_, _ = rand.Read(k) // cannot fail: without random numbers rand.Read ends the program
	return k
}

// Seed returns the random seed of a market's menus for a class of valuations. It is the same for all users and
// declarations, and changes only when menus are no longer valid. So asking again does not help a bidder.
//
// The seed must not depend on anything that bidders can change, such as the jobs of the market. Otherwise a bidder
// could submit a job that costs nothing, and ask again.
func (k MenuKey) Seed(m *market.Market, spec *job.JobSpec, now messages.Time) uint64 {
	h := hmac.New(sha256.New, k)
	name := func(s string) {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(s))))
		h.Write([]byte(s))
	}
	name(m.Name)
	if spec.Valuation != nil {
		name(string(spec.Valuation.Class))
	}
	holds := cmp.Or(m.Quote, DefaultQuote)
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(now.Sub(0)/max(1, holds))))
	return binary.BigEndian.Uint64(h.Sum(nil))
}
