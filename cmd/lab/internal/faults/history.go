package faults

import (
	"bytes"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/bank/history"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/wire"
)

// segmentBytes is the size of a file of a bank's history, in bytes of records. It is small, so that each run fills
// several files.
const segmentBytes = 3000

// files are the simulated files of the history of a bank's replica.
type files struct{ now, synced, durable map[string][]byte }

func newFiles() *files {
	return &files{map[string][]byte{}, map[string][]byte{}, map[string][]byte{}}
}

var _ history.Files = (*files)(nil)

func (f *files) Write(name string, parts ...[]byte) error {
	f.now[name] = bytes.Join(parts, nil)
	return nil
}

func (f *files) Append(name string, data []byte) error {
	f.now[name] = append(slices.Clone(f.now[name]), data...)
	return nil
}

func (f *files) Open(name string) (history.File, error) {
	content, is := f.now[name]
	if !is {
		return nil, fs.ErrNotExist
	}
	return file{bytes.NewReader(content)}, nil
}

func (f *files) Sync(name string) error { f.synced[name] = f.now[name]; return nil }

func (f *files) Commit() error {
	maps.Copy(f.durable, f.synced)
	clear(f.synced)
	return nil
}

func (f *files) List() ([]string, error) { return slices.Sorted(maps.Keys(f.now)), nil }

func (f *files) crash() {
	f.now = maps.Clone(f.durable)
	clear(f.synced)
}

// spoil damages a file: it flips a bit, zeroes a part, or cuts or removes the file. It reports whether there was a
// file.
func (f *files) spoil(rng *rand.Rand) bool {
	names, _ := f.List() // List cannot fail for simulated files
	if len(names) == 0 {
		return false
	}
	name := names[rng.IntN(len(names))]
	content := slices.Clone(f.now[name])
	at := rng.IntN(len(content))
	switch rng.IntN(4) {
	case 0:
		content[at] ^= 1 << rng.IntN(8)
	case 1:
		content[at] ^= 0x80
		clear(content[at+1 : min(len(content), at+100)])
	case 2:
		content = content[:at]
	case 3:
		delete(f.now, name)
		delete(f.durable, name)
		return true
	}
	f.now[name], f.durable[name] = content, content
	return true
}

type file struct{ *bytes.Reader }

func (f file) Size() (int64, error) { return f.Reader.Size(), nil }
func (f file) Close() error         { return nil }

func (m *machine) open() {
	fetch := m.fetch
	if m.site.Bug == DamageStays {
		fetch = nil
	}
	m.store = history.New(m.files, segmentBytes, fetch)
}

// spoil switches a machine off, and damages a file in the history of the machine's bank replica. It damages no file if
// this or another replica of the bank lacks data already.
func (m *machine) spoil(at messages.Duration) {
	m.crash()
	r := m.site.banks.replicas[m.index]
	if !r.harmed && m.site.banks.othersHaveAll(r) && m.files.spoil(rand.New(rand.NewPCG(m.site.seed, uint64(at)))) {
		r.harmed = true
	}
}

// othersHaveAll reports whether all replicas of the group, except the given one, have all their data.
func (g *group) othersHaveAll(but *replica) bool {
	return !slices.ContainsFunc(g.replicas[:], func(r *replica) bool { return r != but && (r.doubtful || r.harmed) })
}

// fetch asks the other replicas of the bank for a file of the history, and checks it. It also asks replicas that do not
// lead, because a new leader may not be able to commit before this replica has its files.
func (m *machine) fetch(sum ledger.Sum) ([]byte, error) {
	for _, r := range m.site.banks.replicas {
		if r.host == m || r.host.down || m.cutOff() || r.host.cutOff() {
			continue
		}
		h := r.state.(*bankState).ledger.History()
		if slices.ContainsFunc(h.Segments(), func(s ledger.Sealed) bool { return s.Sum() == sum }) && r.host.store.Check(sum) != nil {
			continue
		}
		if content, _, err := history.Part(r.host.files, sum.First, 0, wire.MaxPayload); err == nil {
			return content, nil
		}
	}
	return nil, messages.Errorf(messages.Unavailable, "no other replica of the bank has the file")
}

// cutOff reports whether the machine cannot be reached.
func (m *machine) cutOff() bool {
	return slices.ContainsFunc(m.site.active, func(e Event) bool { return e.Kind == Partition && e.Target == m.name })
}

// examine reads all files of the bank's history after a start, and fetches damaged ones. A leader that finds damage
// gives up its leadership, as in package mailbox, so that it can fetch files from the next leader.
func (r *replica) examine() {
	b, is := r.state.(*bankState)
	if !is {
		return
	}
	h := b.ledger.History()
	for _, s := range h.Segments() {
		_, _ = s.Segment() // a missing file is fetched later
	}
	b.store.Mend()
	r.harmed = b.store.Lost() != nil
	if !r.harmed {
		return
	}
	if r.role == leading {
		r.follow()
		r.delayElection()
	}
	r.after(&r.host.host, second, r.examine)
}
