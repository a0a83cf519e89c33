package estimator

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/candor-grid/candor/estimator/memory"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/wire"
)

// answers returns all answers of an estimator about ada's jobs, as one text.
func (b *bed) answers() string {
	b.Helper()
	u, err := b.utility("ada", market.UtilityRequest{Name: "sort", Market: "main", Classes: bothClasses})
	if err != nil {
		b.Fatal(err)
	}
	r, err := ask[market.RuntimeReply](b, "ada", market.VerbRuntime, market.RuntimeRequest{Name: "sort", Stages: []job.StageShape{{Name: "m", Command: "sorts", Tasks: 6}}})
	if err != nil {
		b.Fatal(err)
	}
	c, err := ask[market.SamplesReply](b, "ops", market.VerbSamples, market.SamplesRequest{Class: "due", Draws: 10})
	if err != nil {
		b.Fatal(err)
	}
	return fmt.Sprint(u, r, c)
}

func (b *bed) close(e *Estimator) {
	b.Helper()
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
}

// After a restart, the estimator must at once give the same estimates as before. It may read only new messages, and the
// last message that it had read before.
func TestRestartGoesOnFromTheSnapshot(t *testing.T) {
	b, dir := newBed(t), t.TempDir()
	in := func(c *Config) { c.Dir = dir }
	e := b.start(in)
	for job := messages.JobID(1); job <= 60; job++ {
		b.observe(fmt.Sprint(job), run(job, "ada", "sort"))
	}
	b.read(60, 0, 0)
	before := b.answers()
	b.close(e)
	e = b.start(in)
	if got := b.answers(); got != before {
		t.Errorf("after the restart %s, before %s", got, before)
	}
	b.observe("61", run(61, "ada", "sort"))
	b.read(1, 1, 0)
	if e.Seen() != 61 {
		t.Errorf("seen %d", e.Seen())
	}
	b.close(e)
	whole := b.start() // without a snapshot: reads the whole stream
	b.read(61, 0, 0)
	all := b.answers()
	b.close(whole)
	b.start(in)
	b.read(0, 1, 0)
	if got := b.answers(); got != all {
		t.Errorf("from snapshots %s, from the whole stream %s", got, all)
	}
}

// A snapshot names the last message that the estimator has learned from. After a start, the estimator reads this
// message again. If it is missing, or has another content, the stream is another one. The estimator must then learn
// from all messages of this stream.
func TestAnotherStreamIsReadWhole(t *testing.T) {
	b, dir := newBed(t), t.TempDir()
	in := func(c *Config) { c.Dir = dir }
	e := b.start(in)
	for job := messages.JobID(1); job <= 3; job++ {
		b.observe(fmt.Sprint(job), run(job, "ada", "sort"))
	}
	b.read(3, 0, 0)
	b.close(e)

	other := newBed(t)
	for job := messages.JobID(4); job <= 8; job++ {
		other.observe(fmt.Sprint(job), run(job, "ada", "sort"))
	}
	e = other.start(in)
	other.await(func() bool { return e.Seen() == 8 }, func() string { return fmt.Sprintf("seen %d jobs of 8", e.Seen()) })
}

// A snapshot must be ignored if it is damaged, or if it does not fit the configuration. The stream must then be read
// from its beginning.
func TestSnapshotsThatDoNotFit(t *testing.T) {
	b, dir := newBed(t), t.TempDir()
	in := func(c *Config) { c.Dir = dir }
	e := b.start(in)
	b.observe("1", run(1, "ada", "sort"))
	b.read(1, 0, 0)
	b.close(e)
	path := filepath.Join(dir, SnapshotFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := append([]byte{}, good...)
	damaged[len(damaged)/2] ^= 1
	for name, tc := range map[string]struct {
		file   []byte
		change func(*Config)
	}{
		"damaged":  {damaged, in},
		"cut":      {good[:len(good)-1], in},
		"empty":    {nil, in},
		"profiles": {good, func(c *Config) { in(c); c.Profiles[0].Bounds[0].High = 99 }},
	} {
		if err := os.WriteFile(path, tc.file, 0o600); err != nil {
			t.Fatal(err)
		}
		e := b.start(tc.change)
		b.read(1, 0, 0)
		if e.Seen() != 1 {
			t.Errorf("%s: seen %d", name, e.Seen())
		}
		b.close(e)
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	elsewhere := b.config()
	elsewhere.Site, elsewhere.Dir, elsewhere.Bus = "there", dir, bus.NewMemory().Connect("$estimator")
	if _, _, err := decode(good, &elsewhere); err == nil {
		t.Error("a snapshot of another site was taken")
	}
}

// A file has a correct checksum, but its content may be anything. Either the file must be refused, or the estimator's
// memory that is read from the file must answer requests without a panic.
func FuzzDecode(f *testing.F) {
	c := Config{Site: "here"}
	m, err := memory.New(c.Profiles)
	if err != nil {
		f.Fatal(err)
	}
	for job := messages.JobID(1); job <= 3; job++ {
		o := run(job, "ada", "sort")
		if _, err := m.Observe(&o); err != nil {
			f.Fatal(err)
		}
	}
	var whole bytes.Buffer
	if err := encode(&whole, &c, 7, m.Snapshot()); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes()[:whole.Len()-sha256.Size])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, body []byte) {
		sum := sha256.Sum256(body)
		m, _, err := decode(append(bytes.Clone(body), sum[:]...), &c)
		if err != nil {
			return
		}
		r, err := m.Utility(&market.UtilityRequest{Account: "ada", Name: "sort", Market: "main", Classes: bothClasses})
		if err == nil {
			_, err = wire.Marshal(r, wire.JSON)
		}
		if err != nil {
			t.Error(err)
		}
		if _, err := m.Runtime(&market.RuntimeRequest{Account: "ada", Stages: []job.StageShape{{Name: "m", Tasks: 6}}}); err != nil {
			t.Error(err)
		}
	})
}
