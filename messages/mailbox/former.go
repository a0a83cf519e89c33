package mailbox

import (
	"sync"

	"github.com/hashicorp/raft"
)

// former has the IDs of all replicas that have been members of the group since this replica started. It takes them from
// the applied log entries. Each replica keeps such a list, so the next leader also knows that a replica was removed.
type former struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (f *former) note(members raft.Configuration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ids == nil {
		f.ids = map[string]bool{}
	}
	for _, s := range members.Servers {
		f.ids[string(s.ID)] = true
	}
}

func (f *former) had(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ids[id]
}
