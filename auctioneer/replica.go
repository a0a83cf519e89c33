package auctioneer

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/archive"
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/siteclock"
)

// replica guards the book: the mailbox applies commands to it while the leader reads.
type replica struct {
	mu   sync.RWMutex
	book *book.Book
	time *siteclock.Steady
	kick chan struct{} // gets a value after commands were applied
	// archive gets the records that leave the book. If it is nil, they are lost.
	archive   *archive.Archive
	unwritten bool          // the last record could not be written
	level     atomic.Int64  // level that the replicas agreed on; see [messages.Level]
	damaged   atomic.Bool   // the archive has lost records since it was last copied
	behind    atomic.Bool   // an image replaced the book while the archive was new, and the archive was not copied since
	nowhere   atomic.Int64  // the leader's archive also lacks jobs that ended up to this time, as the last copy showed
	lost      chan struct{} // gets a value when the archive has lost records, or an image replaced the book
	leads     atomic.Bool
	bank      atomic.Pointer[bankSight]
	log       *zap.Logger
}

func newReplica(a *archive.Archive, log *zap.Logger) *replica {
	r := &replica{book: book.New(), kick: make(chan struct{}, 1), archive: a, lost: make(chan struct{}, 1), log: log}
	r.bank.Store(&bankSight{})
	if a != nil {
		r.book.Archive(r.keep)
	}
	return r
}

// Check implements mailbox.Machine.
func (r *replica) Check(command []byte) (level int, err error) { return book.LevelOf(command) }

// Apply implements mailbox.Machine.
func (r *replica) Apply(_ uint64, commands [][]byte) ([]any, error) {
	decoded := make([]*book.Command, len(commands))
	for i, data := range commands {
		var err error
		if decoded[i], err = book.Decode(data); err != nil {
			return nil, err
		}
	}
	results := make([]any, len(commands))
	leapt, carried := false, false
	r.mu.Lock()
	for i, c := range decoded {
		results[i] = r.book.Apply(c)
		leapt, carried = leapt || c.Leap > 0, c.TimeUnknown
	}
	r.time.Reached(r.book.Now(), leapt, carried)
	r.mu.Unlock()
	r.wake()
	return results, nil
}

// Agreed implements mailbox.Agreeing.
func (r *replica) Agreed(level int) { r.level.Store(int64(level)) }

// Capture implements mailbox.Machine.
func (r *replica) Capture() mailbox.Image {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return &synced{r.book.Capture(), r}
}

// Before the book's image is written, the archive must be durable; synced is an image that ensures this. The reason is
// that, after an image is written, the commands before it are removed from the log. Such a command may have moved a
// record from the book to the archive, and then only the archive still has the record. If the archive cannot be made
// durable, the image is written anyway: a lost record can be copied from another replica.
type synced struct {
	*book.Image
	replica *replica
}

// WriteTo implements mailbox.Image.
func (i *synced) WriteTo(w io.Writer) (int64, error) {
	if i.replica.archive != nil {
		if err := i.replica.archive.Sync(); err != nil {
			i.replica.log.Warn("the archive of jobs is not durable yet", zap.Error(err))
		}
	}
	return i.Image.WriteTo(w)
}

// Digest implements mailbox.Image. It does not wait until the archive is durable, because the digest is only compared
// with the digests of other replicas.
func (i *synced) Digest(w io.Writer) error {
	_, err := i.Image.WriteTo(w)
	return err
}

// Weak implements mailbox.Machine. A replica whose archive lost records should not lead. It must first copy the lost
// records from another replica.
func (r *replica) Weak() error {
	if r.damaged.Load() {
		return errors.New("the archive of ended jobs lost records")
	}
	return r.bank.Load().weak(time.Now(), r.leads.Load())
}

// Restore implements mailbox.Machine.
func (r *replica) Restore(from io.Reader) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.wake()
	err := r.book.Restore(from)
	r.time.Reached(r.book.Now(), false, false)
	if r.archive == nil {
		return err
	}
	about := r.archive.About()
	r.behind.Store(about.Fresh && r.book.Forgotten())
	if lacks, ended := r.lacking(r.book); lacks && ended > about.Complete { // jobs that ended earlier are past retention, or were reported before
		r.damaged.Store(true)
	}
	r.lack()
	return err
}

func (r *replica) lose() {
	r.damaged.Store(true)
	r.lack()
}

// lack tells the replica that its archive lacks records. The replica then soon finds out which records are missing.
func (r *replica) lack() {
	select {
	case r.lost <- struct{}{}:
	default:
	}
}

// read calls f with the book, which f must not change or keep.
func (r *replica) read(f func(*book.Book)) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	f(r.book)
}

func (r *replica) watch(on bool) {
	r.mu.Lock()
	r.book.Watch(on)
	r.mu.Unlock()
	r.wake()
}

func (r *replica) wake() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

func (r *replica) keep(e book.Ended) {
	s := job.JobSummary{}
	if e.Job != nil {
		s = summary(e.Job)
	} else {
		s = e.Remote.Summary()
	}
	for i := range s.Used {
		if r.level.Load() < 2 { // the release of level 1 may read the record
			s.Used[i].MemoryHours = 0
		}
	}
	if r.archive.Has(s.Job) {
		return
	}
	body, err := e.Encode()
	if err != nil { // cannot happen, because every field can be encoded; the record counts as not written
		r.archive.Begins(s.Ended)
		return
	}
	switch written := r.archive.Add(&archive.Record{Summary: s, Body: body}); {
	case !written:
		r.unwritten = true
		r.lose()
	case r.unwritten: // there is room again for records that other replicas have
		r.unwritten = false
		r.lack()
	}
}

func (r *replica) lacking(b *book.Book) (lacks bool, ended messages.Time) {
	for p := range b.EachPast {
		if !r.archive.Has(p.ID) && !r.archive.Ends(p.Ended) && p.Ended > messages.Time(r.nowhere.Load()) {
			lacks, ended = true, max(ended, p.Ended)
		}
	}
	if r.behind.Load() {
		lacks, ended = true, max(ended, b.OldestEnd())
	}
	return lacks, ended
}
