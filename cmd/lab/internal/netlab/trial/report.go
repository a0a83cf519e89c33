package trial

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// Report is the result of a trial.
type Report struct {
	Scenario string   `json:"scenario"`
	Network  string   `json:"network"`
	Sites    string   `json:"sites"`
	Seconds  float64  `json:"seconds"`
	Numbers  []Number `json:"numbers"`
	Broken   []string `json:"broken"` // broken promises, one sentence each
}

// Number is a measured value with its name.
type Number struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// Value returns the value with a name, or false if there is none.
func (r *Report) Value(name string) (float64, bool) {
	i := slices.IndexFunc(r.Numbers, func(n Number) bool { return n.Name == name })
	if i < 0 {
		return 0, false
	}
	return r.Numbers[i].Value, true
}

func (r *Report) add(name string, value float64, unit string) {
	r.Numbers = append(r.Numbers, Number{name, value, unit})
}

func (r *Report) count(name string, n int) { r.add(name, float64(n), "") }

func (r *Report) time(name string, d time.Duration) {
	r.add(name, float64(d.Round(time.Microsecond))/float64(time.Millisecond), "ms")
}

func (r *Report) times(name string, all []time.Duration) {
	if len(all) == 0 {
		return
	}
	sorted := slices.Sorted(slices.Values(all))
	r.time(name+", median", quantile(sorted, 0.5))
	r.time(name+", 99th percentile", quantile(sorted, 0.99))
	r.time(name+", longest", sorted[len(sorted)-1])
}

// quantile returns the q-quantile of sorted values: the smallest value x such that at least the fraction q of all
// values is at most x.
func quantile(sorted []time.Duration, q float64) time.Duration {
	i := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

func (r *Report) breaks(format string, arguments ...any) {
	r.Broken = append(r.Broken, fmt.Sprintf(format, arguments...))
}

// breaksEach adds broken promises of one kind to the report, one for each sentence. It adds the first ten sentences,
// and then one line with the number of the other sentences.
func (r *Report) breaksEach(sentences []string) {
	const most = 10
	for i, sentence := range sentences {
		if i == most {
			r.breaks("and %d more like these", len(sentences)-most)
			return
		}
		r.breaks("%s", sentence)
	}
}

// Print writes the report as a table.
func (r *Report) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s, on %s, in %.0f s\n", r.Scenario, r.Sites, r.Network, r.Seconds)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, n := range r.Numbers {
		fmt.Fprintf(table, "  %s\t%s\t%s\t\n", n.Name, n.text(), n.Unit)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, b := range r.Broken {
		fmt.Fprintf(w, "  BROKEN: %s\n", b)
	}
	if len(r.Broken) == 0 {
		fmt.Fprintf(w, "  every promise was kept\n")
	}
	return nil
}

func (n *Number) text() string {
	if n.Value == float64(int64(n.Value)) {
		return fmt.Sprintf("%d", int64(n.Value))
	}
	return fmt.Sprintf("%.2f", n.Value)
}
