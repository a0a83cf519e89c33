package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/lab/internal/faults"
	"github.com/candor-grid/candor/messages"
)

func planFile(t *testing.T, text string) string {
	name := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// cut is a plan in which a site is cut off for a long time.
const cut = `jobs: 2
trades: 2
events:
- {at: 10s, kind: isolate, target: north, for: 150s}
- {at: 20s, kind: crash, target: west.m1, for: 10s}
`

func TestFaultsAreReported(t *testing.T) {
	var out, errs strings.Builder
	f := options{plan: planFile(t, cut), seeds: 3, from: 5, json: true}
	if err := f.run(&out, &errs); err != nil {
		t.Fatal(err)
	}
	var r faults.Report
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		t.Fatal(err)
	}
	if r.Seeds != 3 || r.Faults[faults.Isolate] != 3 || r.Faults[faults.Crash] != 3 || r.Steps == 0 || r.Jobs == 0 || r.SimulatedHours < 0.1 {
		t.Errorf("%+v", r)
	}
	out.Reset()
	f.json = false
	if err := f.run(&out, &errs); err != nil || errs.Len() > 0 {
		t.Fatal(err, errs.String())
	}
	if !regexp.MustCompile(`(?s)seeds +3\n.*violations +0\n.*isolate +3\n`).MatchString(out.String()) {
		t.Errorf("%s", out.String())
	}
}

// With an inserted bug, the failing seed must be printed before its plan is shrunk. A run of the printed plan must fail
// in the same way.
func TestAViolationIsToldAndReplays(t *testing.T) {
	var out, errs strings.Builder
	f := options{plan: planFile(t, "jobs: 3\n"), seeds: 1, from: 1, bug: faults.NoDedupe}
	err := f.run(&out, &errs)
	if messages.KindOf(err) != messages.Internal || !strings.HasPrefix(errs.String(), "seed 1: ") {
		t.Fatalf("%v; told %q", err, errs.String())
	}
	_, plan, found := strings.Cut(out.String(), "\nseed 1: ")
	if !found {
		t.Fatal(out.String())
	}
	_, plan, _ = strings.Cut(plan, "\n")
	if !regexp.MustCompile(`(?m)^# .*the book: submit .*\n(#.*\n)*# .*VIOLATED: `).MatchString(plan) {
		t.Errorf("no story in\n%s", plan)
	}
	out.Reset()
	again := options{plan: planFile(t, plan), seeds: 100, from: 77, bug: faults.NoDedupe}
	if err := again.run(&out, &errs); err == nil || !strings.Contains(out.String(), "seeds            1\n") || !strings.Contains(out.String(), "invariant 2") {
		t.Errorf("%v\n%s\n%s", err, plan, out.String())
	}
}

func TestMistakesOfFaultsAreTold(t *testing.T) {
	for _, c := range []struct {
		f    options
		kind messages.Kind
		want string
	}{
		{options{plan: filepath.Join(t.TempDir(), "none.yaml"), seeds: 1}, messages.NotFound, "the plan: "},
		{options{plan: "/dev/zero", seeds: 1}, messages.Invalid, "more than 1 MiB"},
		{options{plan: planFile(t, cut), seeds: 0}, messages.Invalid, "--seeds: must be from 1"},
		{options{plan: planFile(t, "node: 1\n"), seeds: 1}, messages.Invalid, "plan.yaml:1:1: "},
	} {
		var out, errs strings.Builder
		if err := c.f.run(&out, &errs); messages.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error is %v, want %q", err, c.want)
		}
	}
}
