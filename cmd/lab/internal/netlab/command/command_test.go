package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/lab/internal/netlab/trial"
	"github.com/candor-grid/candor/cmd/lab/internal/netlab/witness"
)

// builds is the directory of the compiled lab and of its candor binaries. It is removed after the last test.
var builds string

func TestMain(m *testing.M) {
	var err error
	if builds, err = os.MkdirTemp("", "netlab-builds-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(builds)
	os.Exit(code)
}

// program builds the lab and returns its path. A separate program is needed, because it must enter namespaces.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(builds, "lab")
	out, err := exec.Command("go", "build", "-o", path, "../../..").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("building the lab: %w\n%s", err, out)
	}
	return path, err
})

// TestLab kills leaders of the auctioneer and of the bank, and a server that leads neither, while users submit jobs. It
// uses network namespaces if the machine allows them, otherwise loopback addresses. Nothing may be lost.
func TestLab(t *testing.T) {
	reports := run(t, "--short", "--scenario", "failover")
	kept(t, reports)
	atLeast(t, &reports[0], "hosts killed", 3)
}

// On each host in turn, the present build replaces the last release. Then the last release replaces the present build,
// and then the present build comes back. Meanwhile users submit jobs, and each node always has a running task. While
// hosts with both builds run, each build must have led.
func TestUpgradeFromTheLastRelease(t *testing.T) {
	text, err := os.ReadFile("../../../../../deploy/packages/releases")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	last := strings.Fields(lines[len(lines)-1])
	if exec.Command("git", "cat-file", "-e", last[2]+"^{commit}").Run() != nil {
		t.Skipf("the commit of %s is not here: this is no clone with the whole history", last[0])
	}
	reports := run(t, "--short", "--scenario", "upgrade", "--from", last[2])
	kept(t, reports)
	atLeast(t, &reports[0], "hosts replaced", 18)
	atLeast(t, &reports[0], "long tasks that ran once through all of it", 13)
	atLeast(t, &reports[0], "times that the older build led beside the newer", 1)
	atLeast(t, &reports[0], "times that the newer build led beside the older", 1)
}

// kept checks that no promise was broken, nothing was lost, and no request was given up.
func kept(t *testing.T, reports []trial.Report) {
	t.Helper()
	if len(reports) != 1 {
		t.Fatalf("%d reports of one trial", len(reports))
	}
	r := reports[0]
	t.Logf("%s: hosts were %s", r.Scenario, r.Network)
	for _, broken := range r.Broken {
		t.Errorf("%s: %s", r.Scenario, broken)
	}
	atLeast(t, &r, "acknowledged", 30)
	for _, name := range []string{"acknowledged and lost", "acknowledged and not completed", "given up"} {
		if v, ok := r.Value(name); !ok || v != 0 {
			t.Errorf("%s: %s: %v, %v; want none", r.Scenario, name, v, ok)
		}
	}
}

// A peer attacks a site with the peer's own credentials. The site may lose at most the peer's limit and share.
func TestLiar(t *testing.T) {
	long(t)
	for _, r := range run(t, "--short", "--scenario", "liar") {
		for _, broken := range r.Broken {
			t.Error(broken)
		}
		atLeast(t, &r, "what the liar cost the site", 100)
	}
}

// The check must find no broken promise after random faults. It must find each of the faults that the test inserts into
// the clients' record.
func TestChaos(t *testing.T) {
	for _, r := range run(t, "--short", "--scenario", "chaos", "--acks", "200", "--faults", "4") {
		t.Logf("%+v", r.Numbers)
		for _, broken := range r.Broken {
			t.Error(broken)
		}
		atLeast(t, &r, "faults", 4)
		atLeast(t, &r, "acknowledged", 200)
	}
	for planted, c := range map[string]struct{ found, acks string }{
		witness.PlantLost:    {"lost", "100"}, // this fault is inserted at the first payment, so few requests are enough
		witness.PlantDoubled: {"doubled", "1000"},
		witness.PlantStale:   {"histories that fit no order", "1000"},
	} {
		if planted != witness.PlantLost && !allOf() { // each run takes one minute, so only one fault is inserted unless all are wanted
			continue
		}
		for _, r := range run(t, "--short", "--scenario", "chaos", "--control", planted, "--acks", c.acks) {
			if n, _ := r.Value(c.found); n < 1 || len(r.Broken) == 0 {
				t.Errorf("with a fault planted that is %q the witness says of %q %v, and %q", planted, c.found, n, r.Broken)
			}
		}
	}
}

// Single racks, or all racks at once, lose power. The site must still keep all promises that the scenario chaos checks.
func TestPower(t *testing.T) {
	long(t)
	for _, r := range run(t, "--scenario", "chaos", "--for", "30s", "--only", "power lost,power of all racks lost") {
		t.Logf("%+v", r.Numbers)
		for _, broken := range r.Broken {
			t.Error(broken)
		}
		atLeast(t, &r, "faults", 4)
	}
}

// One of two sites is restored from an older backup. The banks of both must name the instructions that this site lost.
func TestRestore(t *testing.T) {
	long(t)
	for _, r := range run(t, "--scenario", "restore") {
		t.Logf("%+v", r.Numbers)
		for _, broken := range r.Broken {
			t.Error(broken)
		}
		atLeast(t, &r, "instructions that the backup lacks, each named by both banks", 1)
		atLeast(t, &r, "acknowledged by east", 30)
	}
}

// Each link between two of three hosts is cut for a minute, in each direction and in both. Meanwhile every client must
// be served, and no task may run twice.
func TestLinks(t *testing.T) {
	long(t)
	for _, r := range run(t, "--scenario", "links") {
		t.Logf("%+v", r.Numbers)
		for _, broken := range r.Broken {
			t.Error(broken)
		}
		atLeast(t, &r, "acknowledged", 1000)
	}
}

// long skips a test that takes minutes, unless CANDOR_LAB asks for it.
func long(t *testing.T) {
	t.Helper()
	if !allOf() {
		t.Skip("takes minutes; CANDOR_LAB=all runs it")
	}
}

func allOf() bool { return os.Getenv("CANDOR_LAB") == "all" }

// atLeast checks that a trial has measured a number, and that it is large enough.
func atLeast(t *testing.T, r *trial.Report, name string, least float64) {
	t.Helper()
	if v, ok := r.Value(name); !ok || v < least {
		t.Errorf("%s: %s: %v, %v; want at least %v", r.Scenario, name, v, ok, least)
	}
}

func run(t *testing.T, arguments ...string) (reports []trial.Report) {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if deadline, bounded := t.Deadline(); bounded { // ends a lab that hangs early enough to print its progress
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-endWithin))
		defer cancel()
	}
	var progress bytes.Buffer
	c := exec.CommandContext(ctx, path, append([]string{"net", "--json", "--builds", builds}, arguments...)...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.Stderr, c.WaitDelay = &progress, endWithin/2
	output, err := c.Output()
	t.Logf("%s", &progress)
	if err != nil && len(output) == 0 {
		t.Fatalf("%v: %v", c.Args, err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(output)); decoder.More(); {
		var r trial.Report
		if err := decoder.Decode(&r); err != nil {
			t.Fatalf("a report is not one: %v: %s", err, output)
		}
		reports = append(reports, r)
	}
	return reports
}

// endWithin is the time that a lab needs to end its hosts.
const endWithin = 40 * time.Second

func TestWhatDoesNotExistIsRefused(t *testing.T) {
	if err := (&options{scenarios: "failover,nonesuch"}).check(); err == nil {
		t.Error("a lab takes a scenario that does not exist")
	}
	if err := (&options{scenarios: "chaos", control: "nonesuch"}).check(); err == nil {
		t.Error("a lab is to plant a fault that it does not know")
	}
	for _, fine := range []string{every, "failover,upgrade"} {
		if err := (&options{scenarios: fine}).check(); err != nil {
			t.Error(err)
		}
	}
}

func TestABrokenPromiseIsTheExitCode(t *testing.T) {
	f := &options{json: true}
	if code := f.summarise([]trial.Report{{Scenario: "failover"}, {Scenario: "cut", Broken: []string{"a job was lost"}}}); code != codeBroken {
		t.Errorf("a lab with a broken promise exits with %d", code)
	}
	if code := f.summarise([]trial.Report{{Scenario: "failover"}}); code != 0 {
		t.Errorf("a lab with every promise kept exits with %d", code)
	}
}
