package deadline

import (
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// calendar divides time into units: it is the length of one in microseconds, the steps
// of messages.Time.
type calendar int64

func (c calendar) starts(unit int) messages.Time { return messages.Time(unit) * messages.Time(c) }

// unitOf is the unit that contains an instant.
func (c calendar) unitOf(t messages.Time) int {
	unit := int64(t) / int64(c)
	if int64(t)%int64(c) < 0 {
		unit--
	}
	return int(unit)
}

// whole is how many whole units a span is, and in how many it fits.
func (c calendar) whole(span messages.Duration) (down, up int) {
	micros := int64(span) / 1000
	return int(micros / int64(c)), int((micros + int64(c) - 1) / int64(c))
}

// had is how many whole units some slot time of a job is, and in how many it fits.
func (c calendar) had(bid *mechanism.Bid, received messages.Duration) (down, up int) {
	return c.whole(received / messages.Duration(max(bid.Alone, 1)))
}

// taskOf puts a bid in units: the first whole one after it came, the last that
// ends by its deadline, and as many as its length takes.
func (c calendar) taskOf(bid *mechanism.Bid) Task {
	_, length := c.whole(bid.Length)
	return Task{
		Arrival:  c.unitOf(bid.Arrived-1) + 1,
		Deadline: c.unitOf(bid.Deadline) - 1,
		Length:   max(1, length),
		Value:    bid.Value.Float(),
		Width:    bid.Alone,
	}
}
