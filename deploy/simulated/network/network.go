// Package network decides, from a seed, what happens to messages between the actors of a simulated site: delay, loss,
// repetition, reordering and cuts. It is pure: it returns the arrival times of the copies, and the caller queues them.
package network

import (
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Config says how unreliable a network is. The zero Config delivers every message once, at once and in order.
type Config struct {
	Delay  messages.Duration // least delay of every message
	Jitter messages.Duration // largest additional delay, drawn uniformly; a later message may then arrive earlier
	Loss   float64           // part of the messages that are lost
	Repeat float64           // part of the delivered messages that arrive twice
	Cuts   []Cut
}

// Cut separates some actors from all others for a time.
type Cut struct {
	From, Until messages.Time
	Actors      []string
}

// Validate returns an error for impossible values.
func (c *Config) Validate() error {
	switch {
	case c.Delay < 0 || c.Jitter < 0:
		return messages.Errorf(messages.Invalid, "delay, jitter: must not be negative, are %v and %v", c.Delay, c.Jitter)
	case !(c.Loss >= 0 && c.Loss < 1):
		return messages.Errorf(messages.Invalid, "loss: must be from 0 to below 1, is %v", c.Loss)
	case !(c.Repeat >= 0 && c.Repeat <= 1):
		return messages.Errorf(messages.Invalid, "repeat: must be from 0 to 1, is %v", c.Repeat)
	}
	for i, cut := range c.Cuts {
		if cut.Until < cut.From {
			return messages.Errorf(messages.Invalid, "cuts[%d]: ends before it begins", i)
		}
	}
	return nil
}

// Network is a simulated network that draws its faults from its own random numbers. It is not safe for concurrent use.
type Network struct {
	config Config
	rng    *rand.Rand

	Sent, Lost, Repeated uint64
}

// New makes a network.
func New(c Config, seed uint64) (*Network, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Network{config: c, rng: rand.New(rand.NewPCG(seed, 0x6e6574776f726b))}, nil
}

// Reliable reports whether every message arrives exactly once.
func (n *Network) Reliable() bool {
	return n.config.Loss == 0 && n.config.Repeat == 0 && len(n.config.Cuts) == 0
}

// Slowest returns the longest time that a message can be on its way, if it arrives.
func (n *Network) Slowest() messages.Duration { return n.config.Delay + n.config.Jitter }

// Send sends a message. The network may lose the message, or deliver it twice. Send calls `deliver` for each copy that
// arrives, with the time of its arrival.
func (n *Network) Send(now messages.Time, from, to string, deliver func(at messages.Time)) {
	n.Sent++
	if n.cut(now, from, to) || n.config.Loss > 0 && n.rng.Float64() < n.config.Loss {
		n.Lost++
		return
	}
	deliver(n.arrival(now))
	if n.config.Repeat > 0 && n.rng.Float64() < n.config.Repeat {
		n.Repeated++
		deliver(n.arrival(now))
	}
}

// Arrival returns the time at which a message arrives if it is not lost. A published message arrives at all subscribers
// at the same time.
func (n *Network) Arrival(now messages.Time) messages.Time {
	n.Sent++
	return n.arrival(now)
}

func (n *Network) arrival(now messages.Time) messages.Time {
	d := n.config.Delay
	if n.config.Jitter > 0 {
		d += messages.Duration(n.rng.Int64N(int64(n.config.Jitter) + 1))
	}
	return now.Add(d)
}

func (n *Network) cut(now messages.Time, from, to string) bool {
	for i := range n.config.Cuts {
		c := &n.config.Cuts[i]
		if now >= c.From && now < c.Until && c.has(from) != c.has(to) {
			return true
		}
	}
	return false
}

func (c *Cut) has(actor string) bool { return slices.Contains(c.Actors, actor) }
