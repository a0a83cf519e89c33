package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/candor-grid/candor/deploy/netlab/trial"
)

// within bounds the run of a lab: far more than it takes.
const within = 3 * time.Minute

// TestFailover kills a leader of the auctioneer, one of the bank and a server that
// leads neither under load, in network namespaces where the machine permits them and
// on loopback addresses elsewhere, and wants nothing to be lost.
func TestFailover(t *testing.T) {
	report := run(t, "--short", "--scenario", "failover")
	t.Logf("hosts were %s", report.Network)
	for _, broken := range report.Broken {
		t.Error(broken)
	}
	for name, least := range map[string]float64{
		"hosts killed": 3, "acknowledged": 30, "until a client is served again, longest": 1,
	} {
		if v, ok := report.Value(name); !ok || v < least {
			t.Errorf("%s: %v, %v; want at least %v", name, v, ok, least)
		}
	}
	for _, name := range []string{"acknowledged and lost", "acknowledged and not completed", "given up"} {
		if v, ok := report.Value(name); !ok || v != 0 {
			t.Errorf("%s: %v, %v; want none", name, v, ok)
		}
	}
}

// run builds the lab and runs it as a program: it has to enter namespaces.
func run(t *testing.T, arguments ...string) (report trial.Report) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	program := filepath.Join(t.TempDir(), "lab")
	if output, err := exec.CommandContext(ctx, "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the lab: %v\n%s", err, output)
	}
	var progress bytes.Buffer
	c := exec.CommandContext(ctx, program, append(arguments, "--json")...)
	c.Stderr = &progress
	output, err := c.Output()
	if err != nil && len(output) == 0 {
		t.Fatalf("%v: %v\n%s", c.Args, err, &progress)
	}
	if err := json.Unmarshal(output, &report); err != nil {
		t.Fatalf("the report is not one: %v: %s\n%s", err, output, &progress)
	}
	t.Logf("%s", &progress)
	return report
}

func TestWhatDoesNotExistIsRefused(t *testing.T) {
	f := &flags{scenarios: "failover,nonesuch"}
	if err := f.check(); err == nil {
		t.Error("a lab takes a scenario that does not exist")
	}
	if err := (&flags{scenarios: "failover,upgrade"}).check(); err != nil {
		t.Error(err)
	}
}
