package depot

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// forgetful is a bus whose object store has one object. It does not answer the first `lost` requests.
type forgetful struct {
	bus.Bus
	lost int
}

func (f *forgetful) answer(ctx context.Context) error {
	if f.lost--; f.lost >= 0 {
		<-ctx.Done()
		return messages.Errorf(messages.Unavailable, "no answer")
	}
	return nil
}

func (f *forgetful) Kept(ctx context.Context, _ string) (bus.Objects, []string, error) {
	return f, []string{"a"}, f.answer(ctx)
}

func (f *forgetful) Get(ctx context.Context, _ string) ([]byte, time.Time, error) {
	return []byte("x"), time.Time{}, f.answer(ctx)
}

func (f *forgetful) Put(context.Context, string, []byte) error { return nil }

// A backup must repeat requests that are not answered, and take only seconds longer. If nobody answers, it must fail
// and not wait for ever.
func TestSaveRepeatsWhatIsNotAnswered(t *testing.T) {
	for lost, saved := range map[int]string{0: "ax", tries - 1: "ax", 2 * tries: ""} {
		synctest.Test(t, func(t *testing.T) {
			got, began := "", time.Now()
			err := Save(t.Context(), &forgetful{lost: lost}, "west", "alice", func(object string, data []byte) error {
				got += object + string(data)
				return nil
			})
			if got != saved || (err == nil) != (saved != "") {
				t.Errorf("%d lost answers: saved %q, %v", lost, got, err)
			}
			if took := time.Since(began); took > tries*bus.RequestTimeout {
				t.Errorf("%d lost answers: took %v", lost, took)
			}
		})
	}
}
