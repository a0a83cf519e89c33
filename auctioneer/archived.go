package auctioneer

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
)

// find finds the record of a job in the archive, if the caller may see the job. Otherwise it returns the error
// `missing`, which says that the job does not exist.
func (a *site) find(caller messages.Name, id messages.JobID, missing error) (e book.Ended, err error) {
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
	case r.Summary.Account != caller && !a.operates(caller): // the same answer as for a job that does not exist
		return e, a.unknown(id, missing)
	}
	if e, err = book.DecodeEnded(r.Body); err != nil {
		return e, fmt.Errorf("the record of job %d in the archive: %w", id, err)
	}
	return e, nil
}

// `missing` is the error for a job that does not exist. unknown adds possible reasons to it: the restore of a backup
// lost the job, or the job ended so long ago that the archive may not have it.
func (a *site) unknown(id messages.JobID, missing error) error {
	since, restored, last := messages.Time(0), messages.Time(0), messages.JobID(0)
	if a.Archive != nil {
		since = a.Archive.About().Complete
	}
	a.replica.read(func(b *book.Book) { last, restored = b.LastJob(), b.Backup() })
	switch {
	case id > last || since == 0 && restored == 0:
		return missing
	case restored != 0 && since == 0:
		return messages.Errorf(messages.NotFound, "there is no job %d: this site was restored to its state at %v, so the job is lost or never existed", id, restored)
	case restored != 0:
		return messages.Errorf(messages.NotFound, "there is no job %d: this site was restored to its state at %v, so the job is lost or never existed; or it ended before %v and its record is no longer kept", id, restored, since)
	}
	return messages.Errorf(messages.NotFound, "there is no job %d, or it ended before %v and its record is no longer kept; `candor statement` shows what the job cost", id, since)
}

const (
	lackFirst = time.Second
	lackMost  = 10 * time.Minute
)

// This replica's archive can lack records: after the replica got a snapshot, after a failed write, or after damage.
// complete copies the missing records from the leader.
func (a *site) complete(ctx context.Context) {
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
		if s.Leader != from { // another leader may have the records that the last one lacked
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

// These are the pauses of the method `examine`, which reads the files of the archive. It waits for the time
// examineFirst before the first file. It waits for examinePause after each file, so that jobs do not wait for the disk,
// and for examineRest when it has read all files.
const (
	examineFirst = time.Minute
	examineRest  = time.Hour
	examinePause = 500 * time.Millisecond
)

// examine reads all archive files in a loop, to find damage before a user asks for a record.
func (a *site) examine(ctx context.Context) {
	for rest := examineFirst; a.Archive != nil && sleep(ctx, rest); rest = examineRest {
		a.examineOnce(func() bool { return sleep(ctx, examinePause) })
	}
}

func (a *site) examineOnce(pause func() bool) {
	if a.Archive.Examine(pause) {
		a.replica.lose()
	}
}

// lacking reports whether this replica lacks records of ended jobs that the leader has, and when the last of these jobs
// ended. Records that are so old that the site no longer keeps them do not count.
func (a *site) lacking() (lacks bool, ended messages.Time) {
	a.replica.read(func(b *book.Book) { lacks, ended = a.replica.lacking(b) })
	return lacks || a.replica.damaged.Load(), ended
}

// copyArchive copies the records that the leader's archive has and this replica's archive lacks.
func (a *site) copyArchive(ctx context.Context) error {
	subject := messages.Subject(a.Site, messages.Auctioneer, messages.VerbArchive, messages.ServiceIdentity(messages.Auctioneer))
	before := a.Archive.About().Records
	var file []byte
	for r := (job.ArchiveRequest{}); ; {
		within, cancel := context.WithTimeout(ctx, time.Minute)
		reply, err := bus.Call[job.ArchiveReply](within, a.Bus, subject, r)
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
		case r.Offset > 0 && reply.Segment != r.Segment: // the file's retention ended after the last request
			file = nil
			r = job.ArchiveRequest{Segment: reply.Segment}
			continue
		}
		file = append(file, reply.Data...)
		r = job.ArchiveRequest{Segment: reply.Segment, Offset: int64(len(file))}
		if len(reply.Data) == 0 || r.Offset >= reply.Size {
			if err := a.Archive.Merge(file); err != nil {
				return err
			}
			file, r = nil, job.ArchiveRequest{Segment: reply.Segment + 1}
		}
	}
}
