package gu

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
	"github.com/candor-grid/candor/cmd/lab/internal/study/studytest"
)

// paperAllocation says which user has the slot in each unit of time from 100 to 104, in the paper's example.
// paperPayment is the payment of each of the two users.
var paperAllocation = []int{1, 1, 1, 2, 2}

const paperPayment = 22

func TestExampleIsThePapers(t *testing.T) {
	r, err := Example.Run(study.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := r.Numbers.(exampleNumbers)
	for k, user := range paperAllocation {
		if !slices.Contains(n.Units[user-1], 100+k) {
			t.Errorf("user %d does not have unit %d: %v", user, 100+k, n.Units)
		}
	}
	for i := range 2 {
		if n.Payments[i] != paperPayment {
			t.Errorf("user %d pays %v, want %v", i+1, n.Payments[i], paperPayment)
		}
	}
}

// small writes a log of 300 records under the file name of the RICC log, and returns its directory.
func small(t *testing.T) string {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	var log strings.Builder
	at := 0
	for i := range 300 {
		at += r.IntN(900)
		fmt.Fprintf(&log, "%d %d 0 %d %d -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1\n", i+1, at, int(6000*r.ExpFloat64()), 1+r.IntN(8))
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, riccFile), []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A small study must confirm the statements of the paper's text about value, tasks and payments.
func TestFiguresBearThePaperOut(t *testing.T) {
	r := studytest.Run(t, Figures, study.Options{Seed: 1, Quick: true, Traces: small(t)})
	n := r.Numbers.(*figureNumbers)
	for _, p := range n.ByCapacity {
		for _, o := range []outcome{p.Plain, p.Monotone, p.Grouped} {
			if !(o.Payments <= o.Value && o.Value > 0 && o.Tasks <= n.Tasks) {
				t.Errorf("capacity %v: %+v", p.Capacity, o)
			}
		}
	}
	first, last := n.ByCapacity[0], n.ByCapacity[len(n.ByCapacity)-1]
	if !(last.Monotone.Value > first.Monotone.Value && last.Monotone.Payments < first.Monotone.Payments) {
		t.Errorf("from %+v to %+v", first.Monotone, last.Monotone)
	}
	for _, r := range n.ByLambda {
		if r.Paper[0] != r.Monotone[0] {
			t.Errorf("the rules differ at λ = 0: %v and %v", r.Paper[0], r.Monotone[0])
		}
	}
}

func TestWithoutALog(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		if _, err := Figures.Run(study.Options{Seed: 1, Traces: dir}); err == nil || !strings.Contains(err.Error(), "--traces: ") {
			t.Errorf("%q: %v", dir, err)
		}
	}
}
