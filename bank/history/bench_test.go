package history

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

// BenchmarkHistory makes b.N transfers among 100,000 accounts, with the journal in files. It reports the resident
// memory of the process, and the time of a restart. Run it with -benchtime 10000000x for ten million transfers.
func BenchmarkHistory(b *testing.B) {
	files, err := Directory(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	l := ledger.Open(New(files, SegmentBytes, nil))
	names := make([]string, 100_000)
	for i := range names {
		names[i] = fmt.Sprint("user-", i)
		c := ledger.Command{Verb: ledger.Grant, At: 1, By: "ops", Grant: money.GrantRequest{Key: names[i], Account: names[i], Amount: 1_000_000 * messages.Credit}}
		l.Apply(c.Encode())
	}
	b.ResetTimer()
	for done := 0; done < b.N; done += 1000 {
		if r := l.Apply(charges(done, names)); r.Error != nil || r.Transfers[999].Error != nil {
			b.Fatal(r.Error, r.Transfers[999].Error)
		}
	}
	b.StopTimer()
	began := time.Now()
	image := l.Capture()
	b.ReportMetric(float64(time.Since(began).Microseconds()), "capture-µs")
	var snapshot bytes.Buffer
	if _, err := image.WriteTo(&snapshot); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(snapshot.Len())/(1<<20), "snapshot-MiB")
	runtime.GC()
	b.ReportMetric(resident(b), "resident-MiB")
	began = time.Now()
	l = ledger.Open(New(files, SegmentBytes, nil))
	if err := l.Restore(&snapshot); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(time.Since(began).Seconds(), "restart-s")
	began = time.Now()
	reply, err := l.Statement(money.StatementRequest{Account: money.SiteAccount, From: messages.Time(2 + b.N/2)})
	if err != nil || len(reply.Entries) == 0 && b.N > 10_000 {
		b.Fatalf("%d entries, %v", len(reply.Entries), err)
	}
	b.ReportMetric(float64(time.Since(began).Microseconds()), "statement-µs")
}

// charges returns a command of a thousand transfers: 500 holds, and a charge of each hold.
func charges(done int, names []string) []byte {
	c := ledger.Command{Verb: ledger.Transfers, At: messages.Time(2 + done), By: "$auctioneer", Rank: ledger.Service, Transfers: make([]money.Transfer, 0, 1000)}
	for i := done; i < done+1000; i += 2 {
		name := names[i*7919%len(names)]
		id := fmt.Sprintf("%s/%d/hold", name, i)
		c.Transfers = append(c.Transfers,
			money.Transfer{ID: id, Kind: money.Hold, Debit: name, Member: name, Amount: messages.Credit, Job: messages.JobID(i)},
			money.Transfer{ID: id + "/charge", Kind: money.Post, Pending: id, Credit: money.SiteAccount, Amount: messages.Credit / 2, Job: messages.JobID(i), Reason: "budget of a completed job"})
	}
	return c.Encode()
}

// resident returns the process's resident memory in MiB.
func resident(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return kib / 1024
}
