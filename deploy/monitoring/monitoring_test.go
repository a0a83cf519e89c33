package monitoring

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

type rules struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

type dashboard struct {
	Title, UID string
	Panels     []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct{ RefID, Expr, LegendFormat string }
}

func readRules(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile("rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all rules
	if err := yaml.UnmarshalWithOptions(text, &all, yaml.Strict()); err != nil {
		t.Fatalf("rules.yaml: %s", yaml.FormatError(err, false, true))
	}
	var list []rule
	for _, g := range all.Groups {
		list = append(list, g.Rules...)
	}
	if len(list) == 0 {
		t.Fatal("rules.yaml has no rules")
	}
	return list
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatalf("dashboard.json: %v", err)
	}
	return d
}

// functions are the only functions of PromQL that the monitoring files use.
var functions = []string{"rate", "increase", "absent", "histogram_quantile", "max_over_time", "sum", "min", "max", "count"}

// ofTargets are the labels that candor itself does not write. Prometheus adds the labels site, job and instance to each
// target, by the scrape configuration. A site adds the label replica.
var ofTargets = []string{"site", "job", "instance", "replica"}

func check(t *testing.T, where, expression string, known map[string]metric) {
	t.Helper()
	n := namesIn(expression)
	if len(n.metrics) == 0 || !balanced(expression) {
		t.Errorf("%s: %q names no metric, or its brackets do not close", where, expression)
	}
	may := slices.Clone(ofTargets)
	for _, m := range n.metrics {
		labels, ok := known[m]
		if !ok {
			t.Errorf("%s: a new site has no metric %s", where, m)
		}
		may = slices.AppendSeq(may, maps.Keys(labels))
	}
	for _, l := range n.labels {
		if !slices.Contains(may, l) {
			t.Errorf("%s: none of %v has a label %s", where, n.metrics, l)
		}
	}
	checkValues(t, where, expression, known)
	for _, f := range n.functions {
		if !slices.Contains(functions, f) {
			t.Errorf("%s: %s is no function of PromQL that is used here", where, f)
		}
	}
}

// own matches the names of this program's metrics.
var own = regexp.MustCompile(`\bcandor_[a-z_]+`)

// A site must have each metric that the rules and the dashboard use, with each label and each value of a label.
func TestMetricsExist(t *testing.T) {
	known := fresh(t)
	for _, r := range readRules(t) {
		check(t, r.Alert, r.Expr, known)
	}
	d := readDashboard(t)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			check(t, p.Title, target.Expr, known)
		}
	}
	for _, file := range []string{"rules.yaml", "dashboard.json"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range own.FindAllString(string(text), -1) { // templates are searched too
			if known[m] == nil {
				t.Errorf("%s: a new site has no metric %s", file, m)
			}
		}
	}
}

func TestNames(t *testing.T) {
	got := namesIn(`histogram_quantile(0.99, sum by (site, le) (rate(a_bucket{verb="x",kind!~"b|c{d}"}[5m]))) > 5e9 or on (job) max_over_time(count(b)[1d:5m]) == 0`)
	want := names{
		metrics:   []string{"a_bucket", "b"},
		labels:    []string{"verb", "kind", "site", "le", "job"},
		functions: []string{"histogram_quantile", "sum", "rate", "max_over_time", "count"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("found %+v, want %+v", got, want)
	}
	for _, wrong := range []string{"rate(a[5m)", "sum(a", "a)", "a{b(}"} {
		if balanced(wrong) {
			t.Errorf("%q is taken to be balanced", wrong)
		}
	}
}

// Each alert must have a unique name, a severity and an explanation.
func TestRules(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range readRules(t) {
		if !strings.HasPrefix(r.Alert, "Candor") || seen[r.Alert] {
			t.Errorf("alert %q: is no name of its own that begins with Candor", r.Alert)
		}
		seen[r.Alert] = true
		if s := r.Labels["severity"]; s != "page" && s != "ticket" {
			t.Errorf("%s: severity %q is neither page nor ticket", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s: lacks a summary or a description", r.Alert)
		}
	}
}

// Panels must have unique numbers and an explanation, and must not overlap.
func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	if d.Title == "" || d.UID == "" || len(d.Panels) == 0 {
		t.Fatalf("dashboard %q (%q) has %d panels", d.Title, d.UID, len(d.Panels))
	}
	taken, seen := map[[2]int]string{}, map[int]bool{}
	for _, p := range d.Panels {
		if seen[p.ID] {
			t.Errorf("panel %q: another has number %d", p.Title, p.ID)
		}
		seen[p.ID] = true
		if p.Type != "row" && (len(p.Targets) == 0 || p.Description == "") {
			t.Errorf("panel %q: shows nothing, or does not say what", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q: lies on %q, or beyond the edge", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
