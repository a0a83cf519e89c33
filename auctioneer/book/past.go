package book

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Past is what the book still knows of a job whose record is in the archive: enough to
// answer a repeated submission, and to know whether other jobs may wait for the job.
type Past struct {
	ID      messages.JobID
	Account messages.Name
	Key     string
	Digest  []byte
	Payer   messages.Name
	Market  messages.Name
	Held    messages.Credits
	Tasks   int
	Outcome messages.State
	Ended   messages.Time
	Peer    messages.Name // that ran the job; "": this site
	Chosen  string        // why the peer ran it
}

// Ended is the record of a job that has ended. One of the fields is set.
type Ended struct {
	Job    *Job
	Remote *RemoteJob
}

// archive takes the records of ended jobs that leave the book. It is no part of the state.
type archive struct {
	whole int // records of ended jobs that stay, of each kind
	take  func(Ended)
}

// Archive has f called with each record that leaves the book, in the same order on every
// replica; after a restart again with those that left since the image. The record must not be changed.
func (b *Book) Archive(f func(Ended)) { b.archive.take = f }

func (a *archive) add(e Ended) {
	if a.take != nil {
		a.take(e)
	}
}

// Past returns what is known of a job whose record has left the book, nil if there is no
// such job. It must not be changed.
func (b *Book) Past(id messages.JobID) *Past {
	if p := b.jobs.past[id]; p != nil {
		return p
	}
	return b.remote.past[id]
}

// EachPast calls yield for each job whose record has left the book, in no particular order.
func (b *Book) EachPast(yield func(*Past) bool) {
	for _, all := range []map[messages.JobID]*Past{b.jobs.past, b.remote.past} {
		for _, p := range all {
			if !yield(p) {
				return
			}
		}
	}
}

// Entered is what the book knows of the job that an account submitted under a key,
// wherever its record is; nil if there is no such job.
func (b *Book) Entered(account messages.Name, key string) *Past {
	id := b.index.find(account, key)
	if j := b.Job(id); j != nil {
		return j.brief()
	}
	if r := b.Remote(id); r != nil {
		return r.brief()
	}
	return b.Past(id)
}

func (j *Job) brief() *Past {
	r := j.Receipt()
	return &Past{ID: j.ID, Account: j.Account, Key: j.Key, Digest: j.Digest, Payer: j.Payer, Market: r.Market, Held: j.Held, Tasks: r.Tasks,
		Outcome: j.Outcome, Ended: j.Ended}
}

func (r *RemoteJob) brief() *Past {
	p := r.Receipt()
	return &Past{ID: r.ID, Account: r.Account, Key: r.Key, Digest: r.Digest, Payer: r.Payer, Market: r.Spec.Market, Held: p.Held, Tasks: p.Tasks,
		Outcome: r.Status.State, Ended: r.Status.Ended, Peer: r.Peer, Chosen: r.Chosen}
}

// archiveOldest hands over the records of ended jobs, but for the latest. The first job of which
// an effect speaks, or of which a node still has a task, stays, with all that ended after it;
// jobs of other sites stay, as these ask for them. What is handed over follows from the rest of the state
// alone, so that an image of a book that kept all records leads to the same state.
func (s *endings) archiveOldest() {
	most := len(s.jobs.ended) - s.archive.whole
	for ; s.jobs.handed < most; s.jobs.handed++ {
		j := s.jobs.Job(s.jobs.ended[s.jobs.handed])
		if j == nil || j.Visit != nil {
			continue
		}
		if s.effects.speaks(j.ID) || j.claimed() {
			return
		}
		s.archive.add(Ended{Job: j})
		s.jobs.past[j.ID] = j.brief()
		s.jobs.byID.remove(j.ID)
		s.index.drop(j.Account, j.Key) // that may be a part of the job as it was packed
		s.index.recall(j.Account, j.Key, j.ID)
		s.index.unlist(j.Account, j.ID)
		s.watch.touch(j.ID)
	}
}

// claimed says whether a node still has a task of the job.
func (j *Job) claimed() bool {
	return slices.ContainsFunc(j.Stages, func(s Stage) bool { return s.Running > 0 })
}

// archiveOldest hands over the records of remote jobs that are over, but for the latest.
func (b *remote) archiveOldest() {
	for ; b.handed < len(b.returned)-b.archive.whole; b.handed++ {
		r := b.remoteJobs[b.returned[b.handed]]
		if r == nil {
			continue
		}
		b.archive.add(Ended{Remote: r})
		b.past[r.ID] = r.brief()
		delete(b.remoteJobs, r.ID)
		b.index.unlist(r.Account, r.ID)
		b.watch.touch(r.ID)
	}
}

// Encode writes a record as [DecodeEnded] reads it: as in an image.
func (e Ended) Encode() (out []byte, err error) {
	im := Image{}
	if e.Job != nil {
		im.Jobs = []*Job{e.Job}
	} else {
		im.RemoteJobs = []RemoteJob{*e.Remote}
	}
	im.elements(func(one Image) bool {
		var data []byte
		if data, err = messages.Marshal(&one, messages.Msgpack); err == nil {
			out = append(binary.AppendUvarint(out, uint64(len(data))), data...)
		}
		return err == nil
	})
	return out, err
}

// DecodeEnded reads a record.
func DecodeEnded(data []byte) (e Ended, err error) {
	im := Image{Head: new(imageHead)}
	for r := bufio.NewReader(bytes.NewReader(data)); ; {
		if _, err := r.Peek(1); err != nil {
			break
		}
		var one Image
		if err := readRecord(r, &one); err != nil {
			return e, err
		}
		if err := im.add(&one); err != nil {
			return e, err
		}
	}
	switch {
	case len(im.Jobs) == 1:
		im.Jobs[0].Kept.shareDetails()
		return Ended{Job: im.Jobs[0]}, nil
	case len(im.RemoteJobs) == 1:
		return Ended{Remote: &im.RemoteJobs[0]}, nil
	}
	return e, fmt.Errorf("a record of %d jobs", len(im.Jobs)+len(im.RemoteJobs))
}
