package auctioneer

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/archive"
	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/listing"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// keep hands a record that leaves the book to the archive.
func (r *replica) keep(e book.Ended) {
	s := messages.JobSummary{}
	if e.Job != nil {
		s = summary(e.Job)
	} else {
		s = e.Remote.Summary()
	}
	if r.archive.Has(s.Job) {
		return
	}
	body, err := e.Encode()
	if err != nil { // every field can be encoded; the job counts as one that could not be written
		r.archive.Begins(s.Ended)
		return
	}
	switch written := r.archive.Add(&archive.Record{Summary: s, Body: body}); {
	case !written:
		r.unwritten = true
		r.lose()
	case r.unwritten: // there is room again for what others have
		r.unwritten = false
		r.lack()
	}
}

// synced is an image before which the archive is made durable: the log then may lose the
// commands by which records left the book. An archive that cannot be made durable does not keep
// the log from being cut: records that a loss of power takes are copied from another replica.
type synced struct {
	*book.Image
	replica *replica
}

// find finds the record of a job in the archive, if the caller may see the job. Else the
// answer is what is told of a job that does not exist.
func (a *Auctioneer) find(caller messages.Name, id messages.JobID, missing error) (e book.Ended, err error) {
	kind := messages.KindOf(missing)
	switch {
	case kind != messages.NotFound && (kind != messages.Ended || a.Archive == nil):
		return e, missing
	case a.Archive == nil:
		return e, a.unknown(id, missing)
	}
	r, err := a.Archive.Find(id)
	switch {
	case messages.KindOf(err) == messages.NotFound:
		return e, a.unknown(id, missing)
	case err != nil:
		return e, err
	case r.Summary.Account != caller && !a.operates(caller): // in the words for one that is not there
		return e, a.unknown(id, missing)
	}
	if e, err = book.DecodeEnded(r.Body); err != nil {
		return e, fmt.Errorf("the record of job %d in the archive: %w", id, err)
	}
	return e, nil
}

// unknown adds to the error for a job that does not exist what may have become of it: it was
// lost as the site was restored, or ended before the time from when on all are kept.
func (a *Auctioneer) unknown(id messages.JobID, missing error) error {
	since, restored, last := messages.Time(0), messages.Time(0), messages.JobID(0)
	if a.Archive != nil {
		since = a.Archive.About().Complete
	}
	a.replica.read(func(b *book.Book) { last, restored = b.LastJob(), b.Backup() })
	switch {
	case id > last || since == 0 && restored == 0:
		return missing
	case restored != 0 && since == 0:
		return messages.Errorf(messages.NotFound, "there is no job %d: it was lost, or never was, for this site was restored to %v", id, restored)
	case restored != 0:
		return messages.Errorf(messages.NotFound, "there is no job %d: it was lost, or never was, for this site was restored to %v; or it ended by %v and its record is not kept", id, restored, since)
	}
	return messages.Errorf(messages.NotFound, "there is no job %d, or it ended by %v and its record is not kept; what it cost is in the statement", id, since)
}

// remoteJob finds a job that another site runs or ran, nil if there is none that the caller may see.
func (l *queries) remoteJob(caller messages.Name, id messages.JobID) *book.RemoteJob {
	if away := l.remote.find(caller, id); away != nil {
		return away
	}
	away := false
	l.replica.read(func(b *book.Book) { away = b.Job(id) == nil })
	if !away || l.Archive == nil || !l.Archive.Has(id) {
		return nil
	}
	e, err := l.find(caller, id, messages.Errorf(messages.NotFound, "there is no job %d", id))
	if err != nil {
		return nil // the search for a job of this site says why
	}
	return e.Remote
}

// older shows the page jobs of the archive, and returns how many records could not be read.
func (l *queries) older(ctx context.Context, page *listing.Page, account messages.Name) (unreadable int, err error) {
	wanted := func(e archive.Extent) bool { return page.Wants(e.Oldest, e.Newest, e.Submitted, e.Ended) }
	return l.Archive.Scan(account, wanted, page.Names, func(j *messages.JobSummary) error {
		page.AddArchived(j)
		return ctx.Err()
	})
}

// copyAtOnce is how many bytes of an archive one answer has.
const copyAtOnce = 512 << 10

// archived gives another replica of the auctioneer a part of this one's archive.
func (l *queries) archived(_ context.Context, caller messages.Name, r messages.ArchiveRequest) (reply messages.ArchiveReply, err error) {
	if caller != messages.ServiceIdentity(messages.Auctioneer) {
		return reply, messages.Errorf(messages.PermissionDenied, "only replicas of the auctioneer copy the archive of jobs; list jobs instead")
	}
	if l.Archive == nil {
		return reply, nil
	}
	reply.Complete = l.Archive.About().Complete
	reply.Segment, reply.Size, reply.Data, err = l.Archive.Part(r.Segment, r.Offset, copyAtOnce)
	return reply, err
}

// How often a replica tries to get records that it lacks.
const (
	lackFirst = time.Second
	lackMost  = 10 * time.Minute
)

// complete gets the records that this replica lacks from the one that leads: after it
// was brought up to date by a snapshot, after records could not be written, and after damage.
func (a *Auctioneer) complete(ctx context.Context) {
	if a.Archive == nil {
		return
	}
	wait, next, from := lackFirst, time.Now().Add(lackFirst), ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.replica.lost:
			if soon := time.Now().Add(lackFirst); soon.Before(next) {
				wait, next = lackFirst, soon
			}
			continue
		case <-time.After(time.Until(next)):
		}
		s := a.box.Status()
		if s.Leader != from { // who may have what the one before had not
			from = s.Leader
			a.replica.nowhere.Store(0)
		}
		lacks, ended := a.lacking()
		if wait = min(2*wait, lackMost); !lacks {
			wait = lackMost
		}
		if next = time.Now().Add(wait); !lacks {
			continue
		}
		a.Archive.Begins(ended)
		if s.Leader == a.Replica || s.Leader == "" {
			continue
		}
		if err := a.copyArchive(ctx); err != nil {
			a.Log.Warn("records of ended jobs are not copied yet", zap.Error(err))
		}
	}
}

// How the archive is examined: each file after a pause, so that jobs do not wait for the disk,
// and all again after a rest.
const (
	examineFirst = time.Minute
	examineRest  = time.Hour
	examinePause = 500 * time.Millisecond
)

// examine reads the archive again and again, so that damage is found before somebody asks for a
// record.
func (a *Auctioneer) examine(ctx context.Context) {
	for rest := examineFirst; a.Archive != nil && sleep(ctx, rest); rest = examineRest {
		a.examineOnce(func() bool { return sleep(ctx, examinePause) })
	}
}

func (a *Auctioneer) examineOnce(pause func() bool) {
	if a.Archive.Examine(pause) {
		a.replica.lose()
	}
}

// lacking says whether records are missing here of jobs that the book remembers, or may be of
// earlier ones, and when the last of them ended. Records whose retention is over, or that the leader
// has not either, are not missed.
func (a *Auctioneer) lacking() (lacks bool, ended messages.Time) {
	a.replica.read(func(b *book.Book) { lacks, ended = a.replica.lacking(b) })
	return lacks || a.replica.damaged.Load(), ended
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

// copyArchive copies what the leader's archive has and this replica's has not.
func (a *Auctioneer) copyArchive(ctx context.Context) error {
	subject := messages.Subject(a.Site, messages.Auctioneer, messages.VerbArchive, messages.ServiceIdentity(messages.Auctioneer))
	before := a.Archive.About().Records
	var file []byte
	for r := (messages.ArchiveRequest{}); ; {
		within, cancel := context.WithTimeout(ctx, time.Minute)
		reply, err := bus.Call[messages.ArchiveReply](within, a.Bus, subject, r)
		cancel()
		if err != nil {
			return err
		}
		switch {
		case reply.Size == 0:
			a.replica.behind.Store(false)
			a.replica.damaged.Store(false)
			a.replica.nowhere.Store(int64(reply.Complete))
			if lacks, _ := a.lacking(); !lacks {
				a.Archive.Completed(reply.Complete)
			}
			a.Log.Info("copied records of ended jobs from the leader", zap.Int("records", a.Archive.About().Records-before))
			return nil
		case r.Offset > 0 && reply.Segment != r.Segment: // its time was over meanwhile
			file = nil
			r = messages.ArchiveRequest{Segment: reply.Segment}
			continue
		}
		file = append(file, reply.Data...)
		r = messages.ArchiveRequest{Segment: reply.Segment, Offset: int64(len(file))}
		if len(reply.Data) == 0 || r.Offset >= reply.Size {
			if err := a.Archive.Merge(file); err != nil {
				return err
			}
			file, r = nil, messages.ArchiveRequest{Segment: reply.Segment + 1}
		}
	}
}
