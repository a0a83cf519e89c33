package highestbid

import (
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// Withdraw takes a job out of the market and returns what it owes.
func (m *Market) Withdraw(now messages.Time, job messages.JobID) (messages.Credits, error) {
	id, known := m.number[job]
	if !known {
		return 0, notHere(job)
	}
	b := &m.auction.bidders[id]
	return m.leave(now, id, b.running, b.waiting)
}

// Tariff is what holds since the last decision.
func (m *Market) Tariff() mechanism.Tariff { return m.meter.tariff }

// Slots is how many slots a job has, and how many more it waits for.
func (m *Market) Slots(job messages.JobID) (has, waits int) {
	id, known := m.number[job]
	if !known {
		return 0, 0
	}
	b := &m.auction.bidders[id]
	return b.running, b.waiting
}

// Owed is what a job owes by now, for as long as it is in the market.
func (m *Market) Owed(now messages.Time, job messages.JobID) (messages.Credits, error) {
	id, known := m.number[job]
	if !known {
		return 0, notHere(job)
	}
	if err := m.meter.advance(now); err != nil {
		return 0, err
	}
	return m.meter.owed(id), nil
}

// Next is the job that gets the next free slot.
func (m *Market) Next() (messages.JobID, bool) {
	if m.auction.waiting.empty() {
		return 0, false
	}
	return m.offers[m.auction.waiting.first()].Job, true
}
