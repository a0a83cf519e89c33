package history

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

const segmentBytes = 600 // about four records

// script returns n commands with holds, charges, refusals and repetitions, and commands that only set the time.
func script(n int) [][]byte {
	var all [][]byte
	add := func(c ledger.Command) {
		c.At = messages.Time(1000 + len(all))
		all = append(all, c.Encode())
	}
	for _, name := range []string{"ada", "bob"} {
		add(ledger.Command{Verb: ledger.Grant, By: "ops", Grant: money.GrantRequest{Key: name, Account: name, Amount: 1000, Expires: 5000}})
	}
	for i := range n {
		id := fmt.Sprint("h", i)
		batch := []money.Transfer{
			{ID: id, Kind: money.Hold, Debit: "ada", Member: "ada", Amount: 3, Expires: messages.Time(1000 + len(all) + 5), Job: 7},
			{ID: id + "/c", Kind: money.Post, Pending: id, Credit: money.SiteAccount, Amount: 2},
		}
		if i%3 == 0 {
			batch = batch[:1] // this hold lapses
		}
		if i%5 == 0 {
			batch = append(batch, money.Transfer{ID: fmt.Sprint("p", i/10), Kind: money.Posted, Debit: "bob", Credit: "ada", Amount: 1})
			batch = append(batch, money.Transfer{ID: id + "/no", Kind: money.Posted, Debit: "bob", Credit: "ada", Amount: 10_000})
		}
		add(ledger.Command{Verb: ledger.Transfers, By: "$auctioneer", Rank: ledger.Service, Transfers: batch})
	}
	return all
}

// replica is a ledger with the data that survive a power loss: its last snapshot, the log after it, and the synced
// files.
type replica struct {
	files    Files
	log      [][]byte // acknowledged commands since the snapshot
	snapshot []byte
	done     int // number of acknowledged commands
	ledger   *ledger.Ledger
}

// start restores the snapshot and applies the log again.
func (r *replica) start() error {
	r.ledger = ledger.Open(New(r.files, segmentBytes, nil))
	if r.snapshot != nil {
		if err := r.ledger.Restore(bytes.NewReader(r.snapshot)); err != nil {
			return err
		}
	}
	for _, command := range r.log {
		r.ledger.Apply(command)
	}
	return r.ledger.Err()
}

const snapshotEvery = 7

// run applies the commands of a script that this replica has not applied yet, until the end of the script or a failure.
func (r *replica) run(script [][]byte) error {
	for r.done < len(script) {
		r.log = append(r.log, script[r.done]) // the command is durable in the log before it is answered
		r.done++
		r.ledger.Apply(script[r.done-1])
		if err := r.ledger.Err(); err != nil {
			return err
		}
		if r.done%snapshotEvery == 0 {
			if err := r.cut(); err != nil {
				return err
			}
		}
	}
	return nil
}

// cut takes a snapshot, and then removes all log entries, because the snapshot contains them.
func (r *replica) cut() error {
	var b bytes.Buffer
	if _, err := r.ledger.Capture().WriteTo(&b); err != nil {
		return err
	}
	r.snapshot, r.log = b.Bytes(), nil
	return nil
}

func whole(t testing.TB, files Files, script [][]byte) *replica {
	t.Helper()
	r := &replica{files: files}
	if err := r.start(); err != nil {
		t.Fatal(err)
	}
	if err := r.run(script); err != nil {
		t.Fatal(err)
	}
	return r
}
