package auctioneer

import (
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

const (
	anHour = 3600 * aSecond
	// leastHours is how many hours must have known prices before a quote names the cheapest hour.
	leastHours = 24
)

// cheapest returns the cheapest hour of the last week, for each class of a job. It uses only prices that the job's
// owner may see. It returns nil for a market whose prices do not follow the demand.
func (l *submissions) cheapest(owner messages.Name, m *market.Market, spec *job.JobSpec, present []market.ClassPrice) (out []clearing.CheapHour) {
	t := registry.Of(m)
	if !t.Hourly && !t.Shares {
		return nil
	}
	l.histories.mu.Lock()
	defer l.histories.mu.Unlock()
	past := l.histories.markets[m.Name]
	if past == nil {
		return nil
	}
	for _, p := range present {
		hour := clearing.CheapHour{Class: p.Class, Bids: t.Shares}
		for i := range spec.Stages {
			if s := &spec.Stages[i]; s.Class == p.Class {
				hour.Slots = max(hour.Slots, s.Slots())
			}
		}
		cost := func(price messages.Credits, slots int) float64 {
			if hour.Bids { // the price is for all slots
				return price.Float() * float64(hour.Slots) / float64(slots)
			}
			return price.Float() * float64(hour.Slots) * anHour.Seconds()
		}
		least, known := 0.0, false
		if k := slices.Index(past.classes, p.Class); k >= 0 && hour.Slots > 0 {
			hour.Start, least, known = past.cheapest(l.Clock(), k, l.operates(owner), cost)
		}
		if !known {
			continue
		}
		hour.Price, _ = messages.RoundCredits(least)
		if price, ok := messages.RoundCredits(p.Price); ok && !p.Sealed && p.Slots > 0 {
			now, _ := messages.RoundCredits(cost(price, p.Slots))
			hour.Now = &now
		}
		out = append(out, hour)
	}
	return out
}

// cheapest finds the hour of the last week in which a class had the lowest mean cost. It returns the start of this hour
// and the mean cost. The argument `cost` computes the cost from a price and a number of slots. If `all` is true, prices
// that only operators may see count too. If prices are known for fewer than [leastHours] hours, the result `known` is
// false.
func (m *marketPast) cheapest(now messages.Time, class int, all bool, cost func(messages.Credits, int) float64) (start messages.Time, least float64, known bool) {
	step, rows := m.all.Since(now.Add(-market.MaxHistory), now)
	shown := toldPrice
	if all {
		shown = price
	}
	hours, seen, sum, at := 0, 0, 0.0, messages.Time(0)
	for _, row := range rows {
		if begun := row.At - row.At%messages.Time(anHour.Std().Microseconds()); begun != at {
			at, seen, sum = begun, 0, 0
		}
		v := row.Values[2+class*classColumns:]
		if v[shown] < 0 || v[slots] <= 0 {
			continue
		}
		seen, sum = seen+1, sum+cost(messages.Credits(v[shown]), int(v[slots]))
		if seen < int(anHour/step) || at.Add(anHour) > now {
			continue
		}
		if mean := sum / float64(seen); hours == 0 || mean < least {
			start, least = at, mean
		}
		hours++
	}
	return start, least, hours >= leastHours
}
