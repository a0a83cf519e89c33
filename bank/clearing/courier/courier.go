package courier

import (
	"context"
	"fmt"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
)

// Courier connects the clearing to the bus. Make one with New.
type Courier struct {
	config   Config
	metrics  *metrics
	proposer *proposer
	sender   *sender
	peers    *peers
	pace     pace
}

// New returns a courier. It sends nothing before Run.
func New(config Config) (*Courier, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config.defaults()
	c := &Courier{config: config, metrics: newMetrics(config.Host)}
	c.proposer = &proposer{config: &c.config, metrics: c.metrics, screened: map[clearing.Refusal]uint64{}, news: make(chan struct{})}
	c.peers = &peers{config: &c.config, proposer: c.proposer}
	c.sender = &sender{config: &c.config, metrics: c.metrics, proposer: c.proposer, peers: c.peers, failures: map[messages.Name]failure{}}
	if err := config.Metrics.Register(c.metrics.all); err != nil {
		return nil, fmt.Errorf("courier of %s: metrics: %w", config.Site, err)
	}
	return c, nil
}

// Run sends each peer the messages that the peer has not answered, until ctx ends. When a deadline in the books has
// come, Run proposes a command that sets the time. The bank's leader runs it.
func (c *Courier) Run(ctx context.Context) { c.sender.run(ctx) }

// Close unregisters the metrics. Run must have returned.
func (c *Courier) Close() { c.config.Metrics.Unregister(c.metrics.all) }
