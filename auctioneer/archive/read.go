package archive

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// places has the position of each record of a file.
type places struct {
	number uint64
	bytes  int64
	of     map[messages.JobID]place
}

type place struct{ from, length int }

// mostPlaces is the number of files for which the archive remembers where the records are.
const mostPlaces = 4

// Extent is what the archive remembers about the jobs of a file, so that it need not read the file.
type Extent struct {
	Oldest, Newest messages.JobID
	Submitted      messages.Time // when the first job of the file was submitted
	Ended          messages.Time // when the last job of the file ended
}

// view is a copy of what the archive knows about one of its files. With the view, the file is read without the lock.
type view struct {
	Extent
	number uint64
	bytes  int64
	path   string
}

func (a *Archive) view(s *segment) view {
	return view{Extent{s.oldest(), s.newest(), s.Submitted, s.Last}, s.Number, s.Bytes, a.path(s)}
}

// openFile is a variable so that tests can replace it.
var openFile = os.Open

// passing reports whether a read failed for a temporary reason, such as too many open files. An input/output error is
// not temporary: if the second read fails with it too, the file is damaged.
func passing(err error) bool {
	var code syscall.Errno
	return errors.As(err, &code) && code != syscall.EIO && !errors.Is(err, fs.ErrNotExist)
}

func (v *view) read() (file []byte, err error) {
	if file, err = v.readOnce(); errors.Is(err, syscall.EIO) {
		return v.readOnce()
	}
	return file, err
}

func (v *view) readOnce() ([]byte, error) {
	f, err := openFile(v.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	file := make([]byte, v.bytes)
	n, err := io.ReadFull(f, file)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil // missing bytes count as damage
	}
	return file[:n], err
}

// Find returns the record of a job, or the error NotFound.
func (a *Archive) Find(id messages.JobID) (r Record, err error) {
	a.mu.Lock()
	s := a.holder(id)
	if s == nil {
		a.mu.Unlock()
		return r, messages.Errorf(messages.NotFound, "there is no job %d", id)
	}
	v := a.view(s)
	i := slices.IndexFunc(a.places, func(p places) bool { return p.number == v.number && p.bytes == v.bytes })
	var known places
	if i >= 0 {
		known = a.places[i]
	}
	a.mu.Unlock()
	if i < 0 {
		if known, err = a.look(&v); err != nil {
			return r, a.unreadable(&v, id, err)
		}
	}
	at, ok := known.of[id]
	if !ok {
		return r, a.unreadable(&v, id, errDamaged)
	}
	if r, err = v.record(at); errors.Is(err, syscall.EIO) {
		r, err = v.record(at)
	}
	if err != nil || r.Summary.Job != id {
		return r, a.unreadable(&v, id, cmp.Or(err, errDamaged))
	}
	return r, nil
}

var errDamaged = errors.New("the checksum of the record is wrong")

func (v *view) record(p place) (r Record, err error) {
	f, err := openFile(v.path)
	if err != nil {
		return r, err
	}
	defer f.Close()
	data := make([]byte, p.length)
	if _, err := f.ReadAt(data, int64(p.from)); err != nil {
		return r, err
	}
	record := at(data, 0)
	if record == nil {
		return r, errDamaged
	}
	return decode(record)
}

// look returns the positions of a file's records, and remembers them.
func (a *Archive) look(v *view) (p places, err error) {
	file, err := v.read()
	if err != nil {
		return p, err
	}
	p = places{v.number, v.bytes, map[messages.JobID]place{}}
	_, damage, err := each(file, func(from int, record []byte) { p.of[jobOf(record)] = place{from, len(record)} })
	a.found(v, damage)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.places = slices.DeleteFunc(a.places, func(o places) bool { return o.number == v.number })
	a.places = append(a.places[max(0, len(a.places)-mostPlaces+1):], p)
	return p, err
}

// unreadable handles a record that cannot be read. It logs the error, and removes the record from the archive. The
// archive then accepts a copy of the record from another replica.
func (a *Archive) unreadable(v *view, id messages.JobID, why error) error {
	if errors.Is(why, fs.ErrNotExist) && !a.Has(id) {
		return messages.Errorf(messages.NotFound, "there is no job %d", id) // the file's retention is over
	}
	if passing(why) {
		return messages.Errorf(messages.Unavailable, "the record of job %d in the archive cannot be read now: %v; ask again", id, why)
	}
	a.Log.Error("the record of a job cannot be read", zap.String("file", v.path), zap.Stringer("job", id), zap.Error(why))
	a.metrics.damaged.Inc()
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.holder(id); s != nil {
		s.lose(id)
		a.lose(s.Last)
		a.save()
	}
	return messages.Errorf(messages.Internal, "the record of job %d in the archive is damaged and is not shown; `candor statement` shows what the job cost", id)
}

func (a *Archive) report(path string, damage []int) {
	for _, at := range damage {
		a.Log.Error("a file of the archive is damaged: the jobs in this file are not listed", zap.String("file", path), zap.Int("at_byte", at))
	}
	a.metrics.damaged.Add(float64(len(damage)))
}

// found records the damaged positions of a file, and returns how many of them were not known before.
func (a *Archive) found(v *view, damage []int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.all(), func(s *segment) bool { return s.Number == v.number })
	if i < 0 || len(damage) <= a.all()[i].Damage {
		return 0
	}
	s := a.all()[i]
	n := len(damage) - s.Damage
	s.Damage = len(damage)
	a.report(v.path, damage)
	a.lose(s.Last)
	a.save()
	return n
}

// Examine reads all files of the archive. In this way it finds damaged records before a user asks for them, and they
// can be copied from another replica. After each file, Examine calls `pause`, and stops if `pause` returns false. The
// result `lost` is true if a file lacks the record of a job that the archive lists for this file.
func (a *Archive) Examine(pause func() bool) (lost bool) {
	a.mu.Lock()
	var views []view
	for _, s := range a.all() {
		views = append(views, a.view(s))
	}
	a.mu.Unlock()
	for i := range views {
		lost = a.examine(&views[i]) || lost
		if !pause() {
			break
		}
	}
	return lost
}

// examine reads one file of the archive. The archive lists the jobs of each file. If the file has no record of a listed
// job, examine removes the job from the list.
func (a *Archive) examine(v *view) (lost bool) {
	file, err := v.read()
	there, damage := &segment{}, []int{0}
	if err == nil && len(file) > 0 {
		there, damage, err = survey(v.number, file)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.Log.Error("a file of the archive cannot be read", zap.String("file", v.path), zap.Error(err))
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.all(), func(s *segment) bool { return s.Number == v.number })
	if i < 0 || a.all()[i].Bytes != v.bytes {
		return false // the file's retention is over, or the file has grown since
	}
	s := a.all()[i]
	for _, span := range slices.Clone(s.Spans) {
		for id := span[0]; id <= span[1]; id++ {
			if !there.has(id) {
				s.lose(id)
				lost = true
			}
		}
	}
	if lost {
		if there.Bytes < v.bytes && len(damage) == 0 {
			damage = []int{int(there.Bytes)}
		}
		s.Damage = len(damage)
		a.report(v.path, damage)
		a.lose(s.Last)
		a.save()
	}
	return lost
}

// Scan calls `yield` with the archived jobs of an account ("" for all). It reads the newest file first. It skips files
// for which `wanted` returns false, and jobs for which `named` returns false. It returns the number of newly found
// damaged positions.
func (a *Archive) Scan(account messages.Name, wanted func(Extent) bool, named func(messages.JobID) bool, yield func(*job.JobSummary) error) (unreadable int, err error) {
	a.mu.Lock()
	var views []view
	for _, s := range a.all() {
		views = append(views, a.view(s))
	}
	a.mu.Unlock()
	slices.SortFunc(views, func(x, y view) int { return cmp.Compare(y.Newest, x.Newest) })
	for i := range views {
		v := &views[i]
		if !wanted(v.Extent) {
			continue
		}
		n, err := a.scan(v, account, named, yield)
		if unreadable += n; err != nil {
			return unreadable, err
		}
	}
	return unreadable, nil
}

func (a *Archive) scan(v *view, account messages.Name, named func(messages.JobID) bool, yield func(*job.JobSummary) error) (unreadable int, err error) {
	file, failed := v.read()
	if errors.Is(failed, fs.ErrNotExist) {
		return 0, nil // the file's retention is over
	}
	if failed != nil {
		a.Log.Error("a file of the archive cannot be read", zap.String("file", v.path), zap.Error(failed))
		return 1, nil
	}
	end, damage, other := each(file, func(_ int, record []byte) {
		if err != nil || !named(jobOf(record)) {
			return
		}
		summary, _ := split(record)
		if !bytes.Contains(summary, []byte(account)) {
			return
		}
		r, bad := decode(record)
		switch {
		case bad != nil:
			unreadable++
		case account == "" || r.Summary.Account == account:
			err = yield(&r.Summary)
		}
	})
	if end < int(v.bytes) {
		damage = append(damage, end)
	}
	if other != nil {
		a.Log.Error("a file of the archive cannot be read", zap.String("file", v.path), zap.Error(other))
		unreadable++
	}
	return unreadable + a.found(v, damage), err
}

// Part returns a piece of a file, so that another replica can copy the file. The file is the first one whose number is
// at least the given number. Part returns the file's number, its size, and at most `most` bytes from the offset on. If
// there is no such file, the size is 0.
func (a *Archive) Part(number uint64, offset int64, most int) (of uint64, size int64, data []byte, err error) {
	a.mu.Lock()
	var v view
	for _, s := range slices.Backward(a.all()) {
		if s.Number >= number {
			v = a.view(s)
		}
	}
	a.mu.Unlock()
	if v.bytes == 0 || offset < 0 || offset > v.bytes {
		return 0, 0, nil, nil
	}
	f, err := openFile(v.path)
	if err != nil {
		return 0, 0, nil, err
	}
	defer f.Close()
	data = make([]byte, min(int64(most), v.bytes-offset))
	if _, err := f.ReadAt(data, offset); err != nil {
		return 0, 0, nil, err
	}
	return v.number, v.bytes, data, nil
}

// Merge reads a file of another replica. It adds the records in this file that this archive lacks.
func (a *Archive) Merge(file []byte) error {
	var unwritten error
	_, _, err := each(file, func(_ int, record []byte) {
		if a.Has(jobOf(record)) {
			return
		}
		if r, err := decode(record); err == nil && !a.Add(&r) {
			unwritten = errors.New("cannot write the records that another replica has")
		}
	})
	return cmp.Or(err, unwritten)
}
