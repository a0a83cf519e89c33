package client

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// heedAfter is how old a process is when it begins to hear interrupts.
var heedAfter = 20 * time.Millisecond

// interruptible returns a context that the first interrupt ends. A second interrupt ends the
// process at once, as the first one restores the signals' usual effect. In its first moments a
// process has that effect anyway: a command that is over by then needs no threads that hear.
func interruptible() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	heard := make(chan os.Signal, 1)
	heed := func() {
		signal.Notify(heard, os.Interrupt, syscall.SIGTERM)
		go func() {
			select {
			case <-heard:
				signal.Stop(heard)
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	if heedAfter == 0 {
		heed()
		return ctx, cancel
	}
	timer := time.AfterFunc(heedAfter, heed)
	return ctx, func() { timer.Stop(); cancel() }
}
