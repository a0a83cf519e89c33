package bids

import (
	"math"
	"strings"
	"testing"

	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
)

func crowd(n int) *workload.Workload {
	w := &workload.Workload{Nodes: 4, Users: []int64{3, 8}, Groups: []int64{1}}
	for i := range n {
		w.Jobs = append(w.Jobs, workload.Job{Number: int64(i + 1), Line: i + 2, Submit: float64(10 * i), Runtime: 100, Asked: 500, Width: 2, User: i % 2})
	}
	return w
}

// TestDrawsFollowTheModel compares the means of 20,000 draws with the means of the model. Each difference may be at
// most four standard deviations.
func TestDrawsFollowTheModel(t *testing.T) {
	w := crowd(20_000)
	m := Default()
	m.Shading = Shading{Aggressive: 0.1, Beta: 0.6, Others: 0.1}
	var value, slack, aggressive, low float64
	for i, b := range m.Draw(w, 7) {
		value += b.Value / 20_000
		slack += (b.Deadline - w.Jobs[i].Submit - 100) / 100 / 20_000
		if b.Aggressive {
			aggressive += 1.0 / 20_000
		}
		low = max(low, 1-b.Rate/b.Value)
		if !b.Aggressive && b.Rate < 0.9*b.Value-1e-6 || b.Rate > b.Value || b.Value <= 0 || b.Length != 100 || math.Abs(b.Budget-10*b.Rate*200) > 1e-3 {
			t.Fatalf("%+v", b)
		}
	}
	// Values from a normal distribution with mean 30 and standard deviation 15 are drawn until one is positive. The
	// mean of the positive values is 30.83.
	if want := 0.8*30.83 + 0.2*150; math.Abs(value-want) > 1.5 {
		t.Errorf("mean value %v, want %v", value, want)
	}
	if math.Abs(slack-2) > 0.07 || math.Abs(aggressive-0.1) > 0.01 || low < 0.55 {
		t.Errorf("mean slack %v, aggressive %v, largest shading %v", slack, aggressive, low)
	}
}

// A job's bid must not depend on the other jobs. A change of one parameter must not change the numbers that depend on
// other parameters.
func TestAJobsBidIsItsOwn(t *testing.T) {
	w := crowd(50)
	m := Default()
	all := m.Draw(w, 3)
	some := *w
	some.Jobs = w.Jobs[20:30]
	for i, b := range m.Draw(&some, 3) {
		if b != all[20+i] {
			t.Fatalf("job %d: %+v alone, %+v among others", i, b, all[20+i])
		}
	}
	m.Shading.Others = 0.5
	for i, b := range m.Draw(w, 3) {
		if b.Value != all[i].Value || b.Deadline != all[i].Deadline {
			t.Fatalf("shading moved the value or the deadline of job %d", i)
		}
	}
	if m.Draw(w, 4)[0] == all[0] {
		t.Error("another seed draws the same")
	}
}

func TestOtherModels(t *testing.T) {
	w := crowd(4000)
	for name, want := range map[string]float64{"normal": 50.9, "lognormal": 50, "exponential": 50, "uniform": 55, "constant": 50} {
		m := Default()
		m.Value.Distribution = name
		mean := 0.0
		for _, b := range m.Draw(w, 1) {
			mean += b.Value / 4000
		}
		if math.Abs(mean-want) > 3 {
			t.Errorf("%s: mean %v, want %v", name, mean, want)
		}
	}
	m := Default()
	m.Users, m.Deadline.Slack, m.Length.Declared = Users{Spread: 0.5, By: "user"}, "none", "asked"
	all := m.Draw(w, 1)
	if !math.IsInf(all[0].Deadline, 1) || all[0].Length != 500 || all[0].High != all[2].High {
		t.Errorf("%+v", all[0])
	}
}

func TestFiles(t *testing.T) {
	for name, text := range map[string]string{
		"csv":  "# bids\njob, value, bid, deadline\n2, 7, 6, 900\n3, 5,,\n",
		"mark": "\xef\xbb\xbfjob,value,bid,deadline\n2,7,6,900\n3,5,,\n",
	} {
		w := crowd(4)
		m := Default()
		drawn := m.Draw(w, 1)
		got := append([]Bid{}, drawn...)
		if n, err := Read(name, []byte(text), w, got); err != nil || n != 2 {
			t.Fatalf("%s: %d, %v", name, n, err)
		}
		if got[1].Value != 7 || got[1].Rate != 6 || got[1].Deadline != 900 || got[2].Rate != 5 || got[2].Deadline != drawn[2].Deadline || got[0] != drawn[0] {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestMistakesInFilesAreLocated(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "f:1: is empty",
		"job,valu\n1,2\n":         `f:1: column "valu"`,
		"value\n1\n":              "f:1: column job is missing",
		"job,value\n1,2\n2,x\n":   `f:3: value: "x" is not a number`,
		"job,value\n1,2\n2,NaN\n": `f:3: value: "NaN"`,
		"job,value\n1,2,3\n":      "f:2: wrong number of fields",
		"job,value\n1,-2\n":       "f:2: job 1: value",
		"job,value\n1,2\n1,3\n":   "f:3: job 1: line 2 already has this job",
		"job,value\n77,2\n":       "f: none of the 1 jobs",
		"job,value\n,2\n":         "f:2: job: is missing",
		"job,length\n1,1e10\n":    "f:2: job 1: length: must be a number above 0, at most 4e+09, is 1e+10",
		"job,deadline\n1,-1\n":    "f:2: job 1: deadline: must be a number from 0 to 1e+12, is -1",
	} {
		w := crowd(2)
		if _, err := Read("f", []byte(text), w, make([]Bid, 2)); messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want %q", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("job,value\n1,2\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		into := make([]Bid, 2)
		if _, err := Read("f", text, crowd(2), into); err == nil && (into[0].Value < 0 || into[1].Rate < 0) {
			t.Fatalf("%+v", into)
		}
	})
}
