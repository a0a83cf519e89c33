package mailbox

import (
	"sync"

	"github.com/hashicorp/raft"
)

// former has the identifiers of all replicas that were members of the group, as the log
// entries say that were applied since the start. Each replica has one: so the next leader
// knows of a removal too.
type former struct {
	mu  sync.Mutex
	ids map[string]bool
}

// note takes a committed configuration of the group.
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

// had reports whether a replica was a member.
func (f *former) had(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ids[id]
}
