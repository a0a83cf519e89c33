package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// waitingResult has what waiting jobs cost an auctioneer: memory and time at every replica, and further memory and time
// at the leading replica.
type waitingResult struct {
	JobsWaiting  int     `json:"jobs_waiting"`
	BookBytes    float64 `json:"book_bytes_per_job"`   // memory of a replica for each job
	LeaderBytes  float64 `json:"leader_bytes_per_job"` // memory of the leading replica for each job, with its book
	ApplyMicros  float64 `json:"apply_us"`             // time to enter one of the last jobs into the book
	LeadSeconds  float64 `json:"lead_seconds"`         // time until a new leader has decided and published
	LeadCPU      float64 `json:"lead_cpu_seconds"`     // processor time used in LeadSeconds, with garbage collection
	DecideMicros float64 `json:"arrival_us"`           // time to enter one more job, let its market decide, and publish
	LongestMicro float64 `json:"arrival_longest_us"`
	LongestCPU   float64 `json:"arrival_longest_cpu_us"` // without the time spent waiting for a processor
	PauseMillis  float64 `json:"snapshot_pause_ms"`      // time during a snapshot in which no command is applied
	AfterMicros  float64 `json:"snapshot_change_longest_us"`
	AfterCPU     float64 `json:"snapshot_change_longest_cpu_us"`
	WriteSeconds float64 `json:"snapshot_write_seconds"`
	SnapshotMiB  float64 `json:"snapshot_mib"`
	ReadSeconds  float64 `json:"snapshot_read_seconds"`
	ReadCPU      float64 `json:"snapshot_read_cpu_seconds"`
}

func waitingFlags(c *cobra.Command) {
	c.Flags().Int("jobs", 1_000_000, "jobs to let wait, of one task each")
	c.Flags().String("mechanism", market.Proportional, "mechanism of the market")
	c.Flags().String("heapprofiles", "", "write heap profiles of the book and of the leader to this directory")
}

// arrivals is the number of arrivals over which the benchmark computes a mean.
const arrivals = 1000

// waiting measures two things while jobs wait. One is the book, which is the replicated state of an auctioneer. The
// other is the desk, which makes the decisions of the auctioneer's leader.
func waiting(_ context.Context, c *cobra.Command) (any, error) {
	n, err := positive(c, "jobs")
	if err != nil {
		return nil, err
	}
	mechanism, _ := c.Flags().GetString("mechanism")
	profiles, _ := c.Flags().GetString("heapprofiles")
	w := &waitingRoom{book: book.New(), market: market.Market{Name: "main", Mechanism: mechanism, Classes: []messages.Name{class}}}
	r := waitingResult{JobsWaiting: n[0]}
	empty := settledMemory().HeapAlloc
	if err := w.register(); err != nil {
		return nil, err
	}
	for range n[0] {
		if err := w.arrive(); err != nil {
			return nil, err
		}
	}
	perJob := func() float64 { return float64(settledMemory().HeapAlloc-empty) / float64(w.jobs) }
	if r.BookBytes, err = perJob(), heapProfile(profiles, "book"); err != nil {
		return nil, err
	}
	cpu := processorTime()
	if r.LeadSeconds, err = w.lead(); err != nil {
		return nil, err
	}
	r.LeadCPU = (processorTime() - cpu).Seconds()
	if r.LeaderBytes, err = perJob(), heapProfile(profiles, "leader"); err != nil {
		return nil, err
	}
	if r.DecideMicros, r.LongestMicro, r.LongestCPU, err = w.mean(func() error {
		err := w.arrive()
		w.step()
		return err
	}); err != nil {
		return nil, err
	}
	if r.ApplyMicros, _, _, err = w.mean(w.arrive); err != nil {
		return nil, err
	}
	return r, w.snapshot(&r)
}

// waitingRoom is a replica of the auctioneer in which jobs wait.
type waitingRoom struct {
	book   *book.Book
	desk   *desk.Desk
	market market.Market
	jobs   int
	began  time.Time
	inputs []desk.Input
}

func (w *waitingRoom) Read(f func(*book.Book)) { f(w.book) }

func (w *waitingRoom) Changes(f func(*book.Book, book.Changes)) { f(w.book, w.book.TakeChanges()) }

// apply applies a command to the book, as if it came from a log.
func (w *waitingRoom) apply(c *book.Command) (any, error) {
	c.Stamp(messages.Time(w.jobs+1), 0, false)
	data, err := c.Encode()
	if err != nil {
		return nil, err
	}
	if c, err = book.Decode(data); err != nil {
		return nil, err
	}
	result := w.book.Apply(c)
	err, _ = result.(error)
	return result, err
}

// register adds a node with one slot, which nobody claims.
func (w *waitingRoom) register() error {
	_, err := w.apply(&book.Command{Register: &book.Register{Node: "node1", Session: 1, Slots: []job.ClassSlots{{Class: class, Slots: 1}}}})
	return err
}

// arrive adds a job to the book, as `candor submit` does. The jobs have different users and rates, and their commands
// differ in one argument.
func (w *waitingRoom) arrive() error {
	w.jobs++
	key := fmt.Sprintf("KJ3QXTQ6YZ2M4VDR6P%08d", w.jobs)
	owner := fmt.Sprint("user", w.jobs%64)
	spec := &job.JobSpec{Name: "sweep", Market: w.market.Name, Budget: 10 * messages.Credit, Dir: "/home/" + owner + "/experiments/sweep",
		Rate:    messages.Credits(1 + w.jobs%1000),
		Utility: &job.Utility{Form: job.Linear, Weights: job.Weights{{Class: class, Weight: 1}}},
		Stages: []job.Stage{{Name: "main", Class: class, Command: []string{"python3", "train.py", "--seed", fmt.Sprint(w.jobs)},
			TimeLimit: messages.Duration(time.Hour), Memory: 1 << 30}}}
	_, err := w.apply(&book.Command{Submit: &book.Submit{Account: owner, Key: key, Digest: []byte(fmt.Sprintf("%032d", w.jobs)), Payer: owner, Spec: spec,
		Assumed: "the default: all classes alike", Hold: "job/site/" + owner + "/" + key, Held: spec.Budget}})
	return err
}

// lead makes a new desk, as a new leader does: the part of a leader that makes decisions. It returns how many seconds
// pass until the desk's market has made and published its first decision.
func (w *waitingRoom) lead() (seconds float64, err error) {
	w.began = time.Now()
	config := desk.Config{Site: "site", Term: 1, Markets: []market.Market{w.market}, Lease: messages.Duration(10 * time.Second), HoldFor: messages.Duration(time.Hour), Estimator: true, Level: messages.Level}
	d, faults := desk.New(config, w, w.now())
	if len(faults) > 0 {
		return 0, faults[0]
	}
	w.desk = d
	w.book.Watch(true)
	for range 10 {
		if w.step() {
			return time.Since(w.began).Seconds(), nil
		}
	}
	return 0, messages.Errorf(messages.Internal, "the new leader published nothing")
}

// now returns a time one day after the submissions, when the jobs' holds must be extended.
func (w *waitingRoom) now() desk.Instant {
	passed := messages.Duration(time.Since(w.began))
	return desk.Instant{Wall: messages.Time(24 * time.Hour / time.Microsecond).Add(passed), Mono: passed}
}

// step makes the desk (the decision logic) take one step, and applies the commands that the desk proposes. It reports
// whether a vector was published. The desk's requests to the bank and the estimator are dropped, so no answers to them
// come.
func (w *waitingRoom) step() (published bool) {
	in := w.inputs
	w.inputs = nil
	out := w.desk.Step(w.now(), in...)
	for _, p := range out.Propose {
		result, err := w.apply(p.Command)
		w.inputs = append(w.inputs, desk.Done{ID: p.ID, Result: result, Err: err})
	}
	return len(out.Publish) > 0
}

// snapshot measures an image of the book: it captures the book, writes the image while the book changes, and reads it.
func (w *waitingRoom) snapshot(r *waitingResult) error {
	runtime.GC()
	began := time.Now()
	image := w.book.Capture()
	r.PauseMillis = time.Since(began).Seconds() * 1e3
	file, err := os.CreateTemp("", "candor-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	done := make(chan error, 1)
	var size int64
	began = time.Now()
	go func() {
		n, err := image.WriteTo(file)
		size = n
		done <- err
	}()
	if _, r.AfterMicros, r.AfterCPU, err = w.mean(w.cancelOne()); err != nil {
		return err
	}
	if err := <-done; err != nil {
		return err
	}
	r.WriteSeconds, r.SnapshotMiB = time.Since(began).Seconds(), float64(size)/(1<<20)
	image = nil
	w.desk, w.book = nil, nil
	runtime.GC()
	if _, err := file.Seek(0, 0); err != nil {
		return err
	}
	cpu := processorTime()
	began = time.Now()
	err = book.New().Restore(file)
	r.ReadSeconds, r.ReadCPU = time.Since(began).Seconds(), (processorTime() - cpu).Seconds()
	return err
}

// cancelOne returns a function that cancels the next job at each call.
func (w *waitingRoom) cancelOne() func() error {
	id := messages.JobID(0)
	return func() error {
		id++
		_, err := w.apply(&book.Command{Cancel: &book.Cancel{Job: id, By: "operator"}})
		return err
	}
}

// mean calls f many times. It returns three times in microseconds: the mean of a call, the longest call, and the most
// processor time of a call.
func (w *waitingRoom) mean(f func() error) (mean, longest, longestCPU float64, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	sum := 0.0
	for range arrivals {
		began, cpu := time.Now(), threadTime()
		if err := f(); err != nil {
			return 0, 0, 0, err
		}
		took := time.Since(began).Seconds() * 1e6
		sum, longest, longestCPU = sum+took, max(longest, took), max(longestCPU, (threadTime()-cpu).Seconds()*1e6)
	}
	return sum / arrivals, longest, longestCPU, nil
}

func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// heapProfile writes a heap profile, if a directory for it is named.
func heapProfile(dir, name string) error {
	if dir == "" {
		return nil
	}
	f, err := os.Create(filepath.Join(dir, "heap-"+name))
	if err != nil {
		return err
	}
	if err := pprof.Lookup("heap").WriteTo(f, 0); err != nil {
		return err
	}
	return f.Close()
}
