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
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/deploy/examples"
	"github.com/candor-grid/candor/deploy/simulated/measure"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/messages"
)

// log returns the text of a small log of ten jobs. One of the jobs needs two processors.
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
		if table, err := run("--trace", trace, "--market", market); err != nil || !strings.Contains(table, "welfare less revenue") {
			t.Errorf("%s: %v %s", name, err, table)
		}
	}
}

// Every mechanism, and every algorithm of highest-bid, runs with all actors. Each run must complete or discard every
// job. A second run must print the same bytes.
func TestAllActors(t *testing.T) {
	trace := file(t, "log.swf", log())
	markets := map[string]string{}
	for _, name := range rules.Mechanisms() {
		markets[name] = "mechanism: " + name + "\nbids: {deadline: {slack: fixed, mean: 100}}\n"
	}
	markets["reservation"] = "mechanism: reservation\ngranule: 10\nT: 60\nbids: {deadline: {slack: none}}\n"
	for _, algorithm := range []string{"NPHB", "WSPT", "WSEPT"} {
		markets[algorithm] = "mechanism: highest-bid\nalgorithm: " + algorithm + "\n"
	}
	for name, text := range markets {
		args := []string{"--trace", trace, "--market", file(t, "market.yaml", text), "--actors", "all", "--slots-per-node", "2", "--json"}
		text, err := run(args...)
		var r measure.Report
		if err != nil || json.Unmarshal([]byte(text), &r) != nil || r.Results.Completed+r.Results.Discarded != 10 || r.Actors != "all" || !strings.Contains(text, `"exchanges"`) {
			t.Errorf("%s: %v %s", name, err, text)
		}
		if again, _ := run(args...); again != text {
			t.Errorf("%s: another run writes other bytes", name)
		}
	}
}

// The file of events must have preemptions, with the mechanism alone and with all actors.
func TestPreemptionsAreEvents(t *testing.T) {
	trace, bids := file(t, "log.swf", log()), "job,value\n"
	for i := range 10 { // each job is worth more than the jobs before it
		bids += fmt.Sprintf("%d,%d\n", i+1, 10+i)
	}
	values := file(t, "bids.csv", bids)
	for actors, how := range map[string][]string{"core": {"suspend"}, "all": {"suspend", "requeue"}} {
		for _, preemption := range how {
			market := file(t, "market.yaml", "mechanism: highest-bid\npreemption: "+preemption+"\n")
			path := filepath.Join(t.TempDir(), "events.csv")
			text, err := run("--trace", trace, "--market", market, "--bids", values, "--actors", actors, "--events", path, "--json")
			var r measure.Report
			if err != nil || json.Unmarshal([]byte(text), &r) != nil || r.Results.Preemptions == 0 {
				t.Fatalf("%s, %s: %v %s", actors, preemption, err, text)
			}
			events, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			lost, again := strings.Count(string(events), ",suspended,"), strings.Count(string(events), ",resumed,")
			if preemption == "requeue" {
				lost, again = strings.Count(string(events), ",requeued,"), lost+again+strings.Count(string(events), ",requeued,")
			}
			if lost == 0 || lost != again || lost > r.Results.Preemptions {
				t.Errorf("%s, %s: %d preemptions\n%s", actors, preemption, r.Results.Preemptions, events)
			}
		}
	}
}

// The parameters of a mechanism must have the names that the documents of this mechanism use. An error must name the
// line and column in the file.
func TestParametersHaveTheirNames(t *testing.T) {
	trace := file(t, "log.swf", log())
	for mechanism, c := range map[string]struct {
		parameters string
		wrong      map[string]string // error for line 3 of the market file
	}{
		"proportional": {"alpha: 0.25\nslo: 0.1\n", map[string]string{"alpha: 1.5": ":3:8: alpha: must be from 0 to 1", "lambda: 0.5": ":3:1: lambda: mechanism proportional has no such parameter"}},
		"highest-bid":  {"algorithm: WSEPT\nprice: first\ncapped: true\nnodes: 2\n", map[string]string{"price: second": ":3:8: price: must be one of first, kth", "algorithm: FCFS": ":3:12: algorithm: must be", "capped: yes please": ":3:9: "}},
		"deadline":     {"C: 1\nlambda: 0.3\nrule: paper\n", map[string]string{"rule: fair": ":3:7: rule: must be one of paper, monotone", "C: -1": ":3:4: C: must be from 0", "c: 3": ":3:1: c: there is no such key"}},
		"batch-queue":  {"mode: full\nN: 2\ndraws: 50\nseed: 7\n", map[string]string{"mode: fast": ":3:7: mode: must be one of priority, full", "expectation: guessed": ":3:14: expectation: must be one of drawn, exact", "draws: many": ":3:8: "}},
		"reservation":  {"T: 40\nN: 2\nsearch: {orders: 5, seed: 2}\n", map[string]string{"T: 0.5": ":3:4: ", "search: {orders: 0}": "", "search: {order: 5}": ":3:10: search.order: there is no such key", "search: {orders: -5}": "search.orders: must be from 1"}},
		"contract":     {"M: 4\nseed: 3\nlate_only: true\n", map[string]string{"M: 1": ":3:4: M: must be from 2", "lateonly: true": ":3:1: lateonly: there is no such key"}},
		"fairshare":    {"half_life: 6h\nprice: 2\n", map[string]string{"half_life: -1h": ":3:12: half_life: must not be negative", "price: kth": ":3:8: price: must be a number"}},
		"backfill":     {"variant: conservative\n", map[string]string{"variant: hard": ":3:10: variant: must be one of easy, conservative"}},
		"fifo":         {"price: 3\n", map[string]string{"prize: 3": ":3:1: prize: there is no such key"}},
	} {
		head := "name: spot\nmechanism: " + mechanism + "\n"
		if _, err := run("--trace", trace, "--market", file(t, "market.yaml", head+c.parameters), "--json"); err != nil {
			t.Errorf("%s: %v", mechanism, err)
		}
		for line, want := range c.wrong {
			market := file(t, "market.yaml", head+line+"\n")
			_, err := run("--trace", trace, "--market", market)
			if want != "" && (messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), market) || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s, %s: error is %v, want %q", mechanism, line, err, want)
			}
		}
	}
}

// Each error must have the file and the line; none may be ignored silently.
func TestBadTracesAreNamed(t *testing.T) {
	good := log()
	line := "11 100 -1 30 1 -1 -1 -1 90 -1 1 0 1 -1 1 -1 -1 -1"
	for name, c := range map[string]struct{ text, want, skipped string }{
		"empty":         {"", "no jobs", "no jobs"},
		"binary":        {"\x7fELF\x02\x01\x01\x00\x00\n\x00\xff", "line 1: field 1 is not a number", "no jobs"},
		"17 fields":     {good + strings.TrimSuffix(line, " -1") + "\n", "line 13: the line has 17 fields", ""},
		"19 fields":     {good + line + " -1\n", "line 13: the line has 19 fields", ""},
		"cut":           {good + line[:20], "line 13: the line has ", ""},
		"cut gzip":      {zipped(strings.Repeat(good, 1))[:120], "the file is cut", "-"},
		"gzipped twice": {zipped(zipped(good)), "gzipped twice", "gzipped twice"},
		"UTF-16":        {"\xff\xfe" + strings.ReplaceAll(good, "", "\x00")[1:], "line 1: the log is text in UTF-16", "UTF-16"},
		"NUL bytes":     {good + "\x00\x00\x00\n", "line 13: field 1 is not a number", ""},
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
		case c.skipped == "-": // the rest of the file may have jobs or not
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
	if _, err := run("--trace", file(t, "log.swf", good), "--market", "fifo", "--nodes", "1"); err == nil || !strings.Contains(err.Error(), "line 12: job 10: needs 2 processors at the same time, but the machine has 1") {
		t.Errorf("a job wider than the machine: %v", err)
	}
}

func TestBadCommandLines(t *testing.T) {
	trace, market := file(t, "log.swf", log()), file(t, "m.yaml", "mechanism: fifo\nprise: 3\n")
	for want, args := range map[string][]string{
		"--trace and --market":             {"--trace", trace},
		"no such file":                     {"--trace", trace + "x", "--market", "fifo"},
		"--market":                         {"--trace", trace, "--market", "lottery"},
		market + ":2:1: prise":             {"--trace", trace, "--market", market},
		"--nodes":                          {"--trace", trace, "--market", "fifo", "--nodes", "-3"},
		"--scale-load":                     {"--trace", trace, "--market", "fifo", "--scale-load", "0"},
		"--scale-load: must be":            {"--trace", trace, "--market", "fifo", "--scale-load", "NaN"},
		"--from":                           {"--trace", trace, "--market", "fifo", "--from", "soon"},
		"is before the log begins":         {"--trace", trace, "--market", "fifo", "--from", "1999-01-01"},
		"--to: 5 is not after":             {"--trace", trace, "--market", "fifo", "--from", "10", "--to", "5"},
		"submissions are from 0 s to 90 s": {"--trace", trace, "--market", "fifo", "--from", "400d"},
		"--parallel: must be":              {"--trace", trace, "--market", "fifo", "--parallel", "both"},
		"--by":                             {"--trace", trace, "--market", "fifo", "--by", "colour"},
		"--slots-per-node":                 {"--trace", trace, "--market", "fifo", "--actors", "all", "--slots-per-node", "0"},
		"starts tasks one by one":          {"--trace", trace, "--market", "fifo", "--actors", "all", "--parallel", "gang"},
		"--actors":                         {"--trace", trace, "--market", "fifo", "--actors", "some"},
		// the command must refuse these before it reads a file
		"ends in .csv":                     {"--trace", trace + "x", "--market", "fifo", "--events", "events.txt"},
		"--nodes: must be from 1":          {"--trace", trace, "--market", "fifo", "--nodes", "0"},
		"the mechanism alone has no nodes": {"--trace", trace, "--market", "fifo", "--slots-per-node", "2"},
		"the market gives 3 slots (C), and the machine has only 2": {"--trace", trace, "--market", file(t, "c.yaml", "mechanism: deadline\nC: 3\n"), "--nodes", "2"},
		"each of the 3 groups needs a slot":                        {"--trace", trace, "--market", file(t, "g.yaml", "mechanism: deadline\ngroups: 3\n")},
		"--bids":                                                   {"--trace", trace, "--market", "fifo", "--bids", trace + "x"},
		"a mechanism alone has no nodes: use --actors all":         {"--trace", trace, "--market", "fifo", "--parallel", "wide"},
		"runs serial tasks and cannot keep":                        {"--trace", trace, "--market", "highest-bid", "--parallel", "gang"},
	} {
		if _, err := run(args...); messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error is %v, want %q", args, err, want)
		}
	}
}

// The file of the market sets 50 slots. The header of the log has a smaller number of processors. All measures must use
// the 50 slots.
func TestAMarketSaysHowManySlotsThereAre(t *testing.T) {
	trace := file(t, "log.swf", log())
	for mechanism, parameter := range map[string]string{"deadline": "C", "batch-queue": "N", "fifo": "nodes"} {
		market := file(t, "m.yaml", "mechanism: "+mechanism+"\n"+parameter+": 50\n")
		text, err := run("--trace", trace, "--market", market, "--json")
		var r measure.Report
		if err != nil || json.Unmarshal([]byte(text), &r) != nil || r.Trace.Nodes != 50 || r.Results.Utilisation > 0.2 {
			t.Errorf("%s: %v %s", mechanism, err, text)
		}
	}
}

// Without completed jobs, the report must have no waiting time, instead of 0.
func TestNothingIsSaidOfNobody(t *testing.T) {
	market := file(t, "m.yaml", "mechanism: deadline\nslot: 100h\n")
	text, err := run("--trace", file(t, "log.swf", log()), "--market", market, "--by", "user")
	if err != nil {
		t.Fatal(err)
	}
	instant := "; MaxProcs: 2\n1 7 -1 0 1 -1 -1 -1 -1 -1 1 1 1 -1 1 -1 -1 -1\n"
	if text, err := run("--trace", file(t, "log.swf", instant), "--market", "fifo"); err != nil || !strings.Contains(text, "load -;") {
		t.Errorf("a job of no time: %v\n%s", err, text)
	}
	for _, want := range []string{`wait +- +- +- +-\n`, `payment +- +- +- +-\n`, `revenue +0 +nobody pays\n`, `user 0 +4 +0% +- +- +- +0% `} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%s is missing:\n%s", want, text)
		}
	}
}

func TestFilesAreWritten(t *testing.T) {
	trace, dir := file(t, "log.swf", log()), t.TempDir()
	events := filepath.Join(dir, "events.csv")
	if _, err := run("--trace", trace, "--market", "highest-bid", "--events", events); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(events)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	changes := strings.Count(string(text), ",suspended,") + strings.Count(string(text), ",resumed,")
	if len(lines) != 31+changes || !strings.HasPrefix(lines[1], "0,submitted,1,3,0,1,1,") || !strings.HasPrefix(lines[2], "0,started,1,") {
		t.Errorf("%d lines: %s", len(lines), text)
	}
}

func TestBidsFromAFile(t *testing.T) {
	trace := file(t, "log.swf", log())
	text, err := run("--trace", trace, "--market", "highest-bid", "--json", "--bids", file(t, "bids.csv", "job,value\n1,1000\n"))
	if err != nil || !strings.Contains(text, "has bids for 1 of 10 jobs") {
		t.Errorf("%v %s", err, text)
	}
	for by, want := range map[string]string{"value": "value from the file", "shading": "bid from the file"} {
		text, err := run("--trace", trace, "--market", "highest-bid", "--by", by, "--bids", file(t, "bids.csv", "job,value,bid\n1,1000,\n2,,7\n"))
		if n := map[string]string{"value": "1", "shading": "2"}[by]; err != nil || !regexp.MustCompile(want+" +"+n+" ").MatchString(text) {
			t.Errorf("%s: %v %s", by, err, text)
		}
	}
}

// Numbers, durations and dates must become seconds since the log's beginning.
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
	if got, want := line("running", 0, 10*time.Second), "░░░░░░░░░░░░░░░░░░░░░░░░ 0% 10s so far  running"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := line("running", 0.25, 10*time.Second), "██████░░░░░░░░░░░░░░░░░░ 25% 30s left  running"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A step of unknown length shows the passed time: on a terminal each second, elsewhere after ten seconds and then each
// minute. After End, nothing is written.
func TestProgressIsShown(t *testing.T) {
	var out strings.Builder
	now := time.Now()
	p := newProgress(&out, false, now)
	p.Step("measuring")
	for range 75 {
		now = now.Add(time.Second)
		p.show(now)
	}
	if got := out.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "measuring, ") || !strings.Contains(got, "so far\nmeasuring, 1m") {
		t.Errorf("without a terminal: %q", got)
	}
	out.Reset()
	p = newProgress(&out, true, now)
	p.Step("measuring")
	p.show(now.Add(5 * time.Second))
	p.At(1, 4)
	p.show(now.Add(12 * time.Second))
	p.End()
	ended := out.Len()
	p.show(now.Add(time.Hour))
	if got := out.String(); !strings.Contains(got, "so far") || !strings.Contains(got, "25%") || len(got) != ended {
		t.Errorf("on a terminal: %q", got)
	}
}

// A step of the progress display can have several rounds. The time left in the present round must be computed from the
// speed of this round only.
func TestTheTimeLeftIsOfTheRound(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, false, time.Now())
	p.Step("searching")
	now := p.began
	p.set(100, 100, now.Add(100*time.Minute))
	p.set(1, 100, now.Add(101*time.Minute))
	p.show(now.Add(101 * time.Minute))
	if got := out.String(); !strings.Contains(got, "1h39m left") {
		t.Errorf("99 of 100 are left, each of a minute: %q", got)
	}
}

// The file of a market may be a device without an end. It must be refused before it fills the memory. If a market names
// an unknown mechanism, the error must list the mechanisms.
func TestFilesOfAStudyEnd(t *testing.T) {
	trace := file(t, "log.swf", "1 0 0 10 1 -1 -1 1 -1 -1 1 1 1 1 1 -1 -1 -1\n")
	if _, err := run("--trace", trace, "--market", "/dev/zero"); err == nil || !strings.Contains(err.Error(), "limit of 1 MiB") {
		t.Errorf("%v", err)
	}
	if _, err := run("--trace", trace, "--market", "highestbid"); err == nil || !strings.Contains(err.Error(), "no mechanism of that name: there are highest-bid, ") {
		t.Errorf("%v", err)
	}
}

// The log is one year of a real machine. Each record must be read or skipped, and every job must complete.
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

// The tables must have at most 80 columns and one measure of welfare. A second run must print the same bytes.
func TestCompare(t *testing.T) {
	trace := file(t, "log.swf", log())
	a, b := file(t, "a.yaml", "mechanism: proportional\nalpha: 1\nworth: deadline\n"), file(t, "b.yaml", "mechanism: deadline\n")
	args := []string{"--trace", trace, "--draws", "2", "--compare", "fifo," + a + "," + b + ",fairshare,highest-bid"}
	text, err := run(args...)
	if err != nil || !strings.Contains(text, "Welfare (worth by run) and") || !strings.Contains(text, "Differences from fifo, paired") {
		t.Fatalf("%v %s", err, text)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "  ") && len([]rune(line)) > 81 {
			t.Errorf("%d columns: %s", len([]rune(line))-1, line)
		}
	}
	out, err := run(append(args, "--json")...)
	var d struct {
		Worth   string
		Markets []struct {
			Name     string
			Measures map[string]struct{ Mean float64 }
		}
	}
	if err := errors.Join(err, json.Unmarshal([]byte(out), &d)); err != nil || d.Worth != "run" || len(d.Markets) != 5 || d.Markets[1].Name != "a" {
		t.Fatalf("%v %s", err, out)
	}
	for _, m := range d.Markets {
		if w, ok := m.Measures["welfare"]; !ok || w.Mean > 1 {
			t.Errorf("%+v", m)
		}
	}
	if again, _ := run(append(args, "--json")...); again != out {
		t.Error("another run writes other bytes")
	}
}

func TestCompareRefuses(t *testing.T) {
	trace := file(t, "log.swf", log())
	four := file(t, "four.yaml", "mechanism: fifo\nnodes: 4\n")
	for want, args := range map[string][]string{
		"--market: --compare names":                 {"--compare", "fifo", "--market", "fifo"},
		"--compare: name each market once":          {"--compare", "fifo,fifo"},
		"--draws: must be from 1":                   {"--compare", "fifo", "--draws", "0"},
		"--worth: must be run":                      {"--compare", "fifo", "--worth", "joy"},
		"--draws: is for comparisons":               {"--market", "fifo", "--draws", "2"},
		"--by: does not work with comparisons":      {"--compare", "fifo", "--by", "user"},
		"--events: writes the events of one market": {"--compare", "fifo", "--events", "e.csv"},
		"has 4 slots":                               {"--compare", "fifo," + four},
		"no mechanism of that name":                 {"--compare", "fifo,no.yaml"},
	} {
		if _, err := run(append([]string{"--trace", trace}, args...)...); messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error is %v, want %q", args, err, want)
		}
	}
}

func TestStrategic(t *testing.T) {
	trace := file(t, "log.swf", log())
	text, err := run("--trace", trace, "--strategic", "--passes", "3", "--compare", "highest-bid,fifo")
	if err != nil || !strings.Contains(text, "WELFARE") || !strings.Contains(text, "PAYOFF, ALL TRUE") {
		t.Fatalf("%v %s", err, text)
	}
	for line := range strings.Lines(text) {
		if len([]rune(line)) > 81 {
			t.Errorf("%d columns: %s", len([]rune(line))-1, line)
		}
	}
	for want, args := range map[string][]string{
		"--passes: must be from 1":  {"--market", "fifo", "--strategic", "--passes", "0"},
		"--passes: is only for":     {"--market", "fifo", "--passes", "2"},
		"--draws: with --strategic": {"--market", "fifo", "--strategic", "--draws", "2"},
		"--worth: must be run":      {"--market", "fifo", "--strategic", "--worth", "joy"},
		"--actors: --strategic":     {"--market", "fifo", "--strategic", "--actors", "all"},
		"--market: name the market": {"--strategic"},
		"has no events":             {"--market", "fifo", "--strategic", "--events", "x.csv"},
	} {
		if _, err := run(append([]string{"--trace", trace}, args...)...); messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error is %v, want %q", args, err, want)
		}
	}
}
