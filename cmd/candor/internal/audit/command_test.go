package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// trace writes a log of forty jobs that compete for two slots.
func trace(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "%d %d -1 %d 1 -1 -1 -1 90 -1 1 %d 1 -1 1 -1 -1 -1\n", i+1, 20*i, 60+(i*37)%200, i%3)
	}
	path := filepath.Join(t.TempDir(), "log.swf")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
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

func market(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "market.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The audit of a market with first prices must fail with exit code 1. The audit of a market with a truthful rule must
// pass.
func TestTheThresholdDecidesTheExitCode(t *testing.T) {
	log := trace(t)
	first := market(t, "mechanism: highest-bid\nprice: first\n")
	honest := market(t, "mechanism: deadline\nslot: 20s\n")
	common := []string{"--trace", log, "--nodes", "2", "--jobs", "20", "--lies", "value,arrival", "--json", "--threshold", "0.001"}
	text, err := run(append(common, "--market", first)...)
	var pays *Pays
	if !errors.As(err, &pays) || pays.ExitCode() != 1 {
		t.Errorf("first price: %v", err)
	}
	var d struct {
		Pays  bool
		Kinds []struct {
			Kind    string
			Largest float64
		}
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil || !d.Pays || len(d.Kinds) != 2 || d.Kinds[0].Kind != "value" || d.Kinds[0].Largest < 0.001 {
		t.Errorf("%v %s", err, text)
	}
	if again, _ := run(append(common, "--market", first)...); again != text {
		t.Error("another run writes other bytes")
	}
	if text, err := run(append(common, "--market", honest)...); err != nil || !strings.Contains(text, `"pays": false`) {
		t.Errorf("deadline: %v %s", err, text)
	}
}

// A fixed lie is a lie that all jobs tell. With the flag --fail-above, the audit fails if a fixed lie gains more than a
// number. With the flag --zero, it fails if a fixed lie of a kind gains anything. In a market with first prices, the
// command must fail with each flag. With a truthful rule, it must succeed with each flag.
func TestFixedLiesDecideTheExitCode(t *testing.T) {
	common := []string{"--trace", trace(t), "--nodes", "2", "--jobs", "20", "--lies", "value", "--seeds", "2"}
	for _, flags := range [][]string{{"--fail-above", "0.02"}, {"--zero", "value"}} {
		args := append(append([]string{}, common...), flags...)
		text, err := run(append(args, "--market", market(t, "mechanism: highest-bid\nprice: first\n"))...)
		var pays *Pays
		if !errors.As(err, &pays) || !strings.Contains(err.Error(), "value") || !strings.Contains(text, "fired: ") {
			t.Errorf("first price, %v: %v %s", flags, err, text)
		}
		text, err = run(append(args, "--row", "--market", market(t, "mechanism: deadline\nslot: 20s\n"))...)
		if err != nil || !strings.HasPrefix(text, "| ") || strings.Count(text, "\n") != 1 {
			t.Errorf("deadline, %v: %v %s", flags, err, text)
		}
	}
}

// An interrupted audit with --row must print no row, because the row would cover only some of the jobs.
func TestAnInterruptedRowIsNoRow(t *testing.T) {
	ended, end := context.WithCancel(context.Background())
	end()
	c := Command()
	c.SetArgs([]string{"--trace", trace(t), "--nodes", "2", "--jobs", "20", "--lies", "value", "--row", "--market", "fifo"})
	c.SetOut(io.Discard)
	told := make(words, 100)
	c.SetErr(told)
	if err := c.ExecuteContext(ended); messages.KindOf(err) != messages.Unavailable {
		t.Errorf("interrupted: %v", err)
	}
	for said := range told { // wait: another goroutine prints the results
		if strings.Contains(said, "a second interrupt") {
			return
		}
	}
}

type words chan string

func (w words) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

func TestTable(t *testing.T) {
	text, err := run("--trace", trace(t), "--nodes", "2", "--jobs", "3", "--market", "highest-bid")
	if err != nil || !strings.Contains(text, "LIE ABOUT") || !strings.Contains(text, "collusion") {
		t.Errorf("%v %s", err, text)
	}
}

// TestVerbs searches twice for sequences of commands with which an owner gains. Both searches must print the same, and
// no gain may be above the limit of 0.5.
func TestVerbs(t *testing.T) {
	args := []string{"--trace", trace(t), "--nodes", "2", "--jobs", "4", "--tries", "1", "--market", "fifo", "--verbs", "--fail-above", "0.5"}
	text, err := run(append(args, "--json")...)
	if err != nil || !strings.Contains(text, `"sequence"`) || !strings.Contains(text, `"pays": false`) {
		t.Errorf("%v %s", err, text)
	}
	if again, _ := run(append(args, "--json")...); again != text {
		t.Error("another run writes other bytes")
	}
}

func TestBadCommandLines(t *testing.T) {
	log := trace(t)
	for want, args := range map[string][]string{
		"--lies":                       {"--trace", log, "--nodes", "2", "--market", "fifo", "--lies", "white"},
		"--lies: names no kind":        {"--trace", log, "--nodes", "2", "--market", "fifo", "--lies", "", "--threshold", "0"},
		"--lies: names value twice":    {"--trace", log, "--nodes", "2", "--market", "fifo", "--lies", "value,split,value"},
		"--threshold: must be from 0 ": {"--trace", log, "--nodes", "2", "--market", "fifo", "--threshold", "1e300"},
		"--threshold":                  {"--trace", log, "--nodes", "2", "--market", "fifo", "--threshold", "-1"},
		"--fail-above":                 {"--trace", log, "--nodes", "2", "--market", "fifo", "--fail-above", "-1"},
		"--zero":                       {"--trace", log, "--nodes", "2", "--market", "fifo", "--zero", "white"},
		"--seeds: must be from 1":      {"--trace", log, "--nodes", "2", "--market", "fifo", "--seeds", "0"},
		"--tries: must be from 1":      {"--trace", log, "--nodes", "2", "--market", "fifo", "--verbs", "--tries", "0"},
		"--lies: changes what jobs":    {"--trace", log, "--nodes", "2", "--market", "fifo", "--verbs", "--lies", "value"},
		"--jobs: must":                 {"--trace", log, "--nodes", "2", "--market", "fifo", "--jobs", "0"},
		"--trace":                      {"--market", "fifo"},
	} {
		if _, err := run(args...); messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error is %v, want %q", args, err, want)
		}
	}
}

// With --keep, the command writes its report into the state directory. The directory must have the last report of each
// market, with its date and settings. The names of files in a report must have no directories.
func TestKeep(t *testing.T) {
	state, log := t.TempDir(), trace(t)
	if _, err := run("--trace", log, "--market", "fifo", "--keep", filepath.Join(state, "none")); messages.KindOf(err) != messages.Invalid {
		t.Errorf("no directory: %v", err)
	}
	if _, err := run("--trace", log, "--market", "fifo", "--keep", ""); messages.KindOf(err) != messages.Invalid {
		t.Errorf("an empty name: %v", err)
	}
	file := market(t, "name: night\nmechanism: deadline\nslot: 20s\n")
	for _, seeds := range []string{"1", "2"} {
		if text, err := run("--trace", log, "--nodes", "2", "--jobs", "3", "--lies", "value", "--market", file, "--seed", "7", "--seeds", seeds, "--keep", state); err != nil || !strings.Contains(text, "LIE ABOUT") {
			t.Fatalf("%v %s", err, text)
		}
	}
	files, err := filepath.Glob(filepath.Join(state, "audits", "*"))
	if err != nil || len(files) != 1 || filepath.Base(files[0]) != "night.json" {
		t.Fatalf("kept: %v (%v)", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var kept document
	if err := json.Unmarshal(text, &kept); err != nil || kept.Made == "" || kept.Seed != 7 || kept.Redraws != 2 || kept.Trace != "log.swf" || len(kept.Kinds) != 1 ||
		!strings.HasPrefix(kept.Command, "candor audit") || !strings.Contains(kept.Command, "--market market.yaml") || strings.Contains(string(text), filepath.Dir(log)) {
		t.Errorf("kept: %v %+v", err, kept)
	}
}
