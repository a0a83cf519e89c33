package bank

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/history"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/money"
	"github.com/candor-grid/candor/messages/siteclock"
)

// disked is a bank with a history of signed requests and transfers in files.
type disked struct {
	*bed
	keys *siteKeys
	dir  string
	ops  *bed
}

// onDisk returns a bank whose journal fills several files on disk.
func onDisk(t *testing.T) *disked {
	d := &disked{dir: t.TempDir()}
	d.bed, d.keys = provenBed(t, func(c *Config) { c.History, c.SegmentBytes = opened(t, d.dir), 4000 })
	d.ops = d.as(d.keys.issue("operator", "ops"), "ops")
	d.ops.grant("1", "alice", 1000*c)
	d.work("early", 20)
	return d
}

func opened(t *testing.T, dir string) history.Files {
	t.Helper()
	files, err := history.Directory(dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// work adds n grants and n holds, and trades with another site. The bank must check one signature for each grant, and
// one mark for each hold.
func (d *disked) work(name string, n int) {
	d.Helper()
	service := d.as(d.keys.issue("service", "$auctioneer"), "$auctioneer")
	for i := range n {
		id := fmt.Sprint(name, i)
		d.ops.grant(id, "bob", c)
		service.transfer(hold(id, "alice", c))
	}
}

// foreign returns an image that another replica made. This replica has kept no such image.
func (d *disked) foreign() []byte { return d.imageOf(d.bank.machine.ledger) }

// files copies the replica's files with these endings to a directory, and returns the directory.
func (d *disked) files(to string, endings ...string) string {
	d.Helper()
	return copyFiles(d.T, d.dir, to, endings...)
}

func copyFiles(t *testing.T, from, to string, endings ...string) string {
	t.Helper()
	for _, ending := range endings {
		found, err := filepath.Glob(filepath.Join(from, "*"+ending))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			content, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(filepath.Join(to, filepath.Base(path)), content, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return to
}

// These patterns match files: `shared` matches the files of segments, which are the same at all replicas. `sealed`
// matches the files of checked images, which each replica seals only for itself.
const (
	shared = ".segment"
	sealed = "checked-?"
)

// restarted is a replica that starts, and its log.
type restarted struct {
	*machine
	told *observer.ObservedLogs
}

// again starts a replica with the files of a directory.
func (d *disked) again(dir string, tune ...func(*Config)) *restarted {
	d.Helper()
	core, told := observer.New(zapcore.InfoLevel)
	config := Config{Site: "here", Replica: "a", Keys: d.keys, History: opened(d.T, dir), SegmentBytes: 4000, Log: zap.New(core), Clock: d.clock, Bus: d.network.Connect("bank")}
	for _, f := range tune {
		f(&config)
	}
	a, err := openArchive(d.Context(), &config, newMetrics())
	if err != nil {
		d.Fatal(err)
	}
	root, err := newRoot(&config)
	if err != nil {
		d.Fatal(err)
	}
	root.Seen = nil // forget which marks were checked, as in a new process
	m := newMachine(&config, newMetrics(), a, root, siteclock.NewSteady(d.clock, nil, still))
	a.machine = m
	d.Cleanup(func() {
		a.end()
		if err := a.close(); err != nil {
			d.Error(err)
		}
	})
	return &restarted{m, told}
}

// checks restores an image that must be accepted, and returns how many signatures and marks were checked.
func (r *restarted) checks(d *disked, image []byte) (n uint64) {
	d.Helper()
	r.told.TakeAll()
	if err := r.Restore(bytes.NewReader(image)); err != nil {
		d.Fatal(err)
	}
	for _, e := range r.told.FilterMessage("the journal is checked").All() {
		found := e.ContextMap()
		return found["requests checked now"].(uint64) + found["transfers checked now"].(uint64)
	}
	d.Fatal("nothing was checked")
	return 0
}

func (r *restarted) said(text string) bool {
	for _, e := range r.told.All() {
		if strings.Contains(e.Message, text) {
			return true
		}
	}
	return false
}

const (
	fromTheStart = "it checks the whole journal"
	notContinued = "checking the whole journal, because"
)

// TestARestartChecksOnlyNewRecords restarts a replica, which must check no signature of its own image. If the replica
// then gets the image of another replica, it must check only the signatures of records that it has not checked before.
func TestARestartChecksOnlyNewRecords(t *testing.T) {
	d := onDisk(t)
	trade(d.bed, d.keys)
	all := d.again(d.files(t.TempDir(), shared))
	if n := all.checks(d, d.foreign()); n < 40 || !all.said(fromTheStart) {
		t.Fatalf("a new replica checked %d signatures, want all", n)
	}
	own := d.image()
	dir := d.files(t.TempDir(), shared, sealed)
	r := d.again(dir)
	if n := r.checks(d, own); n != 0 || r.said(fromTheStart) {
		t.Errorf("its own image cost %d signatures, want 0", n)
	}
	starts := d.files(t.TempDir(), sealed)
	d.work("late", 10)
	d.setClock(d.clock() + 90_000_000)
	later := d.foreign()
	const few = 22 // 10 grants, 10 holds, and the session of the service
	if n := d.again(d.files(starts, shared)).checks(d, later); n < 20 || n > few {
		t.Errorf("after a start, 20 new requests cost %d signatures", n)
	}
	d.files(dir, shared)
	if n := r.checks(d, later); n < 20 || n > few {
		t.Errorf("at a running replica, 20 new requests cost %d signatures", n)
	}
	if r.hash() != d.bank.Hash() {
		t.Error("the states differ")
	}
	if n := d.again(dir).checks(d, later); n != 0 {
		t.Errorf("the image of another replica cost %d signatures at the next start", n)
	}
	d.image()
	d.work("last", 1)
	d.image() // this image was begun but not stored, as if the process had ended before
	if n := d.again(d.files(t.TempDir(), shared, sealed)).checks(d, later); n != 0 {
		t.Errorf("the image before the last one cost %d signatures", n)
	}
}

// forger has a copy of the journal, and adds records that nobody signed.
type forger struct {
	*ledger.Ledger
	dir     string
	refusal string // part of the error with which a replica refuses the forger's image
}

func (d *disked) forger() *forger {
	d.Helper()
	f := &forger{dir: d.files(d.TempDir(), shared)}
	f.Ledger = ledger.Open(history.New(opened(d.T, f.dir), 4000, nil))
	f.Trust(d.bank.machine.root)
	var sound bytes.Buffer
	if _, err := d.bank.machine.ledger.Capture().WriteTo(&sound); err != nil {
		d.Fatal(err)
	}
	if _, err := f.RestoreWith(&sound, ledger.Checking{Settles: clearing.Again("here")}); err != nil {
		d.Fatal(err)
	}
	return f
}

func (f *forger) grants(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		command := ledger.Command{Verb: ledger.Grant, At: f.Now(), By: "ops", Within: true, Grant: money.GrantRequest{Key: fmt.Sprint("forged", i), Account: "bob", Amount: c}}
		if r := f.ApplyOwn(command.Encode()); r.Error != nil {
			t.Fatal(r.Error)
		}
	}
}

// An attacker adds grants that nobody signed to an image. In one image they come after the records that a replica has
// checked, in another image among these records. A replica that starts and a replica that runs must both refuse both
// images.
func TestAForgedRecordIsFoundAfterWhatWasChecked(t *testing.T) {
	d := onDisk(t)
	among := d.forger()
	among.grants(t, 40) // more records than the replica has checked when it gets this image
	d.work("more", 5)
	own := d.image()
	after := d.forger()
	after.grants(t, 2)
	after.refusal = "has no cause that was signed"
	among.refusal = "the fetched file has other records" // the replica has fetched its own, correct files again
	for name, f := range map[string]*forger{"after": after, "among": among} {
		forged := d.imageOf(f.Ledger)
		dir := d.files(t.TempDir(), shared, sealed)
		copyFiles(t, f.dir, dir, shared)
		starts := d.again(dir)
		if err := starts.Restore(bytes.NewReader(forged)); err == nil {
			t.Errorf("%s the checked records: a replica starts with it", name)
		} else if !strings.Contains(err.Error(), f.refusal) {
			t.Errorf("%s the checked records: refused with %v, want %q", name, err, f.refusal)
		}
		dir = d.files(t.TempDir(), shared, sealed)
		runs := d.again(dir)
		runs.checks(d, own)
		was := runs.hash()
		copyFiles(t, f.dir, dir, shared)
		if err := runs.Restore(bytes.NewReader(forged)); err == nil || runs.hash() != was {
			t.Errorf("%s the checked records: a running replica takes it (%v)", name, err)
		}
		if !starts.said(notContinued) || !runs.said(notContinued) {
			t.Errorf("%s the checked records: the log does not say that everything was checked again", name)
		}
	}
}

// TestAnAlteredImageIsRefusedWhereAllRecordsAreKnown flips bits of an image whose records the replica has all checked.
// The replica must keep its state.
func TestAnAlteredImageIsRefusedWhereAllRecordsAreKnown(t *testing.T) {
	d := onDisk(t)
	own := d.image()
	r := d.again(d.files(t.TempDir(), shared, sealed))
	r.checks(d, own)
	was := r.hash()
	begin := bytes.Index(own, []byte("candor-ledger-")) + 64 // skip the time, the number of records and their hash
	for i := begin; i < len(own)-32; i += 41 {
		image := bytes.Clone(own)
		image[i] ^= 1
		resum(image)
		if err := r.Restore(bytes.NewReader(image)); err == nil || r.hash() != was {
			t.Errorf("byte %d of %d was changed, and it is believed (%v)", i, len(image), err)
		}
	}
}

// TestOnlyItsOwnSealIsBelieved checks that a replica trusts only a seal that it has made itself for a checked image. If
// the seal's files are damaged or missing, come from another replica, or are sealed with an earlier key, the replica
// must check every record.
func TestOnlyItsOwnSealIsBelieved(t *testing.T) {
	d := onDisk(t)
	own := d.image()
	all := d.again(d.files(t.TempDir(), shared)).checks(d, own)
	each := func(change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			names, _ := filepath.Glob(filepath.Join(dir, sealed))
			if len(names) == 0 {
				t.Fatal("nothing was sealed")
			}
			for _, name := range names {
				content, err := os.ReadFile(name)
				if err == nil {
					err = os.WriteFile(name, change(content), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	later := []messages.Succession{{Key: newSiteKeys(t).AccountKey()}}
	for name, one := range map[string]struct {
		harm func(*testing.T, string)
		tune func(*Config)
	}{
		"a flipped bit in the image": {harm: each(func(b []byte) []byte { b[len(b)-100] ^= 1; return b })},
		"a flipped bit in the seal":  {harm: each(func(b []byte) []byte { b[30] ^= 1; return b })},
		"cut":                        {harm: each(func(b []byte) []byte { return b[:len(b)/2] })},
		"empty":                      {harm: each(func([]byte) []byte { return nil })},
		"of another replica":         {tune: func(c *Config) { c.Replica = "b" }},
		"of another key":             {tune: func(c *Config) { c.Keys = succeeded{c.Keys, later} }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := d.files(t.TempDir(), shared, sealed)
			if one.harm != nil {
				one.harm(t, dir)
			}
			if one.tune == nil {
				one.tune = func(*Config) {}
			}
			r := d.again(dir, one.tune)
			if n := r.checks(d, own); n != all || !r.said(fromTheStart) {
				t.Errorf("%d signatures were checked, want %d", n, all)
			}
			if n := d.again(dir, one.tune).checks(d, own); n != 0 {
				t.Errorf("after a whole check, the next start checked %d signatures", n)
			}
		})
	}
}

// succeeded is for tests in which a later key has replaced the site's account key. It has the site's keys, and the
// signed statements of this replacement.
type succeeded struct {
	Keys
	links []messages.Succession
}

func (s succeeded) Succession() []messages.Succession { return s.links }

// interrupted opens files. Just before it opens the n-th file whose name ends in the constant `shared`, it calls the
// function in the field `call`.
type interrupted struct {
	history.Files
	n    atomic.Int64
	call func()
}

func (o *interrupted) Open(name string) (history.File, error) {
	if strings.HasSuffix(name, shared) && o.n.Add(-1) == 0 {
		o.call()
	}
	return o.Files.Open(name)
}

// A replica that checks a journal is told to stop. It must stop at once, and not first finish the check.
func TestAStopEndsACheck(t *testing.T) {
	d := onDisk(t)
	image := d.foreign()
	start := func(ctx context.Context, call func(), open func(mailbox.Machine) (mailbox.Mailbox, error)) (*Bank, error) {
		files := &interrupted{Files: opened(t, d.files(t.TempDir(), shared)), call: call}
		files.n.Store(4)
		return Start(ctx, Config{Site: "here", Replica: "a", Keys: d.keys, History: files, SegmentBytes: 4000, Bus: d.network.Connect("bank"), Metrics: prometheus.NewRegistry(),
			Clock: d.clock, Mono: still, Open: open})
	}
	stops := func(err error) bool {
		return messages.KindOf(err) == messages.Unavailable && strings.Contains(err.Error(), "the replica stops; ")
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := start(ctx, cancel, func(m mailbox.Machine) (mailbox.Mailbox, error) { return nil, m.Restore(bytes.NewReader(image)) })
	if !stops(err) {
		t.Errorf("a start that was cancelled ended with %v", err)
	}

	var b *Bank
	var machine mailbox.Machine
	closed := make(chan error, 1)
	b, err = start(t.Context(), func() {
		go func() { closed <- b.Close() }()
		<-b.archive.life.Done()
	}, func(m mailbox.Machine) (mailbox.Mailbox, error) {
		machine = m
		return mailbox.NewMemory(m), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := machine.Restore(bytes.NewReader(image)); !stops(err) {
		t.Errorf("a check of a replica that closes ended with %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
