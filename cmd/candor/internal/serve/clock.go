package serve

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
)

// clockEvery is how often the error of the clock is read from its file.
const clockEvery = 100 * time.Millisecond

// wrongClock returns a wall clock for tests. It is wrong by the nanoseconds in a file, or right without this file.
func wrongClock(file string) func() messages.Time {
	if file == "" {
		return nil
	}
	var mu sync.Mutex
	var ahead time.Duration
	var read time.Time
	return func() messages.Time {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if now.Sub(read) > clockEvery {
			text, _ := os.ReadFile(file) // without text, the clock is right
			n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
			ahead, read = time.Duration(n), now
		}
		return messages.TimeOf(now.Add(ahead))
	}
}
