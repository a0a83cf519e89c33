package jobs_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/cmd/candor/internal/client/jobs"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// limited is a bus on which each request is refused because of a limit.
type limited struct{ bus.Bus }

func (limited) Request(context.Context, string, []byte) ([]byte, error) {
	return nil, messages.Errorf(messages.Unavailable, "too many requests of account alice")
}

// A stream whose requests are refused tells the user the reason while it tries again.
func TestAStreamSaysWhyItTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		over := messages.Errorf(messages.Ended, "over")
		stream := &jobs.Stream{Session: &cli.Session{Bus: limited{}, Site: "west", Account: "alice"}, Node: "n2",
			App:  &cli.App{Err: &said, Pause: func(_ context.Context, d time.Duration) error { time.Sleep(d); return nil }},
			Over: func(context.Context) error { return over }}
		if _, err := stream.Open(t.Context()); err != over {
			t.Errorf("%v", err)
		}
		if want := "[candor: node n2 does not answer (too many requests of account alice); trying again]\n"; said.String() != want {
			t.Errorf("said %q, want %q", said.String(), want)
		}
	})
}
