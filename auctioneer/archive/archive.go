package archive

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// Record is an ended job, as the archive stores it.
type Record struct {
	Summary job.JobSummary
	Body    []byte // the other fields of the record, encoded
}

// Config says where the archive is on the disk and how much it keeps.
type Config struct {
	Dir string
	// Retention is how long a job is kept after its end. The default is [DefaultRetention].
	Retention messages.Duration
	// MostBytes is the maximum size of all files together. The default is [DefaultBytes].
	MostBytes int64
	// SegmentBytes is the size of a full file. The default is 4 MiB, but at most a quarter of MostBytes.
	SegmentBytes int64
	Log          *zap.Logger
	Clock        func() messages.Time
	Metrics      prometheus.Registerer
}

const (
	DefaultRetention = messages.Duration(90 * 24 * time.Hour)
	DefaultBytes     = 1 << 30
	segmentBytes     = 4 << 20
)

// Archive holds the records of ended jobs of one replica. It is safe for concurrent use.
type Archive struct {
	Config
	metrics *metrics

	mu       sync.Mutex
	full     []*segment
	open     *segment // the last file: new records are appended to it; nil if there is no file yet
	file     *os.File // the opened file of the segment `open`
	bytes    int64    // bytes of all full files
	next     uint64   // number of the next file
	fresh    bool     // the archive directory was created by this process
	failing  bool     // the last write of a record failed
	complete messages.Time
	unsynced []string
	places   []places // positions of the records in the files that were read last
}

// Open opens the archive in the directory of the config, and creates the directory if needed.
func Open(c Config) (*Archive, error) {
	c.Retention, c.MostBytes = cmp.Or(c.Retention, DefaultRetention), cmp.Or(c.MostBytes, DefaultBytes)
	c.SegmentBytes = cmp.Or(c.SegmentBytes, min(segmentBytes, c.MostBytes/4))
	if c.Clock == nil {
		c.Clock = func() messages.Time { return messages.TimeOf(time.Now()) }
	}
	c.Log = cmp.Or(c.Log, zap.NewNop())
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("the archive of jobs: %w", err)
	}
	a := &Archive{Config: c, metrics: newMetrics(c.Metrics)}
	if err := a.load(); err != nil {
		return nil, err
	}
	a.goOn()
	a.count()
	return a, nil
}

func (a *Archive) path(s *segment) string {
	return filepath.Join(a.Dir, fmt.Sprintf("%010d"+suffix, s.Number))
}

// goOn opens the last file of the archive for appending, if the file is smaller than SegmentBytes. If the file is
// larger or cannot be opened, the next record begins a new file.
func (a *Archive) goOn() {
	i := len(a.full) - 1
	if i < 0 || a.full[i].Bytes >= a.SegmentBytes {
		return
	}
	f, err := os.OpenFile(a.path(a.full[i]), os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return // the next record begins another file
	}
	a.open, a.file = a.full[i], f
	a.full = a.full[:i]
	a.bytes -= a.open.Bytes
}

// Add writes the record of a job, unless the archive has it already. It reports whether the archive has the record
// afterwards. If the write fails, the archive lacks this job. In its answers to requests, the archive then says that it
// is complete only for jobs that ended after this job.
func (a *Archive) Add(r *Record) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.holder(r.Summary.Job) != nil {
		return true
	}
	err := a.append(r)
	if err != nil {
		a.metrics.unwritten.Inc()
		a.lose(r.Summary.Ended)
	}
	if failed := err != nil; failed != a.failing {
		a.failing = failed
		if failed {
			a.Log.Error("records of ended jobs cannot be written: jobs that end now are not listed, unless another replica has their records", zap.String("directory", a.Dir), zap.Error(err))
		} else {
			a.Log.Info("records of ended jobs can be written again", zap.String("directory", a.Dir))
		}
	}
	a.count()
	return err == nil
}

func (a *Archive) append(r *Record) error {
	data, err := encode(r)
	if err != nil {
		return err
	}
	if a.open != nil && a.open.Records > 0 && a.open.Bytes+int64(len(data)) > a.SegmentBytes {
		a.close()
		a.retain()
	}
	if a.open == nil {
		if err := a.begin(); err != nil {
			return err
		}
	}
	if _, err := a.file.Write(data); err != nil {
		return errors.Join(err, a.abandon())
	}
	a.open.note(&r.Summary, len(data))
	return nil
}

func (a *Archive) begin() error {
	s := &segment{Number: a.next, Bytes: int64(len(magic))}
	a.next++
	f, err := os.OpenFile(a.path(s), os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(magic); err != nil {
		return errors.Join(err, f.Close(), os.Remove(a.path(s)))
	}
	a.open, a.file = s, f
	return nil
}

func (a *Archive) close() {
	if a.open == nil {
		return
	}
	if err := a.file.Close(); err != nil {
		a.Log.Warn("a file of the archive could not be closed", zap.Error(err))
	}
	a.unsynced = append(a.unsynced, a.path(a.open))
	a.full, a.bytes = append(a.full, a.open), a.bytes+a.open.Bytes
	a.open, a.file = nil, nil
	a.save()
}

// abandon closes the current file after a write has failed. It first cuts the incomplete record off; if the file then
// has no records, it removes the file.
func (a *Archive) abandon() error {
	err := a.file.Truncate(a.open.Bytes)
	if a.open.Records > 0 {
		a.close()
		return err
	}
	err = errors.Join(err, a.file.Close(), os.Remove(a.path(a.open)))
	a.open, a.file = nil, nil
	return err
}

// lose marks the archive as incomplete up to the end of a job that it lacks.
func (a *Archive) lose(ended messages.Time) { a.complete = max(a.complete, ended) }

// retain removes files whose retention is over, and then the oldest files until the total size is small enough.
func (a *Archive) retain() {
	oldest := a.Clock().Add(-a.Retention)
	slices.SortStableFunc(a.full, func(x, y *segment) int { return cmp.Compare(x.Last, y.Last) })
	size := a.bytes
	if a.open != nil {
		size += a.open.Bytes
	}
	removed := 0
	for _, s := range a.full {
		if s.Last >= oldest && size <= a.MostBytes-a.SegmentBytes {
			break
		}
		if err := os.Remove(a.path(s)); err != nil {
			a.Log.Warn("an old file of the archive was not removed", zap.Error(err))
			break
		}
		removed++
		size -= s.Bytes
		a.bytes -= s.Bytes
		a.lose(s.Last)
	}
	a.full = slices.Delete(a.full, 0, removed)
	slices.SortFunc(a.full, func(x, y *segment) int { return cmp.Compare(x.Number, y.Number) })
	if removed > 0 {
		a.save()
	}
}

// Sync flushes the added records to the disk, and removes old files. Afterwards the replica's log may drop the commands
// that added the records.
func (a *Archive) Sync() error {
	a.mu.Lock()
	a.retain()
	closed, paths := a.unsynced, []string{filepath.Join(a.Dir, contentsFile), a.Dir}
	a.unsynced = nil
	if a.open != nil {
		paths = append(paths, a.path(a.open))
	}
	a.count()
	a.mu.Unlock()
	var failed error
	try := func(path string) (done bool) {
		err := syncFile(path)
		if done = err == nil || errors.Is(err, os.ErrNotExist); !done {
			failed = errors.Join(failed, err)
		}
		return done
	}
	closed = slices.DeleteFunc(closed, try)
	for _, path := range paths {
		try(path)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unsynced = append(closed, a.unsynced...)
	return failed
}

// syncFile is a variable so that tests can replace it.
var syncFile = syncPath

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Close closes the archive.
func (a *Archive) Close() error {
	err := a.Sync()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file != nil {
		err = errors.Join(err, a.file.Close())
		a.file, a.open = nil, nil
	}
	a.save()
	return err
}

// Ends reports whether the retention of a job that ended at the given time is over.
func (a *Archive) Ends(ended messages.Time) bool { return ended < a.Clock().Add(-a.Retention) }

// About says since when the archive has all jobs, and whether its directory is new.
type About struct {
	Records int
	Bytes   int64
	// Complete is a time: the archive has all jobs that ended after it. 0 means all jobs.
	Complete messages.Time
	Fresh    bool // the archive directory was created by this process
}

// About returns since when the archive has all jobs, and whether its directory is new.
func (a *Archive) About() (out About) {
	a.mu.Lock()
	defer a.mu.Unlock()
	out = About{Bytes: a.bytes, Complete: a.complete, Fresh: a.fresh}
	for _, s := range a.all() {
		out.Records += s.Records
	}
	if a.open != nil {
		out.Bytes += a.open.Bytes
	}
	return out
}

// Begins marks the archive as incomplete for jobs that ended at the given time or earlier.
func (a *Archive) Begins(ended messages.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lose(ended)
	a.save()
}

// Completed marks the archive as complete for jobs that ended after `since`. Before the call, all these jobs were
// copied from the complete archive of another replica.
func (a *Archive) Completed(since messages.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.complete = since
	for _, s := range a.full {
		if a.Ends(s.Last) {
			a.lose(s.Last)
		}
	}
	a.save()
}

// Has reports whether the archive has the record of a job.
func (a *Archive) Has(id messages.JobID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.holder(id) != nil
}

// The method `all` returns the segments of all files. The last one may be open for new records.
func (a *Archive) all() []*segment {
	if a.open == nil {
		return a.full
	}
	return append(slices.Clip(a.full), a.open)
}

func (a *Archive) holder(id messages.JobID) *segment {
	if a.open != nil && a.open.has(id) {
		return a.open
	}
	for _, s := range slices.Backward(a.full) {
		if s.has(id) {
			return s
		}
	}
	return nil
}
