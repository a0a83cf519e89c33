package courier

import (
	"context"
	"fmt"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/messages"
)

// Courier is the clearing's shell. Make one with New.
type Courier struct {
	config   Config
	metrics  *metrics
	proposer *proposer
	sender   *sender
	peers    *peers
	pace     pace
}

// New returns a courier that serves and sends nothing yet.
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

// Run sends the peers what they have not answered, and lets expire what is
// due, until ctx ends. It is for the leader, whenever it leads.
func (c *Courier) Run(ctx context.Context) { c.sender.run(ctx) }

// Close takes the metrics back; Run must have returned.
func (c *Courier) Close() { c.config.Metrics.Unregister(c.metrics.all) }
