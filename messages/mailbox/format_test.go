package mailbox

import (
	"testing"

	"github.com/hashicorp/raft"

	"github.com/candor-grid/candor/messages"
)

// Entries in a newer format must not count as damage: nothing may be moved aside.
func TestEntriesOfANewerRelease(t *testing.T) {
	log := raft.NewInmemStore()
	if err := log.StoreLog(&raft.Log{Index: 1, Term: 1, Type: raft.LogCommand, Data: []byte{entryMark + 1}}); err != nil {
		t.Fatal(err)
	}
	s := &sealedLog{LogStore: log, place: "here", promises: &promises{record: record{Sealed: 2}}}
	_, _, err := s.scan()
	if messages.KindOf(broken(err)) != messages.Conflict {
		t.Errorf("the error is %v, want a Conflict", err)
	}
}
