package mailbox

import (
	"sync/atomic"
	"testing"
	"time"
)

// TestACloseWaitsForTheProbe: a mailbox that has been closed looks at its disk, and writes to it, no
// more. It once took a directory that was removed after that for a disk that had failed, which ends
// the process.
func TestACloseWaitsForTheProbe(t *testing.T) {
	var armed atomic.Bool
	var m *replicated
	closed, looks, late := make(chan struct{}), make(chan struct{}, 1), make(chan bool, 1)
	g := newGroup(t, 1, func(c *Config) {
		c.faults.free = func(string) (uint64, error) {
			if armed.Swap(false) {
				looks <- struct{}{}
				<-m.gone
				select {
				case <-closed:
					late <- true
				case <-time.After(100 * time.Millisecond): // far longer than a close takes that waits for nothing
					late <- false
				}
			}
			return 1 << 40, nil
		}
	})
	g.start("r1")
	m = g.leader()
	armed.Store(true)
	<-looks
	g.stop("r1")
	close(closed)
	if <-late {
		t.Error("the disk was looked at after the close")
	}
}
