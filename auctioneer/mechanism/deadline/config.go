package deadline

import (
	"cmp"

	"github.com/candor-grid/candor/messages"
)

// Config describes a market run by this mechanism, under rule Monotone.
type Config struct {
	Market messages.Market
	// Slot is the length of a unit of time; 0: 10 s. Decisions hold for a unit.
	Slot messages.Duration
	// Lambda, in [0, 1], is how much work done protects a job; nil: 0.6.
	Lambda *float64
	// Scale is a typical length of a job in units; 0: 32. A unit served raises a
	// job's level by λ/Scale of it.
	Scale float64
	// History bounds how many ended jobs are remembered to price those that
	// competed with them; 0: 100,000.
	History int
}

// The defaults of Config.
const (
	defaultSlot    = messages.Duration(10e9)
	defaultLambda  = 0.6
	defaultScale   = 32
	defaultHistory = 100_000
)

// Validate checks the configuration.
func (c *Config) Validate() error {
	name := c.Market.Name
	if len(c.Market.Classes) != 1 {
		return messages.Errorf(messages.Invalid, "market %s: classes: must be exactly one, there are %d", name, len(c.Market.Classes))
	}
	if c.Slot < 0 || c.Slot > 0 && c.Slot < messages.Duration(1e6) {
		return messages.Errorf(messages.Invalid, "market %s: slot: must be at least 1 ms, is %v", name, c.Slot)
	}
	if c.Lambda != nil && !(*c.Lambda >= 0 && *c.Lambda <= 1) {
		return messages.Errorf(messages.Invalid, "market %s: lambda: must be from 0 to 1, is %v", name, *c.Lambda)
	}
	if !(c.Scale == 0 || c.Scale >= 1 && c.Scale <= MostUnits) {
		return messages.Errorf(messages.Invalid, "market %s: scale: must be from 1 to %d units, is %v", name, MostUnits, c.Scale)
	}
	if c.History < 0 {
		return messages.Errorf(messages.Invalid, "market %s: history: must not be negative, is %d", name, c.History)
	}
	return nil
}

func (c Config) withDefaults() Config {
	lambda := defaultLambda
	c.Lambda = cmp.Or(c.Lambda, &lambda)
	c.Slot = cmp.Or(c.Slot, defaultSlot)
	c.Scale = cmp.Or(c.Scale, defaultScale)
	c.History = cmp.Or(c.History, defaultHistory)
	return c
}
