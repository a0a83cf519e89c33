package bus_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// One caller asks for large answers without a pause. It must get about as many bytes in a second as the service's pace
// says. Answers to another caller, and to a service of the site, must not wait.
func TestLargeAnswersHaveAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, pace, seconds = 100_000, 1_000_000, 10
		net := bus.NewMemory()
		service, err := net.Connect("$auctioneer").Serve(bus.Service{Name: "lists", Version: "1.0.0", Pace: pace, Endpoints: []bus.Endpoint{{
			Name: "jobs", Subject: "candor.west.auctioneer.jobs.*", Handle: func(context.Context, bus.Request) ([]byte, error) { return make([]byte, size), nil },
		}}})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(caller messages.Name) (took time.Duration) {
			began := time.Now()
			if _, err := net.Connect(caller).Request(t.Context(), "candor.west.auctioneer.jobs."+caller, nil); err != nil {
				t.Error(err)
			}
			return time.Since(began)
		}
		end := time.Now().Add(seconds * time.Second)
		var all sync.WaitGroup
		var mu sync.Mutex
		got := 0
		for range 50 {
			all.Go(func() {
				for time.Now().Before(end) {
					ask("mallory")
					mu.Lock()
					got += size
					mu.Unlock()
				}
			})
		}
		for time.Now().Before(end) {
			time.Sleep(time.Second)
			for _, caller := range []messages.Name{"alice", "$depot"} {
				if took := ask(caller); took > 0 {
					t.Errorf("the answer to %s took %v", caller, took)
				}
			}
		}
		all.Wait()
		if most := (seconds + 9) * pace; got < seconds*pace/2 || got > most { // the first 32 requests run at once, and the last 50 get their answers later
			t.Errorf("%d bytes in %d s, want about %d", got, seconds, seconds*pace)
		}
		begun := time.Now()
		all.Go(func() { ask("mallory") })
		synctest.Wait()
		if err := service.Stop(); err != nil || time.Since(begun) > time.Second {
			t.Errorf("the service stopped after %v: %v", time.Since(begun), err)
		}
		all.Wait()
	})
}
