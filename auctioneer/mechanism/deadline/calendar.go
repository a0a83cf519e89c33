package deadline

import (
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// calendar is the length of a unit of time, in microseconds. A microsecond is also the resolution of messages.Time.
type calendar int64

func (c calendar) starts(unit int) messages.Time { return messages.Time(unit) * messages.Time(c) }

// unitOf returns the number of the unit that contains an instant.
func (c calendar) unitOf(t messages.Time) int {
	unit := int64(t) / int64(c)
	if int64(t)%int64(c) < 0 {
		unit--
	}
	return int(unit)
}

// whole converts a span of time to units. It returns the number rounded down and the number rounded up.
func (c calendar) whole(span messages.Duration) (down, up int) {
	micros := int64(span) / 1000
	return int(micros / int64(c)), int((micros + int64(c) - 1) / int64(c))
}

// A closing is a time in which some slots are closed. closed looks at the units between a task's arrival and its
// deadline. It counts the units in which a closing leaves fewer slots than the task needs. It looks at each closing
// alone, even if several closings overlap.
func (c calendar) closed(view *mechanism.View, t *Task) (units int) {
	if len(view.Classes) == 0 {
		return 0
	}
	from := t.Arrival
	for _, w := range view.Classes[0].Closings {
		if view.Classes[0].Slots-w.Slots < t.slots() {
			to := min(c.unitOf(w.To-1), t.Deadline) + 1
			units += max(0, to-max(c.unitOf(w.From), from))
			from = max(from, to)
		}
	}
	return units
}

// This method converts the slot time of a job to the number of units in which the job ran, rounded down and rounded up.
func (c calendar) had(bid *mechanism.Bid, received messages.Duration) (down, up int) {
	return c.whole(received / messages.Duration(max(bid.Alone, 1)))
}

// taskOf converts the times of a bid to whole units. The task may begin with the first whole unit after its arrival,
// and end with the last unit that ends by the deadline. Its length is rounded up.
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
