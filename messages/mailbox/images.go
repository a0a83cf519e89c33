package mailbox

import (
	"io"
	"math"
	"time"

	"github.com/hashicorp/raft"
)

// sentImage is an image of the state that this leader is sending to a replica, or has sent to it.
type sentImage struct {
	index    uint64    // index of the last log entry in the image
	restored time.Time // when the replica had restored the image; zero means not yet
}

// catchUpWithin is how long a replica that has restored an image may take to catch up with the log.
const catchUpWithin = time.Minute

// InstallSnapshot sends an image, and returns when the replica has restored it.
func (t *transport) InstallSnapshot(id raft.ServerID, to raft.ServerAddress, q *raft.InstallSnapshotRequest, p *raft.InstallSnapshotResponse, image io.Reader) error {
	t.sent(id, &sentImage{index: q.LastLogIndex})
	err := t.NetworkTransport.InstallSnapshot(id, to, q, p, image)
	if err != nil {
		t.sent(id, nil)
	} else {
		t.sent(id, &sentImage{q.LastLogIndex, time.Now()})
	}
	return err
}

func (t *transport) sent(id raft.ServerID, image *sentImage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.images, id)
	if image != nil {
		t.images[id] = *image
	}
}

// needed returns the index after which the log must keep all entries. Replicas that restore an image, or catch up after
// a restore, need these entries. Without these entries they would need another image at once. The log also keeps the
// last entry of the image, because Raft reads it.
func (t *transport) needed() (index uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	index = math.MaxUint64
	for _, i := range t.images {
		if i.restored.IsZero() || time.Since(i.restored) < catchUpWithin {
			index = min(index, i.index-1)
		}
	}
	return index
}

// sighting is what the answers of a replica show: the time of the latest answer, and the last entry of the replica's
// log at that time. The fields `term` and `mark` identify the latest request that the replica accepted.
type sighting struct {
	at         time.Time
	last       uint64
	term, mark uint64
}
