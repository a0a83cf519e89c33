package monitoring

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

var namedAlert = regexp.MustCompile(`^ALERTS\{alertname="([^"]*)",alertstate="firing"\}$`)

// cases is the content of rules_test.yaml, in promtool's format.
type cases struct {
	RuleFiles          []string `yaml:"rule_files"`
	EvaluationInterval string   `yaml:"evaluation_interval"`
	Tests              []struct {
		Name, Interval string
		InputSeries    []struct{ Series, Values string } `yaml:"input_series"`
		Expressions    []struct {
			Expr     string
			EvalTime string `yaml:"eval_time"`
			Samples  []struct {
				Labels string
				Value  float64
			} `yaml:"exp_samples"`
		} `yaml:"promql_expr_test"`
	}
}

func readCases(t *testing.T) (c cases) {
	t.Helper()
	text, err := os.ReadFile("rules_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalWithOptions(text, &c, yaml.Strict()); err != nil {
		t.Fatalf("rules_test.yaml: %s", yaml.FormatError(err, false, true))
	}
	return c
}

// The case of a healthy site must have all metrics, and no alert may fire in it. Each rule must have a case in which
// its alert fires.
func TestEachRuleHasCases(t *testing.T) {
	c := readCases(t)
	well := map[string]bool{}
	for _, s := range c.Tests[0].InputSeries {
		name, _, _ := strings.Cut(s.Series, "{")
		well[name] = true
	}
	for _, e := range c.Tests[0].Expressions {
		if e.Expr != `ALERTS{alertstate="firing"}` || len(e.Samples) > 0 {
			t.Errorf("%q: on the first site no alert at all may fire", e.Expr)
		}
	}
	fires := map[string]bool{}
	for _, test := range c.Tests[1:] {
		for _, e := range test.Expressions {
			name := namedAlert.FindStringSubmatch(e.Expr)
			if name == nil || len(e.Samples) == 0 {
				t.Fatalf("%s: is no case of an alert that fires", test.Name)
			}
			fires[name[1]] = true
		}
	}
	for _, r := range readRules(t) {
		if !fires[r.Alert] {
			t.Errorf("%s: there is no case in which the alert fires", r.Alert)
		}
		for _, m := range namesIn(r.Expr).metrics {
			if !well[m] {
				t.Errorf("%s: the site that is well has no series of %s", r.Alert, m)
			}
		}
	}
}

// TestRulesFire runs the cases with promtool, which .ci/run installs.
func TestRulesFire(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("promtool is not here: the cases were not run")
		return
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", "rules_test.yaml").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
