package bank

import (
	"context"
	"encoding/hex"
	"errors"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/bank/history"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/beat"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/money"
)

// archive stores a replica's journal, and the checkpoints of the journal.
type archive struct {
	files       history.Files    // nil if the journal is in memory
	store       *history.Store   // nil if the journal is in memory
	checked     *history.Checked // images that this replica has checked; nil if there are none, or no keys to check with
	checkpoints *history.Checkpoints
	config      *Config
	machine     *machine      // has the journal
	unsigned    messages.Time // time of the first record after the last checkpoint; 0 if there is none

	life context.Context // ends the requests to other replicas, and the check of an image
	end  func()
}

func openArchive(ctx context.Context, c *Config, m *metrics) (*archive, error) {
	checkpoints, err := history.ReadCheckpoints(c.History)
	if err != nil {
		return nil, err
	}
	if err := checkpoints.Damaged(); err != nil {
		c.Log.Error("checkpoints are damaged", zap.String("file", filepath.Join(messages.Bank, c.Replica, "history", history.CheckpointsFile)), zap.Error(err))
	}
	a := &archive{files: c.History, checkpoints: checkpoints, config: c}
	a.life, a.end = context.WithCancel(ctx)
	if c.History != nil && c.Keys != nil {
		a.checked = history.NewChecked(c.History, func() ([]byte, error) { return sealingKey(c) })
	}
	if c.History != nil {
		a.store = history.New(c.History, c.SegmentBytes, fetcher(a.life, c))
		m.damages(a.store)
	}
	return a, nil
}

func (a *archive) ledger() *ledger.Ledger {
	if a.store == nil {
		return ledger.New()
	}
	return ledger.Open(a.store)
}

// The records after the last full segment are only in the log and in memory. saveTail also writes them to a file, for
// programs that read the files of the journal.
func (a *archive) saveTail(img *ledger.Image) error {
	if a.store == nil {
		return nil
	}
	return a.store.SaveTail(img.Tail())
}

// keep stores an image whose records this replica has checked. If the image cannot be stored, the next start takes
// longer, because it checks the records again.
func (a *archive) keep(image []byte) {
	if a.checked == nil {
		return
	}
	if err := a.checked.Keep(image); err != nil {
		a.config.Log.Warn("cannot store which records of the journal were checked: the next start checks these records again", zap.Error(err))
	}
}

func (a *archive) close() error {
	if a.store == nil {
		return nil
	}
	return a.store.Close()
}

// fetchWithin is the time limit for fetching a segment's file (some megabytes). askWithin is the limit for one part.
const (
	fetchWithin = time.Minute
	askWithin   = 2 * time.Second
)

// fetcher returns a function that fetches a segment from the leader. If the leader does not answer, the function asks
// the other replicas: a new leader may wait for this replica before it can answer. The store that uses the function
// fetches one file at a time, and checks the hash of each file.
func fetcher(life context.Context, c *Config) func(ledger.Sum) ([]byte, error) {
	subjects := []string{messages.Subject(c.Site, messages.Bank, money.VerbSegment, messages.ServiceIdentity(messages.Bank))}
	for _, id := range c.Replicas {
		if id != c.Replica {
			subjects = append(subjects, filesSubject(c.Site, id))
		}
	}
	return func(sum ledger.Sum) (file []byte, err error) {
		ctx, cancel := context.WithTimeout(life, fetchWithin)
		defer cancel()
		for i, subject := range subjects {
			var failed error
			if file, failed = fetch(ctx, c, subject, sum.First); failed == nil {
				subjects[0], subjects[i] = subject, subjects[0] // ask this replica first for the next file
				c.Log.Info("fetched a file of the bank's history from another replica", zap.Uint64("first", sum.First), zap.Int("bytes", len(file)))
				return file, nil
			}
			if err == nil || messages.KindOf(failed).Retriable() { // the replica that was asked may have the file later
				err = failed
			}
		}
		return nil, err
	}
}

func fetch(ctx context.Context, c *Config, subject string, first uint64) (file []byte, err error) {
	for {
		ctx, cancel := context.WithTimeout(ctx, askWithin)
		r, err := bus.Call[money.SegmentReply](ctx, c.Bus, subject, money.SegmentRequest{First: first, Offset: int64(len(file))})
		cancel()
		if err != nil {
			return nil, err
		}
		file = append(file, r.Data...)
		if len(r.Data) == 0 || int64(len(file)) >= r.Size {
			return file, nil
		}
	}
}

// filesSubject returns the subject on which a replica of the bank, leading or not, sends files of its journal to other
// replicas.
func filesSubject(site messages.Name, replica string) string {
	return messages.Subject(site, messages.Bank, money.VerbSegment+"-"+replica, messages.ServiceIdentity(messages.Bank))
}

// give sends files to other replicas until the returned service is stopped.
func (a *archive) give() (bus.Subscription, error) {
	return a.config.Bus.Serve(bus.Service{
		Name: "candor-bank-files", Version: serviceVersion, Description: "Files of the journal for other replicas of the bank of site " + a.config.Site,
		Endpoints: []bus.Endpoint{{Name: money.VerbSegment, Subject: filesSubject(a.config.Site, a.config.Replica),
			Handle: bus.Handle(money.VerbSegment, func(_ context.Context, _ messages.Name, r money.SegmentRequest) (money.SegmentReply, error) {
				if err := r.Validate(); err != nil {
					return money.SegmentReply{}, err
				}
				return a.part(r)
			})}},
	})
}

// The replica examines the journal's files in turn. After each file it pauses (examinePause), because requests must not
// wait for the disk. After the last file it waits longer (examineRest).
const (
	examinePause = 50 * time.Millisecond
	examineRest  = time.Hour
	mendEvery    = time.Second
)

// examine reads the journal's files in a loop, to find damage before the records are needed. A leader with a damaged
// file hands leadership over, because damaged files are fetched from the leader.
func (a *archive) examine(ctx context.Context) {
	for {
		h := read(a.machine, (*ledger.Ledger).History)
		for _, s := range h.Segments() {
			if _, err := s.Segment(); err != nil {
				a.config.Log.Error("the bank's history is damaged; will try again to fetch it from the replica that leads", zap.Error(err))
			}
			if !pause(ctx, examinePause) {
				return
			}
		}
		if !pause(ctx, examineRest) {
			return
		}
	}
}

// mend tries at intervals to fetch the files that could not be fetched before.
func (a *archive) mend(ctx context.Context) {
	for pause(ctx, beat.Until(mendEvery)) {
		a.store.Mend()
	}
}

// part returns a part of a segment's file for another replica. Before the first part, it checks the whole file, because
// the other replica does not report whether it received the right bytes.
func (a *archive) part(r money.SegmentRequest) (reply money.SegmentReply, err error) {
	h := read(a.machine, (*ledger.Ledger).History)
	for _, s := range h.Segments() {
		if sum := s.Sum(); r.Offset == 0 && sum.First == r.First {
			if err := a.store.Check(sum); err != nil {
				return reply, err
			}
		}
	}
	reply.Data, reply.Size, err = history.Part(a.files, r.First, r.Offset, pageBytes)
	return reply, err
}

// pause waits for d. It returns false when ctx ends.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func (a *archive) sign() error {
	if a.config.Signer == nil {
		return messages.Errorf(messages.NotFound, "this bank has no key for signing checkpoints, because it runs without the site's identity")
	}
	var h ledger.History
	var now messages.Time
	a.machine.read(func(l *ledger.Ledger) { h, now = l.History(), l.Now() })
	if last, ok := a.checkpoints.Last(); h.Count() == 0 || ok && last.Records >= h.Count() {
		return nil
	}
	head := h.Head()
	c, err := history.Sign(a.config.Signer, money.Checkpoint{Site: a.config.Site, Records: h.Count(), Head: hex.EncodeToString(head[:]), At: now})
	if err != nil {
		return err
	}
	if !read(a.machine, func(l *ledger.Ledger) bool { return l.Follows(c.Succession, c.Records) }) {
		return messages.Errorf(messages.Unproven, "the site's account key on this host was retired, and cannot endorse a checkpoint: copy the site's present keys directory to this host")
	}
	return a.checkpoints.Add(c)
}

// A replica signs a checkpoint when 10,000 records have no checkpoint yet, or one minute after the first of them. A
// checkpoint takes 0.15 ms and 310 bytes (BenchmarkCheckpoint).
const (
	checkpointEvery = 10_000
	checkpointAfter = time.Minute
)

func (a *archive) signIfDue() {
	if a.config.Signer == nil {
		return
	}
	last, _ := a.checkpoints.Last()
	records, now := read(a.machine, (*ledger.Ledger).Totals).Records, a.config.Clock()
	switch {
	case records <= last.Records:
		a.unsigned = 0
		return
	case a.unsigned == 0:
		a.unsigned = now
	}
	if records < last.Records+checkpointEvery && now.Sub(a.unsigned).Std() < checkpointAfter {
		return
	}
	if err := a.sign(); err != nil {
		a.config.Log.Warn("cannot sign a checkpoint; will try again", zap.Error(err))
		return
	}
	a.unsigned = 0 // the next record waits a minute for its checkpoint
}

// save signs a last checkpoint, writes the end of the journal to the files, and closes them.
func (a *archive) save() error {
	var signed error
	if a.config.Signer != nil {
		signed = a.sign()
	}
	return errors.Join(signed, a.saveTail(read(a.machine, (*ledger.Ledger).Capture)), a.close())
}
