package bus

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
)

// TestStopEndsWaits stops a service whose handler waits for other actors. Stop waits at most stopTimeout. After half of
// this time, the handler's context must end. If the handler ignores this, Stop must return an error that says so.
func TestStopEndsWaits(t *testing.T) {
	for name, c := range map[string]struct {
		handle func(context.Context)
		takes  time.Duration
		ends   bool
	}{
		"soon":   {func(context.Context) { time.Sleep(time.Second) }, time.Second, true},
		"waits":  {func(ctx context.Context) { <-ctx.Done() }, stopTimeout / 2, true},
		"hangs":  {func(context.Context) { time.Sleep(2 * stopTimeout) }, stopTimeout, false},
		"idling": {nil, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(Service{Name: "s", Endpoints: []Endpoint{{Name: "e", Handle: func(ctx context.Context, _ Request) ([]byte, error) {
					c.handle(ctx)
					return nil, nil
				}}}}, zap.NewNop())
				answered := make(chan struct{}, 1)
				if c.handle != nil {
					s.endpoints[0].answer(Request{}, func([]byte, *messages.Error) { answered <- struct{}{} })
					synctest.Wait()
				}
				began := time.Now()
				if err := s.stop(); (err == nil) != c.ends || time.Since(began) != c.takes {
					t.Errorf("%v after %v, want %v", err, time.Since(began), c.takes)
				}
				if c.handle != nil {
					<-answered
				}
			})
		})
	}
}
