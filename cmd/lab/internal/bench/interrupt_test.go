package bench

import (
	"context"
	"errors"
	"testing"
)

// An interrupt must end a measurement at once, even if work is left.
func TestAnInterruptEndsRounds(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	err := inParallel(ctx, 1_000_000, 1, func(number int) error {
		if number == 3 {
			interrupt()
		}
		if number > 3 {
			t.Fatal("it goes on")
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
