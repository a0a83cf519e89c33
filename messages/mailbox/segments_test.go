package mailbox

import (
	"bytes"
	"context"
	"sync/atomic"
	"syscall"
	"testing"
)

// The log needs its next file while the disk is full. The process must not end. When there is room again, commands must
// be accepted, even if the process restarted in between.
func TestNoRoomForTheNextFile(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		var full atomic.Bool
		refusal := func() error {
			if full.Load() {
				return syscall.ENOSPC
			}
			return nil
		}
		g := newGroup(t, 1, func(c *Config) {
			c.SegmentBytes = 64 << 10
			c.faults.segment = refusal
			c.faults.room = func(string, int64) error { return refusal() }
		})
		g.start("r1")
		command := string(bytes.Repeat([]byte("x"), 1000))
		g.propose(command)
		full.Store(true)
		accepted := uint64(1)
		eventually(t, "the end of the room", func() bool {
			if _, err := g.leader().Propose(context.Background(), []byte(command)); err != nil {
				return g.boxes["r1"].guard.low.Load()
			}
			accepted++
			return false
		})
		if restart {
			g.stop("r1")
			g.start("r1")
		}
		full.Store(false)
		eventually(t, "commands accepted", func() bool {
			_, err := g.leader().Propose(context.Background(), []byte(command))
			return err == nil
		})
		for range 100 {
			g.propose(command)
		}
		g.stop("r1")
		g.start("r1")
		g.agree(accepted + 101)
	}
}
