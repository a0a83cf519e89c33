package embedded

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/auctioneer/archive"
	"github.com/candor-grid/candor/estimator"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// TestBackupUnderLoad makes a backup while users submit and pay. The restored site must have everything that was
// acknowledged before the backup began. All submissions are then repeated. Each job must exist once and be paid once.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, small(filepath.Join(dir, "first")))
	alice, bob := connect(t, s, "alice"), connect(t, s, "bob")
	input, _ := alice.send("data", []byte("what travels with a job"))
	stop := make(chan struct{})
	acknowledged := alice.load(stop, "load")
	paid := bob.payments(stop)
	var before, after []submission
	for len(before) < 5 {
		before = append(before, <-acknowledged)
	}
	payments := <-paid
	made := make(chan error, 1)
	go func() {
		_, err := ReceiveBackup(within(t), s.config.State, filepath.Join(dir, "backup"))
		made <- err
	}()
	for done := false; !done; {
		select {
		case one := <-acknowledged:
			after = append(after, one)
		case <-paid:
		case err := <-made:
			if err != nil {
				t.Fatal(err)
			}
			done = true
		}
	}
	close(stop)
	for one := range acknowledged {
		after = append(after, one)
	}
	for range paid {
	}
	closeSite(t, s)

	state := filepath.Join(dir, "second")
	if _, err := Restore(filepath.Join(dir, "backup"), state, "", ""); err != nil {
		t.Fatal(err)
	}
	s = start(t, small(state))
	defer closeSite(t, s)
	alice, carol, operator := connect(t, s, "alice"), connect(t, s, "carol"), connect(t, s, "operator")
	for _, one := range before {
		if job := alice.final(one.job); job.State != jobmsg.Completed {
			t.Errorf("job %d, which was acknowledged before the backup, is %v", one.job, job.State)
		}
	}
	for _, one := range append(before, after...) {
		id, err := alice.insist(within(t), one.key)
		if err != nil {
			t.Fatalf("submission %s again: %v", one.key, err)
		}
		if job := alice.final(id); job.State != jobmsg.Completed {
			t.Errorf("job %d of submission %s is %v", id, one.key, job.State)
		}
	}
	if got := carol.account().Balance; got < 1000*messages.Credit+messages.Credits(payments)*messages.Credit {
		t.Errorf("carol has %v, and %d payments of a credit were acknowledged before the backup", got, payments)
	}
	if content, err := alice.receive(input); err != nil || content != "what travels with a job" {
		t.Errorf("the file that was there before the backup: %q, %v", content, err)
	}
	jobs := messages.Credits(len(before) + len(after))
	ctx := within(t)
	for account := alice.account(); account.Reserved != 0; account = alice.account() { // charges come after the end of a job
		if ctx.Err() != nil {
			t.Fatal("holds are left")
		}
	}
	if account := alice.account(); account.Spent != jobs*work().Budget {
		t.Errorf("alice spent %v for %d jobs of %v", account.Spent, jobs, work().Budget)
	}
	if books := request[money.BooksReply](operator, messages.Bank, messages.VerbBooks, money.BooksRequest{Full: true}); !books.Balanced {
		t.Errorf("books: %+v", books)
	}
}

// payments pays carol one credit again and again. After stop is closed, it sends the number of acknowledged payments.
func (u user) payments(stop <-chan struct{}) <-chan int {
	made := make(chan int)
	ctx := within(u.T)
	go func() {
		defer close(made)
		for n := 1; ctx.Err() == nil; n++ {
			r := money.PayRequest{Key: fmt.Sprintf("pay-%d", n), To: "carol", Amount: messages.Credit}
			if _, err := bus.Call[money.AccountReply](ctx, u.bus, messages.Subject(u.site, messages.Bank, money.VerbPay, u.name), r); err != nil {
				if messages.KindOf(err) != messages.Exhausted { // the user may have sent too many requests
					u.Errorf("payment %d: %v", n, err)
					return
				}
				n--
			}
			select {
			case made <- n:
			case <-stop:
				return
			}
		}
	}()
	return made
}

// The error must name what is wrong with the backup or the target, and no files may be left behind.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, small(filepath.Join(dir, "site")))
	defer closeSite(t, s)
	good := filepath.Join(dir, "good")
	if _, err := ReceiveBackup(within(t), s.config.State, good); err != nil {
		t.Fatal(err)
	}
	if _, err := ReceiveBackup(within(t), s.config.State, good); messages.KindOf(err) != messages.Conflict {
		t.Errorf("a backup over another: %v, want Conflict", err)
	}
	if _, err := ReceiveBackup(within(t), dir, filepath.Join(dir, "none")); messages.KindOf(err) != messages.NotFound {
		t.Errorf("a backup of no site: %v, want NotFound", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ReceiveBackup(cancelled, s.config.State, filepath.Join(dir, "none")); err == nil {
		t.Error("a backup that was interrupted is taken for a whole one")
	}
	for file, spoil := range map[string]func(string) error{
		"bank/state": flip, "auctioneer/saved.json": os.Remove, "keys/account.nk": flip, "SHA256SUMS": os.Remove, "backup.json": flip,
	} {
		bad := filepath.Join(dir, "bad")
		if err := os.CopyFS(bad, os.DirFS(good)); err != nil {
			t.Fatal(err)
		}
		if err := spoil(filepath.Join(bad, file)); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(bad, filepath.Join(dir, "to"), "", ""); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("a backup with a bad %s: %v, want an error that names the file", file, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "to*")); left != nil {
			t.Errorf("%v is left of a restore that was refused", left)
		}
		if err := os.RemoveAll(bad); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Restore(good, s.config.State, "", ""); messages.KindOf(err) != messages.Conflict {
		t.Errorf("a restore over a state directory: %v, want Conflict", err)
	}
	if _, err := Restore(good, filepath.Join(dir, "to"), "", "rack1"); messages.KindOf(err) != messages.Invalid {
		t.Errorf("a restore for a host of a site without hosts: %v, want Invalid", err)
	}
}

func flip(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text[len(text)/2] ^= 1
	return os.WriteFile(path, text, 0o600)
}

// A backup must have the ended jobs that are only in the archive, and what the estimator has learned.
func TestBackupOfArchiveAndEstimator(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := small(filepath.Join(dir, "first"))
	s := start(t, c)
	alice := connect(t, s, "alice")
	id, err := alice.insist(within(t), "once")
	if err != nil {
		t.Fatal(err)
	}
	alice.final(id)
	learned := filepath.Join(messages.Estimator, "1", estimator.SnapshotFile)
	ctx := within(t)
	for { // the estimator learns after a job's end, and writes when it stops
		closeSite(t, s)
		if _, err := os.Stat(filepath.Join(c.State, learned)); err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("the estimator has learned nothing")
		}
		s = start(t, c)
	}
	old := archive.Record{Summary: jobmsg.JobSummary{Job: 99, Account: "alice", Ended: messages.TimeOf(time.Now())}, Body: []byte("all else")}
	records := filepath.Join(messages.Auctioneer, "1", archiveDir)
	a, err := archive.Open(archive.Config{Dir: filepath.Join(c.State, records)})
	if err != nil {
		t.Fatal(err)
	}
	a.Add(&old)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	s = start(t, c)
	if _, err := ReceiveBackup(within(t), c.State, filepath.Join(dir, "backup")); err != nil {
		t.Fatal(err)
	}
	closeSite(t, s)
	state := filepath.Join(dir, "second")
	if _, err := Restore(filepath.Join(dir, "backup"), state, "", ""); err != nil {
		t.Fatal(err)
	}
	was, err1 := os.ReadFile(filepath.Join(c.State, learned))
	is, err2 := os.ReadFile(filepath.Join(state, learned))
	if err1 != nil || err2 != nil || !bytes.Equal(was, is) {
		t.Errorf("the estimator's memory was %d bytes, and is %d: %v %v", len(was), len(is), err1, err2)
	}
	b, err := archive.Open(archive.Config{Dir: filepath.Join(state, records)})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := b.Find(99); err != nil || !reflect.DeepEqual(r, old) {
		t.Errorf("the record in the archive: %+v, %v", r, err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}
