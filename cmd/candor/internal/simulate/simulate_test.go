package simulate

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/deploy/examples"
	"github.com/candor-grid/candor/deploy/simulated/measure"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/messages"
)

// log is a small log: ten jobs, one of them of two processors.
func log() string {
	var b strings.Builder
	b.WriteString("; MaxProcs: 2\n; UnixStartTime: 1000000000\n")
	for i := range 10 {
		fmt.Fprintf(&b, "%d %d -1 %d %d -1 -1 -1 90 -1 1 %d 1 -1 1 -1 -1 -1\n", i+1, 10*i, 30+i, 1+i/9, i%3)
	}
	return b.String()
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func run(args ...string) (string, error) {
	var out bytes.Buffer
	c := Command()
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(io.Discard)
	err := c.Execute()
	return out.String(), err
}

func zipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

func TestEveryMechanismReports(t *testing.T) {
	trace := file(t, "log.swf", log())
	for _, name := range rules.Mechanisms() {
		market := file(t, "market.yaml", "name: spot\nmechanism: "+name+"\n")
		text, err := run("--trace", trace, "--market", market, "--json")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var r measure.Report
		if err := json.Unmarshal([]byte(text), &r); err != nil || r.Results.Jobs != 10 || r.Trace.Nodes != 2 || r.Market.Name != "spot" || r.Actors != "core" {
			t.Errorf("%s: %v %s", name, err, text)
		}
		if again, err := run("--trace", trace, "--market", market, "--json"); err != nil || again != text {
			t.Errorf("%s: another run writes other bytes", name)
		}
		if table, err := run("--trace", trace, "--market", market); err != nil || !strings.Contains(table, "ratio to the bound") {
			t.Errorf("%s: %v %s", name, err, table)
		}
	}
}

func TestAllActors(t *testing.T) {
	trace := file(t, "log.swf", log())
	for _, name := range []string{"highest-bid", "proportional", "fifo", "fairshare"} {
		text, err := run("--trace", trace, "--market", name, "--actors", "all", "--json")
		var r measure.Report
		if err != nil || json.Unmarshal([]byte(text), &r) != nil || r.Results.Completed != 10 || r.Actors != "all" || !strings.Contains(text, `"exchanges"`) {
			t.Errorf("%s: %v %s", name, err, text)
		}
		if again, _ := run("--trace", trace, "--market", name, "--actors", "all", "--json"); again != text {
			t.Errorf("%s: another run writes other bytes", name)
		}
	}
	if _, err := run("--trace", trace, "--market", "reservation", "--actors", "all"); messages.KindOf(err) != messages.Invalid {
		t.Errorf("reservation: %v", err)
	}
}

// TestBadTracesAreNamed: each is an error with file and line, and none is passed
// over in silence.
func TestBadTracesAreNamed(t *testing.T) {
	good := log()
	line := "11 100 -1 30 1 -1 -1 -1 90 -1 1 0 1 -1 1 -1 -1 -1"
	for name, c := range map[string]struct{ text, want, skipped string }{
		"empty":         {"", "no jobs", "no jobs"},
		"binary":        {"\x7fELF\x02\x01\x01\x00\x00\n\x00\xff", "line 1: field 1 is not a number", "no jobs"},
		"17 fields":     {good + strings.TrimSuffix(line, " -1") + "\n", "line 13: has 17 fields", ""},
		"19 fields":     {good + line + " -1\n", "line 13: has 19 fields", ""},
		"cut":           {good + line[:20], "line 13: has ", ""},
		"cut gzip":      {zipped(strings.Repeat(good, 1))[:120], "the file is cut", "-"},
		"gzipped twice": {zipped(zipped(good)), "gzipped twice", "gzipped twice"},
		"negative time": {good + strings.Replace(line, "11 100", "11 -5", 1) + "\n", "line 13: job 11: submitted at -5 s", ""},
		"too wide":      {good + strings.Replace(line, "30 1 ", "30 3 ", 1) + "\n", "", ""},
	} {
		trace := file(t, "log.swf", c.text)
		_, err := run("--trace", trace, "--market", "fifo")
		if c.want != "" && (messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), trace) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error is %v, want %q", name, err, c.want)
		}
		text, err := run("--trace", trace, "--market", "fifo", "--skip-bad", "--json")
		switch {
		case c.skipped == "-": // what is left of it may hold jobs or not
		case c.skipped != "":
			if err == nil || !strings.Contains(err.Error(), c.skipped) {
				t.Errorf("%s, skipping: error is %v, want %q", name, err, c.skipped)
			}
		case err != nil:
			t.Errorf("%s, skipping: %v", name, err)
		case c.want != "" && !strings.Contains(text, `"bad": 1`):
			t.Errorf("%s, skipping: not counted: %s", name, text)
		}
	}
	if _, err := run("--trace", file(t, "log.swf", good), "--market", "fifo", "--nodes", "1"); err == nil || !strings.Contains(err.Error(), "line 12: job 10: needs 2 processors together, the machine has 1") {
		t.Errorf("a job wider than the machine: %v", err)
	}
}

func TestBadCommandLines(t *testing.T) {
	trace, market := file(t, "log.swf", log()), file(t, "m.yaml", "mechanism: fifo\nprise: 3\n")
	for want, args := range map[string][]string{
		"--trace and --market":              {"--trace", trace},
		"no such file":                      {"--trace", trace + "x", "--market", "fifo"},
		"--market":                          {"--trace", trace, "--market", "lottery"},
		market + ":2:1: prise":              {"--trace", trace, "--market", market},
		"--nodes":                           {"--trace", trace, "--market", "fifo", "--nodes", "-3"},
		"--scale-load":                      {"--trace", trace, "--market", "fifo", "--scale-load", "0"},
		"load: must be":                     {"--trace", trace, "--market", "fifo", "--scale-load", "NaN"},
		"--from":                            {"--trace", trace, "--market", "fifo", "--from", "soon"},
		"is before the log begins":          {"--trace", trace, "--market", "fifo", "--from", "1999-01-01"},
		"--to: 5 is not after":              {"--trace", trace, "--market", "fifo", "--from", "10", "--to", "5"},
		"no job of the log can be run":      {"--trace", trace, "--market", "fifo", "--from", "400d"},
		"parallel: must be":                 {"--trace", trace, "--market", "fifo", "--parallel", "both"},
		"--by":                              {"--trace", trace, "--market", "fifo", "--by", "colour"},
		"--actors":                          {"--trace", trace, "--market", "fifo", "--actors", "some"},
		"ends in .csv or .parquet":          {"--trace", trace, "--market", "fifo", "--events", "events.txt"},
		"--bids":                            {"--trace", trace, "--market", "fifo", "--bids", trace + "x"},
		"runs serial tasks and cannot keep": {"--trace", trace, "--market", "highest-bid", "--parallel", "gang"},
	} {
		if _, err := run(args...); messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error is %v, want %q", args, err, want)
		}
	}
}

func TestFilesAreWritten(t *testing.T) {
	trace, dir := file(t, "log.swf", log()), t.TempDir()
	events := filepath.Join(dir, "events.csv")
	if _, err := run("--trace", trace, "--market", "highest-bid", "--events", events, "--plots", filepath.Join(dir, "figures")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(events)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 31 || !strings.HasPrefix(lines[1], "0,submitted,1,3,0,1,1,") || !strings.HasPrefix(lines[2], "0,started,1,") {
		t.Errorf("%d lines: %s", len(lines), text)
	}
	for _, name := range []string{"wait", "slowdown", "utilisation", "payments", "groups"} {
		png, err := os.ReadFile(filepath.Join(dir, "figures", name+".png"))
		if err != nil || !bytes.HasPrefix(png, []byte("\x89PNG")) {
			t.Errorf("%s: %v", name, err)
		}
		if svg, err := os.ReadFile(filepath.Join(dir, "figures", name+".svg")); err != nil || !bytes.Contains(svg, []byte("<svg")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := run("--trace", trace, "--market", "highest-bid", "--events", filepath.Join(dir, "events.parquet")); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "events.parquet")); err != nil || !bytes.HasPrefix(data, []byte("PAR1")) || !bytes.HasSuffix(data, []byte("PAR1")) {
		t.Errorf("%v", err)
	}
}

func TestBidsFromAFile(t *testing.T) {
	trace := file(t, "log.swf", log())
	text, err := run("--trace", trace, "--market", "highest-bid", "--json", "--bids", file(t, "bids.csv", "job,value\n1,1000\n"))
	if err != nil || !strings.Contains(text, "has bids for 1 of 10 jobs") {
		t.Errorf("%v %s", err, text)
	}
}

// TestTimes: dates count from the log's beginning.
func TestTimes(t *testing.T) {
	for text, want := range map[string]float64{"": 0, "90": 90, "2h": 7200, "1.5d": 129600, "2001-09-10": 1000080000 - 1000000000, "2001-09-09T02:00:00Z": 1000000800 - 1000000000} {
		if got, err := when("--from", text, 1000000000); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestAnInterruptEndsTheWait(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	forever := make(chan error)
	cancel()
	if err := Await(ctx, func() error { return <-forever }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(forever)
	if err := Await(context.Background(), func() error { return io.EOF }); !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
}

func TestProgressLine(t *testing.T) {
	if got, want := line("running", 0.25, 10*time.Second), "██████░░░░░░░░░░░░░░░░░░ 25% 30s left  running"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestARealLog runs a year of a real machine.
func TestARealLog(t *testing.T) {
	f, err := examples.TraceAnalysis().Open("sdsc-sp2-1999.swf.gz")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	trace := file(t, "log.swf.gz", string(text))
	out, err := run("--trace", trace, "--market", "backfill", "--nodes", "128", "--json")
	var r measure.Report
	if err != nil || json.Unmarshal([]byte(out), &r) != nil || r.Results.Completed != r.Trace.Jobs || r.Trace.Jobs+r.Trace.Skipped.Total() != 30_766 {
		t.Errorf("%v: %+v", err, r.Trace)
	}
}
