package mailbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages/beat"
)

// Replicas compare their states through the log. From time to time the leader proposes a mark. Each replica then takes
// an image of its state at the mark's index, hashes it in another goroutine, and reports the hash to the leader. The
// leader proposes all reported hashes as a judgement. If a replica's hash differs from the hash of a majority at the
// same index, the replica stops, and starts again with a state from its peers. A mark is due after 1,024 entries, and
// when a replica has written or restored a snapshot.
//
// The leader measures the cost of its own images and spends at most one hundredth of its time on them.

type mark struct {
	Index uint64
	Hash  string
	Build string // hash of the program that computed the state
}

type markEntry struct {
	Judge uint64          `json:",omitempty"` // the index of the mark whose hashes are compared; 0: this entry is a mark
	Told  map[string]mark `json:",omitempty"` // the reported hashes, by replica ID
	Raise int             `json:",omitempty"` // the level on which the replicas agree; an entry with this field is no mark
}

const (
	markCost    = 100              // the time between two marks is at least markCost times as long as the computation of a hash
	toldWithin  = 30 * time.Second // a judgement leaves out replicas that have not reported within this time
	marksEvery  = time.Second
	markHistory = 4
)

func encodeMark(e markEntry) []byte {
	b, err := json.Marshal(e)
	if err != nil {
		return nil
	}
	return append([]byte{entryMark}, b...)
}

// hasher computes and remembers hashes of a replica's state.
type hasher struct {
	mu   sync.Mutex
	busy bool
	took time.Duration // how long the last hash took
	own  []mark        // the replica's latest hashes
}

// start hashes an image of a machine in another goroutine, and calls the function `done` with the hash. While an
// earlier image is being hashed, start does nothing. A replica that replays its log can meet many marks in a short
// time. So it does not hash an image at each mark.
func (h *hasher) start(index uint64, capture func() Image, done func(*mark, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.busy {
		return
	}
	h.busy = true
	start := time.Now()
	image := capture()
	go func() {
		hash, err := digest(image)
		m := &mark{index, hash, build()}
		h.mu.Lock()
		h.busy, h.took = false, time.Since(start)
		if err == nil {
			h.own = append(h.own, *m)
			h.own = h.own[max(0, len(h.own)-markHistory):]
		}
		h.mu.Unlock()
		done(m, err)
	}()
}

func digest(image Image) (string, error) {
	h := sha256.New()
	err := image.Digest(h)
	return hex.EncodeToString(h.Sum(nil)), err
}

// at returns this replica's hash of its state at an index of the log, if it is known.
func (h *hasher) at(index uint64) (mark, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.own, func(m mark) bool { return m.Index == index })
	if i < 0 {
		return mark{}, false
	}
	return h.own[i], true
}

func (h *hasher) cost() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.took
}

// build is the hash of the running program.
var build = sync.OnceValue(func() string {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
})

var errNoMajority = errors.New("no majority of the replicas has the same state")

// judge returns an error if a replica's hash differs from the hash of a majority of the replicas that reported.
func judge(own mark, told map[string]mark) error {
	by := map[string][]string{}
	n, builds := 0, map[string]bool{own.Build: true}
	for id, m := range told {
		if m.Index == own.Index {
			by[m.Hash] = append(by[m.Hash], id)
			builds[m.Build] = true
			n++
		}
	}
	why := "; all replicas run the same build"
	if len(builds) > 1 {
		why = fmt.Sprintf("; the replicas run %d builds: run one release on every replica", len(builds))
	}
	for hash, ids := range by {
		if len(ids) < 2 || 2*len(ids) <= n {
			continue
		}
		if hash == own.Hash {
			return nil
		}
		slices.Sort(ids)
		return fmt.Errorf("mailbox: the state after entry %d differs from the state of replicas %s%s", own.Index, strings.Join(ids, ", "), why)
	}
	if len(by) > 1 {
		return fmt.Errorf("mailbox: after entry %d %w%s", own.Index, errNoMajority, why)
	}
	return nil
}

// applyMark applies an entry of version 2. Such an entry raises the level that the replicas agreed on, or makes them
// hash or compare their states. It does not change the state.
func (a *applier) applyMark(l *raft.Log) error {
	var e markEntry
	switch err := json.Unmarshal(l.Data[1:], &e); {
	case err != nil:
		return fmt.Errorf("%w: %w", errEntryVersion, err)
	case e.Raise != 0:
		return a.agreeOn(e.Raise)
	case e.Judge == 0:
		a.hasher.start(l.Index, a.machine.Capture, func(m *mark, err error) {
			if err != nil {
				a.log.Error("cannot hash the state", zap.Uint64("index", l.Index), zap.Error(err))
				return
			}
			a.mark.Store(m)
		})
		return nil
	}
	own, ok := a.hasher.at(e.Judge)
	if !ok {
		return nil
	}
	switch err := judge(own, e.Told); {
	case errors.Is(err, errNoMajority):
		a.differing.Add(1)
		a.log.Error("the replicas have different states, and no majority has the same state: compare the replicas with a checkpoint", zap.Error(err))
	case err != nil:
		a.differing.Add(1)
		a.stop(a.damaged, err)
	}
	return nil
}

// comparer works while its replica leads. It proposes two kinds of log entries with which replicas compare their
// states. A mark says at which entry each replica computes a hash of its state. A judgement lists the hashes that the
// replicas reported.
type comparer struct {
	*engine
	leadership *leadership
	members    *members
	standing   *standing
	applier    *applier
}

func (c *comparer) compare() {
	every := min(marksEvery, c.config.Timeout)
	var pending uint64 // index of a mark without a judgement
	var at time.Time   // time of the last mark
	var entries uint64 // number of entries that were applied at the time of the last mark
	var saved uint64   // result of savedAll at the time of the last mark
	for {
		select {
		case <-c.gone:
			return
		case <-time.After(beat.Until(every)):
		}
		if c.leadership.current.Load() == nil {
			pending = 0
			continue
		}
		if pending > 0 {
			if c.judged(pending, at) {
				pending = 0
			}
			continue
		}
		n, images := c.applier.entries.Load(), c.savedAll()
		if n < entries+c.config.limits.markEntries && images == saved || time.Since(at) < markCost*c.applier.hasher.cost() || len(c.voters()) == 1 {
			continue
		}
		f := c.raft.Apply(encodeMark(markEntry{}), 0)
		at, entries, saved = time.Now(), n, images
		if await(f, c.gone) == nil {
			pending = f.Index()
		}
	}
}

// savedAll returns a number that grows with each snapshot that a replica writes or restores.
func (c *comparer) savedAll() uint64 {
	sum := c.applier.saved.Load()
	for _, q := range c.standing.since(c.standing.heard, toldWithin) {
		sum += q.Saved
	}
	return sum
}

// judged waits for the reports of a mark: each replica that answers must report the hash of its state at a log index,
// within the time toldWithin. If a report is missing and the time is not over, judged returns false, and the caller
// must call it again. Otherwise judged proposes a command that compares the replicas by their hashes, and returns true.
func (c *comparer) judged(index uint64, since time.Time) bool {
	told := c.standing.told(index)
	if own, ok := c.applier.hasher.at(index); ok {
		told[c.config.ID] = own
	}
	all, err := c.members.Members()
	if err != nil {
		return true
	}
	for _, one := range all {
		if _, has := told[one.ID]; !has && one.Answers && time.Since(since) < toldWithin {
			return false
		}
	}
	if len(told) > 1 {
		_ = await(c.raft.Apply(encodeMark(markEntry{Judge: index, Told: told}), 0), c.gone)
	}
	return true
}

func (s *standing) told(index uint64) map[string]mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]mark{}
	for id, m := range s.marks {
		if m.Index == index {
			all[id] = m
		}
	}
	return all
}
