package rigid_test

import (
	"bufio"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/rigid"
)

// readSWF reads a log in the standard workload format: the jobs that ran and
// held processors, with the processors asked for where they are given.
func readSWF(r io.Reader) (*rigid.Instance, error) {
	in, users := &rigid.Instance{}, map[string]int{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if n, ok := strings.CutPrefix(line, "; MaxProcs:"); ok {
			in.Nodes, _ = strconv.Atoi(strings.TrimSpace(n))
		}
		f := strings.Fields(line)
		if strings.HasPrefix(line, ";") || len(f) < 18 {
			continue
		}
		number := func(i int) float64 { x, _ := strconv.ParseFloat(f[i-1], 64); return x }
		job := rigid.Job{Submit: number(2), Runtime: number(4), Width: int(number(8)), Estimate: number(9)}
		if job.Width <= 0 {
			job.Width = int(number(5))
		}
		if job.Runtime < 0 || job.Width <= 0 {
			continue
		}
		job.Width, job.Estimate = min(job.Width, in.Nodes), max(job.Estimate, 1)
		u, known := users[f[11]]
		if !known {
			u = len(users)
			users[f[11]] = u
			in.Weights = append(in.Weights, 1)
		}
		job.User = u
		in.Jobs = append(in.Jobs, job)
	}
	return in, lines.Err()
}

func TestReadSWF(t *testing.T) {
	const log = `; MaxProcs: 100
;
 15 10 5 3477 4 -1 -1 4 53940 -1 1 12 12 -1 -1 -1 -1 -1
 16 20 5 2488 25 -1 -1 -1 -1 -1 1 13 13 -1 -1 -1 -1 -1
 17 30 5 -1 25 -1 -1 25 3600 -1 1 12 13 -1 -1 -1 -1 -1
`
	in, err := readSWF(strings.NewReader(log))
	if err != nil || in.Nodes != 100 || len(in.Jobs) != 2 {
		t.Fatalf("%+v, %v", in, err)
	}
	if want := (rigid.Job{Submit: 20, Runtime: 2488, Estimate: 1, Width: 25, User: 1}); in.Jobs[1] != want {
		t.Errorf("%+v, want %+v", in.Jobs[1], want)
	}
}

// BenchmarkTrace runs whole logs of the Parallel Workloads Archive, found in
// the directory that CANDOR_TRACES names.
func BenchmarkTrace(b *testing.B) {
	files, _ := filepath.Glob(filepath.Join(os.Getenv("CANDOR_TRACES"), "*-SP2-*.swf.gz"))
	if os.Getenv("CANDOR_TRACES") == "" || len(files) == 0 {
		b.Log("set CANDOR_TRACES to a directory with KTH-SP2 or SDSC-SP2 to run them")
	}
	for _, file := range files {
		in := open(b, file)
		for _, name := range []string{"fifo", "fairshare day", "easy", "conservative"} {
			schedule, ok := all[name]
			if !ok {
				schedule = day
			}
			b.Run(filepath.Base(file)+"/"+name, func(b *testing.B) {
				var m *rigid.Measures
				for b.Loop() {
					m = in.Measure(run(b, schedule, in))
				}
				b.ReportMetric(m.MeanFlow, "flow")
				b.ReportMetric(m.MeanBSD, "bsd")
				b.ReportMetric(m.Utilisation, "utilisation")
			})
		}
	}
}

func open(b *testing.B, file string) *rigid.Instance {
	f, err := os.Open(file)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	in, err := readSWF(z)
	if err != nil {
		b.Fatal(err)
	}
	return in
}
