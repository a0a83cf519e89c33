package audit

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestVerbsFindTheHole: without the rule that an attempt which its program ended is, for prices, the
// completion of its task, the search finds in a deadline market who declares more than is needed, has
// the result and fails. With the rule it finds nothing there, or under fifo.
func TestVerbsFindTheHole(t *testing.T) {
	try := func(market string, planted bool) Verbed {
		p := crowd(t, 60, market, 1)
		p.Work.Nodes = 2
		v, err := search(p, VerbOptions{Jobs: 12, Tries: 4, Window: 20, planted: planted})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%q, hole %v: %+v", market, planted, v)
		return v
	}
	const deadline = "mechanism: deadline\nslot: 1m\n"
	out := regexp.MustCompile("exits with 1|cancels when the result|requeues when the result")
	found := try(deadline, true)
	if v := found; v.Mean < 0.01 || v.Gainers == 0 || !out.MatchString(v.Sequence) || !strings.Contains(v.Sequence, "declares a unit more") {
		t.Errorf("with the hole it finds: %+v", v)
	}
	h := newHunt(crowd(t, 60, deadline, 1), VerbOptions{Window: 20})
	h.problem.Work.Nodes = 2
	scenes, err := h.scenes(12, 1)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := h.best([]*candidate{{plan: found.plan}}, scenes, 1); err != nil || c[0].score() > 0 {
		t.Errorf("without the hole the same gains: %v %+v", err, c[0])
	}
	if v := try("mechanism: fifo\n", false); v.CI[0] > 0 || v.Tried < 50 {
		t.Errorf("without the hole it finds: %+v", v)
	}
}

// TestASequenceIsAChangeOfAnother: neighbours have from 1 to 4 steps, none of them twice.
func TestASequenceIsAChangeOfAnother(t *testing.T) {
	h := newHunt(crowd(t, 10, "mechanism: contract\n", 1), VerbOptions{})
	s := plan{1}
	for range 1000 {
		if s = s.neighbour(h.rng, h.steps); len(s) < 1 || len(s) > longest || slices.Max(s) >= len(h.steps) {
			t.Fatalf("%v", s)
		}
		if sorted := slices.Sorted(slices.Values(s)); len(slices.Compact(sorted)) < len(s) {
			t.Fatalf("%v does a step twice", s)
		}
	}
}
