package clock

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/messages"
)

// Events must come out in the order of time, and events of the same time in the order in which they were added.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type event struct{ at, seq int }
		var q Queue[event]
		var waiting []event
		for seq := range rapid.IntRange(0, 100).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "push") || len(waiting) == 0 {
				e := event{rapid.IntRange(-3, 5).Draw(t, "at"), seq}
				q.Push(messages.Time(e.at), e)
				at, _ := slices.BinarySearchFunc(waiting, e, func(x, y event) int {
					if x.at <= y.at {
						return -1
					}
					return 1
				})
				waiting = slices.Insert(waiting, at, e)
				continue
			}
			if q.Next() != messages.Time(waiting[0].at) {
				t.Fatalf("the next is at %d, want %d", q.Next(), waiting[0].at)
			}
			if e := q.Pop(); e != waiting[0] {
				t.Fatalf("took %v, want %v", e, waiting[0])
			}
			waiting = waiting[1:]
		}
		if q.Len() != len(waiting) {
			t.Fatalf("%d wait, want %d", q.Len(), len(waiting))
		}
	})
}
