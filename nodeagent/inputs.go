package nodeagent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/runner/store"
)

// keepInputs bounds the bytes of unused inputs that a node keeps for later tasks.
const keepInputs = 2 << 30

// inputs are the files that a node keeps under their digests: all inputs of running tasks, and the most recently used
// of the other inputs.
type inputs struct {
	dir string // state directory

	mu    sync.Mutex
	kept  map[string]*input
	bytes int64
	turn  uint64
}

// input is one input file that the agent keeps. The lock inputs.mu guards the fields `users` and `last`. The field
// `err` does not change any more after the channel `ready` is closed.
type input struct {
	digest string
	size   int64
	users  int
	last   uint64        // number of the latest use; a higher number is later
	ready  chan struct{} // closed when the file is there, or err is set
	err    error
}

// openInputs lists the inputs that an earlier agent kept.
func openInputs(dir string) *inputs {
	in := &inputs{dir: dir, kept: map[string]*input{}}
	if dir == "" {
		return in
	}
	entries, _ := os.ReadDir(store.InputsDir(dir)) // fails only before the first input is stored
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || filepath.Ext(e.Name()) != "" { // a file whose name has an extension is incomplete
			os.Remove(filepath.Join(store.InputsDir(dir), e.Name()))
			continue
		}
		done := &input{digest: e.Name(), size: info.Size(), ready: make(chan struct{})}
		close(done.ready)
		in.kept[e.Name()] = done
		in.bytes += done.size
	}
	return in
}

// acquire returns a file when it is on the node. The first caller fetches the file. If the fetch fails, perhaps because
// the caller's task was stopped, the waiting callers try to fetch the file one after another.
func (in *inputs) acquire(ctx context.Context, f job.File, fetch func(*os.File) error) (*input, error) {
	for {
		k, mine := in.enter(f)
		if mine {
			in.done(k, in.write(f, fetch))
		}
		var err error
		select {
		case <-k.ready:
			err = k.err
		case <-ctx.Done():
			err, mine = messages.Errorf(messages.Unavailable, "did not arrive in time: %v", ctx.Err()), true
		}
		if err == nil && k.size != f.Size {
			err, mine = messages.Errorf(messages.Invalid, "the file with this digest has %d bytes, not %d", k.size, f.Size), true
		}
		if err == nil {
			return k, nil
		}
		in.release([]*input{k})
		if mine {
			return nil, err
		}
	}
}

// enter adds a user of a file. If the result `mine` is true, the caller must fetch the file.
func (in *inputs) enter(f job.File) (k *input, mine bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.turn++
	k = in.kept[f.Digest]
	if k == nil || in.gone(k, f.Size) {
		k, mine = &input{digest: f.Digest, size: f.Size, ready: make(chan struct{})}, true
		in.kept[f.Digest] = k
		in.bytes += f.Size
	}
	k.users++
	k.last = in.turn
	return k, mine
}

// The runner removes damaged files, and a file may have been cut while no agent ran. So a file that the agent knows may
// be missing, or may have a wrong size. gone reports whether this is so, and then also removes the file from the list
// of known files. The caller holds in.mu.
func (in *inputs) gone(k *input, wanted int64) bool {
	select {
	case <-k.ready:
	default:
		return false
	}
	info, err := os.Stat(store.InputFile(in.dir, k.digest))
	if err == nil && info.Size() == k.size && (k.size == wanted || k.users > 0) {
		return false
	}
	in.drop(k)
	return true
}

// write fetches a file under a temporary name, and renames it when it is complete.
func (in *inputs) write(f job.File, fetch func(*os.File) error) error {
	path := store.InputFile(in.dir, f.Digest)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	aside, err := os.OpenFile(path+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err = errors.Join(fetch(aside), aside.Close()); err == nil {
		err = os.Rename(path+".part", path)
	}
	if err != nil {
		os.Remove(path + ".part")
	}
	return err
}

// The method `done` marks a file as fetched, or notes why this failed. After a failure, the next caller fetches the
// file again.
func (in *inputs) done(k *input, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if k.err = err; err != nil {
		in.drop(k)
	}
	close(k.ready)
}

// drop removes a file from the index. The caller holds in.mu.
func (in *inputs) drop(k *input) {
	if in.kept[k.digest] == k {
		delete(in.kept, k.digest)
		in.bytes -= k.size
	}
}

// release ends the caller's use of some files. Files without users are kept for later tasks, up to keepInputs bytes. If
// there are more, release removes the files that were unused for longest.
func (in *inputs) release(held []*input) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, k := range held {
		k.users--
	}
	for in.bytes > keepInputs {
		oldest := in.oldest()
		if oldest == nil {
			return
		}
		in.drop(oldest)
		os.Remove(store.InputFile(in.dir, oldest.digest)) // if this fails, the next agent finds the file
	}
}

// oldest returns the unused file with the earliest last use. The caller holds in.mu.
func (in *inputs) oldest() (oldest *input) {
	for _, k := range in.kept {
		if k.users == 0 && (oldest == nil || k.last < oldest.last) {
			oldest = k
		}
	}
	return oldest
}
