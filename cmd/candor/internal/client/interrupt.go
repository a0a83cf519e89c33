package client

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// heedAfter is the age of a process at which it begins to handle interrupts. At a lower age, an interrupt ends the
// process without any handler.
var heedAfter = 20 * time.Millisecond

// interruptible returns a context that ends at the first interrupt, or when the terminal is closed. A second interrupt
// ends the process at once. The threads for signals start only 20 ms after the process, so that a short command does not
// need them. An interrupt in these 20 ms ends the process at once.
func interruptible() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	heard := make(chan os.Signal, 1)
	heed := func() {
		signal.Notify(heard, os.Interrupt, syscall.SIGTERM)
		if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
			signal.Notify(heard, syscall.SIGHUP)
		}
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
