package highestbid

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// bids draws private values and bids as the paper does: 80 % N(30, 15), 20 %
// N(150, 15), positive; bids uniformly from the value less a tenth.
func bids(jobs []Job) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range jobs {
		mean := 30.0
		if r.Float64() < 0.2 {
			mean = 150
		}
		w := 0.0
		for w <= 0 {
			w = mean + 15*r.NormFloat64()
		}
		jobs[i].Value, jobs[i].Bid = w, w*(1-0.1*r.Float64())
	}
}

// bursts is a made-up trace: bags of up to 75 jobs at a time, long and short,
// that ask for about the given load of the nodes.
func bursts(n, nodes int, load float64) []Job {
	r := rand.New(rand.NewPCG(3, 4))
	jobs, now, work := make([]Job, 0, n), 0.0, 0.0
	for len(jobs) < n {
		for range 1 + r.IntN(75) {
			length := float64(1 + r.IntN(20))
			if r.IntN(4) == 0 {
				length = float64(1 + r.IntN(25_000))
			}
			work += length
			jobs = append(jobs, Job{Submit: now, Runtime: length, Estimate: length * float64(1+r.IntN(3))})
		}
		now = float64(int(work / (load * float64(nodes))))
	}
	jobs = jobs[:n]
	bids(jobs)
	return jobs
}

// readTrace reads the runnable jobs of a log in the Standard Workload Format:
// those with a run time and a processor. An estimate below 1 is taken as 1.
func readTrace(b *testing.B, path string) []Job {
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	var jobs []Job
	lines := bufio.NewScanner(z)
	for lines.Scan() {
		field := strings.Fields(lines.Text())
		if len(field) < 18 || strings.HasPrefix(field[0], ";") {
			continue
		}
		number := func(i int) float64 {
			x, err := strconv.ParseFloat(field[i-1], 64)
			if err != nil {
				b.Fatal(err)
			}
			return x
		}
		if number(4) >= 0 && (number(5) > 0 || number(8) > 0) {
			jobs = append(jobs, Job{Submit: number(2), Runtime: number(4), Estimate: max(number(9), 1)})
		}
	}
	if err := lines.Err(); err != nil {
		b.Fatal(err)
	}
	return jobs
}

// BenchmarkLPC runs the log of the paper's tables II and III, on 105 nodes. It
// finds LPC-EGEE-2004-1.2-cln.swf.gz in the directory that CANDOR_TRACES names.
func BenchmarkLPC(b *testing.B) {
	directory := os.Getenv("CANDOR_TRACES")
	if directory == "" {
		b.Skip("CANDOR_TRACES is not set: set it to a directory that has LPC-EGEE-2004-1.2-cln.swf.gz")
	}
	jobs := readTrace(b, filepath.Join(directory, "LPC-EGEE-2004-1.2-cln.swf.gz"))
	if len(jobs) != 220_695 {
		b.Fatalf("%d runnable jobs in the log, want 220,695", len(jobs))
	}
	bids(jobs)
	benchmarkRules(b, 105, jobs)
}

// BenchmarkBursts needs no log: as many jobs as LPC's, at a higher load.
func BenchmarkBursts(b *testing.B) { benchmarkRules(b, 105, bursts(220_695, 105, 0.9)) }

func benchmarkRules(b *testing.B, nodes int, jobs []Job) {
	for _, rule := range []Rule{{HB, Kth, false}, {HB, First, false}, {NPHB, Kth, false}, {WSPT, Kth, false}, {WSPT, Kth, true}, {WSEPT, Kth, true}} {
		b.Run(fmt.Sprintf("%s/%s/capped=%v", rule.Algorithm, rule.Price, rule.Capped), func(b *testing.B) {
			p := &Problem{Nodes: nodes, Rule: rule, Reserve: Reserve, Jobs: jobs}
			var o *Outcome
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if o, err = Run(p); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(o.Preemptions), "preemptions")
			b.ReportMetric(o.Payoff(), "payoff")
		})
	}
}

// BenchmarkLive is a live decision after one job has come and another gone, among
// 100,000 that wait and 10,000 that run: told what has changed, and on all of it.
func BenchmarkLive(b *testing.B) {
	const waiting, running = 100_000, 10_000
	m := live(b, Rule{HB, Kth, false}, "cpu")
	v := view(running)
	for i := range waiting + running {
		n := 0
		if i < running {
			n = 1
		}
		rate := messages.Credits(1e6 + (i*7919)%1_000_000)
		if n == 1 {
			rate *= 3
		}
		v.Jobs = append(v.Jobs, task(messages.JobID(i+1), rate, 1-n, n, 0))
	}
	b.Run("update", func(b *testing.B) {
		m.Allocate(v)
		for b.Loop() {
			last := len(v.Jobs) - 1
			old := v.Jobs[last]
			v.Jobs[last] = task(old.Job+1, old.Rate, 1, 0, 0)
			m.Update(v, v.Jobs[last:], []messages.JobID{old.Job})
		}
	})
	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			m.Allocate(v)
		}
	})
}
