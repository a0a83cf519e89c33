package audit

import (
	"reflect"
	"slices"
	"testing"

	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
)

func table(t *testing.T, market string) *core.Problem {
	t.Helper()
	m, err := rules.Decode("market", []byte(market))
	if err != nil {
		t.Fatal(err)
	}
	m.Worth = rules.ByRun
	w := &workload.Workload{Nodes: 2, Parallel: workload.Split, Users: []int64{1, 2, 3}, Groups: []int64{7}}
	for i := range 24 {
		w.Jobs = append(w.Jobs, workload.Job{Number: int64(i + 1), Line: i + 1, Submit: float64(20 * i), Runtime: float64(60 + i*37%200), Width: 1, User: i % 3})
	}
	return &core.Problem{Market: m, Work: w, Bids: m.Bids.Draw(w, 1), Seed: 1}
}

// In this test, each user chooses the lie that is best for it, given what the others declare. Waiting costs much. If
// winners pay their own bids (price: first), all users must in the end bid more than their true values, and be worse
// off than with true bids. In a fifo market, which reads no bids, nobody may change its rate. The same seed must give
// the same result.
func TestPlay(t *testing.T) {
	first, err := Play(table(t, "mechanism: highest-bid\nprice: first\n"), 30, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !first.Rest || first.Liars != 3 || first.Losers != 3 || first.Resting.Revenue < 1.2*first.Honest.Revenue {
		t.Errorf("first price: %+v", first)
	}
	again, err := Play(table(t, "mechanism: highest-bid\nprice: first\n"), 30, nil)
	if err != nil || !reflect.DeepEqual(first, again) {
		t.Errorf("another play: %v %+v", err, again)
	}
	fifo, err := Play(table(t, "mechanism: fifo\n"), 30, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range fifo.Users {
		if p.Lie != Truth && p.Lie != Split && p.Lie[:len(Arrival)] != Arrival {
			t.Errorf("fifo: %+v", p)
		}
	}
	if names, users := first.Lies(); len(names) == 0 || users[names[0]] == 0 {
		t.Errorf("%v %v", names, users)
	}
}

// Progress must be reported for each lie of each user.
func TestPlayTellsEachLie(t *testing.T) {
	var told []int
	all := 0
	if _, err := Play(table(t, "mechanism: fifo\n"), 1, func(done, of int) { told, all = append(told, done), of }); err != nil {
		t.Fatal(err)
	}
	if want := 3 * len(strategies()); all != want || len(told) != want || told[want-1] != want || !slices.IsSorted(told) {
		t.Errorf("%d of %d, want %d: %v", len(told), all, want, told)
	}
}

func TestNamed(t *testing.T) {
	have := map[string]bool{}
	for _, s := range strategies() {
		if have[s.name] {
			t.Errorf("two lies are named %s", s.name)
		}
		have[s.name] = true
	}
	for _, want := range []string{Truth, "value ×0.5", "deadline ×2", "length ×0.8", "arrival +1h0m0s", Split} {
		if !have[want] {
			t.Errorf("no %s in %v", want, have)
		}
	}
}
