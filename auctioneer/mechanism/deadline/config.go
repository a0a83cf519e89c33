package deadline

import (
	"cmp"
	"time"

	"github.com/candor-grid/candor/messages"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

// mostHistory is how many ended jobs a market remembers, because the prices of other jobs depend on the ended jobs that
// competed with them.
const (
	defaultSlot   = messages.Duration(10 * time.Second)
	defaultLambda = 0.6
	defaultScale  = 32
	mostHistory   = 100_000
)

// prepared returns a market with its defaults filled in, or an error if its parameters are invalid.
func prepared(m marketmsg.Market) (marketmsg.Market, error) {
	if len(m.Classes) != 1 {
		return m, messages.Errorf(messages.Invalid, "market %s: classes: must be exactly one, there are %d", m.Name, len(m.Classes))
	}
	if m.Slot != 0 && m.Slot < messages.Duration(time.Millisecond) {
		return m, messages.Errorf(messages.Invalid, "market %s: slot: must be at least 1 ms, is %v", m.Name, m.Slot)
	}
	m.Lambda = cmp.Or(m.Lambda, new(defaultLambda))
	m.Slot = cmp.Or(m.Slot, defaultSlot)
	m.Scale = cmp.Or(m.Scale, defaultScale)
	return m, nil
}
