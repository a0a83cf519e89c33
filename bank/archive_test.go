package bank

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/bank/history"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/money"
)

// archived returns a group whose replicas have small files and cut their logs early.
func archived(t *testing.T) *cluster {
	dirs := map[string]history.Files{}
	base := t.TempDir()
	for _, id := range []string{"a", "b", "c"} {
		files, err := history.Directory(filepath.Join(base, id))
		if err != nil {
			t.Fatal(err)
		}
		dirs[id] = files
	}
	g := startTuned(t, func(id string, c *Config, log *mailbox.Config) {
		c.History, c.SegmentBytes = dirs[id], 4000
		log.SnapshotBytes, log.TrailingEntries = 2000, 1
	})
	g.history = base
	return g
}

func (g *cluster) segments(id string) map[string][]byte {
	g.Helper()
	entries, err := os.ReadDir(filepath.Join(g.history, id))
	if err != nil {
		g.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".segment") {
			if files[e.Name()], err = os.ReadFile(filepath.Join(g.history, id, e.Name())); err != nil {
				g.Fatal(err)
			}
		}
	}
	return files
}

// agree waits until all running replicas have the same state.
func (g *cluster) agree() {
	g.Helper()
	deadline := time.After(patience)
	for {
		hashes := map[[32]byte]bool{}
		for _, bank := range g.running {
			hashes[bank.Hash()] = true
		}
		if len(hashes) == 1 {
			return
		}
		select {
		case <-deadline:
			g.Fatalf("the replicas differ: %v", hashes)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// work makes n holds on ada's account, and charges each of them.
func (g *cluster) work(name string, n int) {
	g.Helper()
	for i := range n {
		id := fmt.Sprint(name, i)
		r := g.transfer(hold(id, "ada", 3), post(id+"/c", id, 2))
		if r.Results[0].Error != nil || r.Results[1].Error != nil {
			g.Fatalf("%+v", r)
		}
	}
}

// The replica `late` is stopped. outgrow makes the leader cut its log, so that the log no longer has the entries that
// this replica needs. The replica then needs a snapshot and files of the journal instead.
func (g *cluster) outgrow(leader, late string) {
	g.Helper()
	had := len(g.segments(late))
	snapshots := func() int {
		found, _ := filepath.Glob(filepath.Join(g.dir, leader, "snapshots", "*", "state.bin"))
		return len(found)
	}
	deadline := time.Now().Add(patience)
	for round := 0; snapshots() < 2 || len(g.segments(leader)) < had+3; round++ {
		g.work(fmt.Sprint("late", round, "/"), 20)
		if time.Now().After(deadline) {
			g.Fatalf("%d snapshots, %d files", snapshots(), len(g.segments(leader)))
		}
	}
}

// TestLateReplicaFetchesTheHistory stops a replica. Meanwhile the other replicas cut the part of their logs that the
// stopped replica needs. When it starts again, it must get a snapshot and fetch the missing files.
func TestLateReplicaFetchesTheHistory(t *testing.T) {
	g := archived(t)
	g.grant("ada", 100_000)
	g.work("early", 20)
	leader := g.leader()
	late := map[string]string{"a": "b", "b": "c", "c": "a"}[leader]
	g.stop(late)
	g.outgrow(leader, late)
	g.start(late)
	g.agree()
	want := g.segments(leader)
	g.same(late, want)

	g.stop(late)
	first := slices.Min(slices.Collect(maps.Keys(want)))
	if err := os.Remove(filepath.Join(g.history, late, first)); err != nil {
		t.Fatal(err)
	}
	g.start(late)
	g.agree()
	g.same(late, want)
}

// One of three replicas is late, and one is stopped. The leader needs the late replica to commit anything. The late
// replica must first get files of the history, which it can get only from the leader. So the leader must send files
// even before it can commit, when it serves no other requests.
func TestLateReplicaAndOneOther(t *testing.T) {
	g := archived(t)
	g.grant("ada", 100_000)
	g.work("early", 20)
	leader := g.leader()
	late := map[string]string{"a": "b", "b": "c", "c": "a"}[leader]
	g.stop(late)
	g.outgrow(leader, late)
	for id := range g.running {
		if id != leader {
			g.stop(id)
		}
	}
	g.stop(leader)
	g.start(leader)
	g.start(late)
	g.work("after", 1)
	g.agree()
	g.same(late, g.segments(leader))
}

// TestDamagedHistoryIsFetched damages every file of a stopped replica. After its restart, the replica must find the
// damage even if nobody reads the records. It must get the files from the leader.
func TestDamagedHistoryIsFetched(t *testing.T) {
	g := archived(t)
	g.grant("ada", 100_000)
	g.work("early", 60)
	leader := g.leader()
	id := map[string]string{"a": "b", "b": "c", "c": "a"}[leader]
	g.agree()
	want := g.segments(leader)
	for name, damage := range map[string]func([]byte) []byte{
		"flipped": func(b []byte) []byte { b[len(b)/3] ^= 1; return b },
		"zeroed":  func(b []byte) []byte { clear(b[len(b)/4 : len(b)/3]); return b },
		"cut":     func(b []byte) []byte { return b[:len(b)/2] },
	} {
		g.stop(id)
		for file := range g.segments(id) {
			if err := os.WriteFile(filepath.Join(g.history, id, file), damage(bytes.Clone(want[file])), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		g.start(id)
		await.Until(t, name+" files are as the leader's", func() bool { return maps.EqualFunc(g.segments(id), want, bytes.Equal) })
	}
}

// TestDamagedHistoryOfALeader damages a history file of the leader, and removes the same file from a second replica.
// Both replicas must copy the file from the third replica.
func TestDamagedHistoryOfALeader(t *testing.T) {
	g := archived(t)
	g.grant("ada", 100_000)
	g.work("early", 60)
	leader := g.leader()
	id := map[string]string{"a": "b", "b": "c", "c": "a"}[leader]
	g.agree()
	want := g.segments(leader)
	file := slices.Min(slices.Collect(maps.Keys(want)))
	bad := bytes.Clone(want[file])
	bad[len(bad)/3] ^= 1
	if err := os.WriteFile(filepath.Join(g.history, leader, file), bad, 0o600); err != nil {
		t.Fatal(err)
	}
	g.stop(id)
	if err := os.Remove(filepath.Join(g.history, id, file)); err != nil {
		t.Fatal(err)
	}
	// ask the leader for the damaged file, as the replica `id` may do at its start
	if _, err := g.running[leader].archive.part(money.SegmentRequest{First: 1}); err == nil {
		t.Error("a damaged file was given away")
	}
	await.Until(t, "it starts", func() bool { return g.tryStart(id) == nil }) // a service manager would also start it again
	await.Until(t, "both have the file", func() bool {
		return bytes.Equal(g.segments(leader)[file], want[file]) && bytes.Equal(g.segments(id)[file], want[file])
	})
	g.agree()
}

func (g *cluster) same(id string, want map[string][]byte) {
	g.Helper()
	got := g.segments(id)
	for name, b := range want {
		if !bytes.Equal(got[name], b) {
			g.Fatalf("replica %s: file %s has %d bytes, and the leader's %d, or others", id, name, len(got[name]), len(b))
		}
	}
}

func emptyStore(t *testing.T) ledger.Store {
	t.Helper()
	files, err := history.Directory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return history.New(files, history.SegmentBytes, nil)
}

// TestJournalQuery reads the journal page by page and checks the chain, the sums, the standings, and the signatures.
func TestJournalQuery(t *testing.T) {
	signer, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	b := startWith(t, func(c *Config) { c.Signer = signer })
	b.grant("g", "ada", 1000)
	b.transfer(hold("h", "ada", 10), post("c", "h", 4), hold("open", "ada", 5))
	checkpoints := must[money.CheckpointsReply](b, "ops", money.VerbCheckpoints, money.CheckpointsRequest{Sign: true})
	b.transfer(hold("h2", "ada", 10))

	v := ledger.NewVerifier(emptyStore(t))
	var last money.JournalReply
	var after uint64
	for pages := 1; pages == 1 || last.More; pages++ {
		last = must[money.JournalReply](b, "ops", money.VerbJournal, money.JournalRequest{After: after, Limit: 2, Standings: true})
		for _, r := range last.Records {
			if err := v.Add(r.Data); err != nil {
				t.Fatal(err)
			}
			after = r.Number
			if head := v.Head(); after == checkpoints.Checkpoints[0].Records && hex.EncodeToString(head[:]) != checkpoints.Checkpoints[0].Head {
				t.Fatal("the checkpoint is of another history")
			}
		}
	}
	if err := v.End(); err != nil {
		t.Fatal(err)
	}
	head := v.Head()
	if v.Count() != 6 || last.Count != 6 || last.Head != hex.EncodeToString(head[:]) || fmt.Sprint(v.Standings()) != fmt.Sprint(last.Standings) || !v.Totals().Balanced {
		t.Fatalf("%d records, %+v, want %+v", v.Count(), v.Standings(), last)
	}
	c := checkpoints.Checkpoints[0]
	if len(checkpoints.Checkpoints) != 1 || c.Records != 5 || history.Verify(&c) != nil {
		t.Fatalf("%+v", checkpoints)
	}
	for _, alter := range []func(){func() { c.Records++ }, func() { c.Site = "else" }, func() { c.Head = "00" }, func() { c.At++ }} {
		if alter(); history.Verify(&c) == nil {
			t.Errorf("an altered checkpoint verifies: %+v", c)
		}
		c = checkpoints.Checkpoints[0]
	}
	again := must[money.CheckpointsReply](b, "ops", money.VerbCheckpoints, money.CheckpointsRequest{After: 5, Sign: true})
	if len(again.Checkpoints) != 1 || again.Checkpoints[0].Records != 6 || again.More {
		t.Fatalf("%+v", again)
	}
}

func TestCheckpointIsSignedAMinuteAfterARecord(t *testing.T) {
	signer, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	b := startWith(t, func(c *Config) { c.Signer = signer })
	last := func() (records uint64) {
		for _, c := range must[money.CheckpointsReply](b, "ops", money.VerbCheckpoints, money.CheckpointsRequest{}).Checkpoints {
			records = c.Records
		}
		return records
	}
	now := b.clock()
	for i, key := range []string{"one", "two"} {
		before := last()
		b.grant(key, "ada", 1000)
		if got := last(); got != before {
			t.Errorf("a checkpoint of %d records was signed at once", got)
		}
		records := must[money.JournalReply](b, "ops", money.VerbJournal, money.JournalRequest{}).Count
		await.Until(t, "a checkpoint has all records", func() bool {
			now += messages.Time(checkpointAfter.Microseconds())
			b.setClock(now)
			return last() == records
		})
		if i == 0 && before != 0 {
			t.Errorf("%d records were signed before there were any", before)
		}
	}
}

// TestPagesOfTheJournalAreChained checks that each page has the hash before its first record. Without it, a page could
// not be checked alone.
func TestPagesOfTheJournalAreChained(t *testing.T) {
	files, err := history.Directory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := startWith(t, func(c *Config) { c.History, c.SegmentBytes = files, 500 })
	b.grant("g", "ada", 1000)
	for i := range 6 {
		b.transfer(hold(fmt.Sprint("h", i), "ada", 10))
	}
	head := make([]byte, sha256.Size)
	for after := uint64(0); ; after++ {
		page := must[money.JournalReply](b, "ops", money.VerbJournal, money.JournalRequest{After: after, Limit: 1})
		if page.Before != hex.EncodeToString(head) {
			t.Fatalf("the page after record %d has %q before it, want %x", after, page.Before, head)
		}
		if len(page.Records) == 0 {
			if after == 0 || page.Head != page.Before {
				t.Fatalf("the journal ends at %d with %q, and %q before it", after, page.Head, page.Before)
			}
			return
		}
		next := sha256.Sum256(append(head, page.Records[0].Data...))
		head = next[:]
	}
}

func TestJournalIsNotForEverybody(t *testing.T) {
	b := start(t)
	b.grant("g", "ada", 1000)
	b.refused(messages.PermissionDenied, "ada", money.VerbJournal, money.JournalRequest{})
	b.refused(messages.PermissionDenied, "ada", money.VerbCheckpoints, money.CheckpointsRequest{})
	b.refused(messages.PermissionDenied, "ada", money.VerbSegment, money.SegmentRequest{First: 1})
	b.refused(messages.Invalid, "ops", money.VerbJournal, money.JournalRequest{Limit: -1})
	b.refused(messages.Invalid, "ops", money.VerbSegment, money.SegmentRequest{})
	b.refused(messages.NotFound, "ops", money.VerbSegment, money.SegmentRequest{First: 1})
	b.refused(messages.NotFound, "ops", money.VerbCheckpoints, money.CheckpointsRequest{Sign: true})
	for _, after := range []uint64{2, 1000, math.MaxUint64 - 1, math.MaxUint64} {
		if r := must[money.JournalReply](b, "ops", money.VerbJournal, money.JournalRequest{After: after}); len(r.Records) != 0 || r.More {
			t.Errorf("beyond the end: %+v", r)
		}
	}
}

var errDisk = errors.New("the disk failed")

// failing is a set of files. After the test has set the field `failed`, writes to these files fail.
type failing struct {
	history.Files
	failed atomic.Bool
}

func (f *failing) Write(name string, parts ...[]byte) error {
	if f.failed.Load() {
		return errDisk
	}
	return f.Files.Write(name, parts...)
}

func TestBrokenHistoryEndsTheReplica(t *testing.T) {
	directory, err := history.Directory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files, broken := &failing{Files: directory}, make(chan error, 100)
	b := startWith(t, func(c *Config) {
		c.History, c.SegmentBytes = files, 2000
		c.OnBroken = func(err error) { broken <- err }
	})
	b.grant("g", "ada", 1000)
	files.failed.Store(true)
	for i := range 100 {
		request := money.TransferRequest{Transfers: []money.Transfer{hold(fmt.Sprint(i), "ada", 1)}}
		if err := b.ask("$auctioneer", messages.VerbTransfer, request); err != nil {
			if messages.KindOf(err) != messages.Internal {
				t.Fatal(err)
			}
			break
		}
	}
	select {
	case err := <-broken:
		if !errors.Is(err, errDisk) {
			t.Fatal(err)
		}
	default:
		t.Fatal("a hundred holds fit into 2,000 bytes")
	}
	b.refused(messages.Internal, "$auctioneer", messages.VerbTransfer, money.TransferRequest{Transfers: []money.Transfer{hold("late", "ada", 1)}})
	files.failed.Store(false)
}
