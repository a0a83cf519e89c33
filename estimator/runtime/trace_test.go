package runtime

import (
	"bufio"
	"compress/gzip"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var traces = flag.String("traces", "", "a directory of logs in the Standard Workload Format, *.swf.gz, for TestTraces")

// readLog reads the jobs of a log that have a run time, a user and a limit.
func readLog(tb testing.TB, path string) (log []Submission) {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 18 || strings.HasPrefix(fields[0], ";") {
			continue
		}
		if s, ok := submission(tb, fields); ok {
			log = append(log, s)
		}
	}
	if lines.Err() != nil || len(log) == 0 {
		tb.Fatalf("%s: %d jobs, %v", path, len(log), lines.Err())
	}
	return log
}

func submission(tb testing.TB, fields []string) (s Submission, ok bool) {
	var n [18]float64
	for i := range n {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			tb.Fatal(err)
		}
		n[i] = v
	}
	submit, wait, run, width, limit := n[1], max(0, n[2]), n[3], n[4], n[8]
	if width <= 0 {
		width = n[7]
	}
	s = Submission{Job: Job{User: fields[11], Group: fields[14], Command: fields[13], Size: int64(width), Limit: limit},
		Submitted: submit, Ended: submit + wait + run, Runtime: run}
	return s, run >= 0 && limit > 0 && n[11] >= 0
}

// On real logs, the estimate must be nearer to the actual run times than two other estimates: the users' limits, and
// the mean of a user's last two jobs. This must hold for the absolute error in seconds, and for the relative error. The
// estimator also gives a robust demand: an upper estimate of the run time. Nine jobs in ten must not run longer than
// their robust demand (88 % in the log RICC). Without the flag -traces, the test reads the example log.
func TestTraces(t *testing.T) {
	paths := []string{"../../deploy/examples/trace-analysis/sdsc-sp2-1999.swf.gz"}
	if *traces != "" {
		var err error
		if paths, err = filepath.Glob(filepath.Join(*traces, "*.swf.gz")); err != nil || len(paths) == 0 {
			t.Fatalf("no logs in %s: %v", *traces, err)
		}
	}
	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasPrefix(name, "lublin") || strings.HasPrefix(name, "NASA") {
			continue // jobs of this log have no limits
		}
		e, err := Evaluate(readLog(t, path))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-32s %7d %8.0f %8.0f %8.0f %9.2f %9.2f %9.2f %9.3f", strings.TrimSuffix(name, ".swf.gz"), e.Jobs,
			e.Request.Absolute, e.LastTwo.Absolute, e.Ours.Absolute, e.Request.Relative, e.LastTwo.Relative, e.Ours.Relative, e.Covered)
		if !(e.Ours.Absolute < e.LastTwo.Absolute && e.Ours.Absolute < e.Request.Absolute) {
			t.Errorf("%s: mean absolute error %.0f s is not below the others'", name, e.Ours.Absolute)
		}
		if !(e.Ours.Relative < e.LastTwo.Relative && e.Ours.Relative < e.Request.Relative) {
			t.Errorf("%s: relative error %.2f is not below the others'", name, e.Ours.Relative)
		}
		if e.Covered < 0.88 {
			t.Errorf("%s: the robust demand is enough for %.3f of the jobs only", name, e.Covered)
		}
	}
}
