package bank

import (
	"context"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/clearing/courier"
)

// newCourier returns the courier of the clearing. It returns nil if the bank has no key: then the bank cannot settle
// with other sites.
func (b *Bank) newCourier() (*courier.Courier, error) {
	c := &b.config
	if c.Signer == nil {
		return nil, nil
	}
	return courier.New(courier.Config{
		Restored: c.Restored, Site: c.Site, Bus: c.Bus, Host: host{b.group}, Signer: c.Signer,
		Operator: b.callers.isOperator, Service: b.callers.isService,
		Attempt: c.Attempt, FirstBackoff: c.FirstBackoff, LastBackoff: c.LastBackoff, LeastVisit: c.LeastVisit, SilentAfter: c.SilentAfter,
		Log: c.Log.Named("clearing"), Metrics: c.Metrics, Clock: c.Clock,
	})
}

// runCourier repeats unanswered messages to peers, until the method withdraw is called.
func (b *Bank) runCourier() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.courier.Run(ctx)
	}()
	b.stopCourier = func() {
		cancel()
		<-done
	}
}

// watchClearing logs a fault of the clearing once; see [clearing.State.Fault].
func (b *Bank) watchClearing() {
	var fault string
	b.machine.readClearing(func(s *clearing.State) { fault = s.Fault() })
	if fault != "" && b.fault == "" {
		b.config.Log.Error("an operator must check the books between sites: credits that were set aside for settlements were moved", zap.String("first", fault))
		b.fault = fault
	}
}
