package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Interruptible returns a context that ends at the first interrupt and, with hangUp, when the terminal is closed. A
// second interrupt ends the process at once. A second hang-up does not: shell and kernel both send one when a terminal
// is closed. The threads for signals start only after the time `after`, so that a short command does not need them. An
// interrupt before that ends the process at once.
func Interruptible(after time.Duration, hangUp bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	heard, hung := make(chan os.Signal, 1), make(chan os.Signal, 1)
	heed := func() {
		signal.Notify(heard, os.Interrupt, syscall.SIGTERM)
		if hangUp && !signal.Ignored(syscall.SIGHUP) { // a program under nohup ignores hang-ups
			signal.Notify(hung, syscall.SIGHUP)
		}
		go func() {
			select {
			case <-heard:
			case <-hung:
			case <-ctx.Done():
				return
			}
			signal.Stop(heard)
			cancel()
		}()
	}
	if after == 0 {
		heed()
		return ctx, cancel
	}
	timer := time.AfterFunc(after, heed)
	return ctx, func() { timer.Stop(); cancel() }
}
