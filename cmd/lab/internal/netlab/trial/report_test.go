package trial

import (
	"strings"
	"testing"
	"time"
)

func TestQuantiles(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		of   []time.Duration
		q    float64
		want time.Duration
	}{
		{hundred, 0.5, 50}, {hundred, 0.99, 99}, {hundred, 1, 100},
		{hundred[:1], 0.5, 1}, {hundred[:1], 0.99, 1}, {hundred[:3], 0.5, 2}, {hundred[:3], 0.99, 3},
	} {
		if got := quantile(c.of, c.q); got != c.want {
			t.Errorf("quantile %v of %d values is the %d., want the %d.", c.q, len(c.of), got, c.want)
		}
	}
}

func TestReportSaysWhatWasBroken(t *testing.T) {
	r := Report{Scenario: "failover", Network: "loopback addresses", Sites: "west"}
	r.times("wait", []time.Duration{3 * time.Millisecond, time.Millisecond, 2500 * time.Microsecond})
	r.breaks("job %d was lost", 7)
	var text strings.Builder
	if err := r.Print(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"wait, median  2.50  ms", "wait, longest     3  ms", "BROKEN: job 7 was lost"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, &text)
		}
	}
	if strings.Contains(text.String(), "every promise was kept") {
		t.Error("the report says that every promise was kept")
	}
	if v, ok := r.Value("wait, longest"); !ok || v != 3 {
		t.Errorf("the longest wait is %v, %v", v, ok)
	}
	if v, ok := r.Value("nothing"); ok {
		t.Errorf("a number that was not measured is %v", v)
	}
}

func TestLongWaitsBreakPromises(t *testing.T) {
	const ms = time.Millisecond
	killed := blow{name: "killed", median: 500 * ms, longest: 1500 * ms}
	for _, c := range []struct {
		of     blow
		waits  []time.Duration
		broken int
	}{
		{killed, nil, 0},
		{killed, []time.Duration{100 * ms, 500 * ms, 1500 * ms}, 0},
		{killed, []time.Duration{100 * ms, 501 * ms, 1501 * ms}, 2},
		{blow{name: "isolated"}, []time.Duration{time.Hour}, 0},
	} {
		trial := trial{}
		if trial.checkWaits(c.of, c.waits); len(trial.Broken) != c.broken {
			t.Errorf("%v: %v", c.waits, trial.Broken)
		}
	}
}
