package auctioneer

import (
	"sync/atomic"
	"testing"

	"github.com/candor-grid/candor/messages/await"
)

// A replica without entries runs on a host that has not compared its clock with other clocks. It must not lead before
// the host knows the time. Otherwise its book could get a time in the future, and the book's time can never go back.
func TestANewBookWaitsForTheTime(t *testing.T) {
	var known atomic.Bool
	looks := make(chan struct{}, 1)
	f := startWith(t, func(c *Config) {
		c.ClockKnown = func() bool {
			select {
			case looks <- struct{}{}:
			default:
			}
			return known.Load()
		}
	})
	leads := func() bool { return f.site.leadingDesk.Load() != nil }
	for range 3 { // wait until the replica has asked for the time at least twice
		<-looks
	}
	if leads() {
		t.Error("it leads without knowing the time")
	}
	known.Store(true)
	await.Until(t, "it leads", leads)
}
