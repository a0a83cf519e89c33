package monitoring

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages/job"
)

// metric has the values of each label of a metric on a new site.
type metric map[string][]string

// newSite starts a site on which nothing has happened.
func newSite(t *testing.T) *embedded.Site {
	t.Helper()
	c := embedded.Default()
	c.State, c.Listen, c.Replicas = t.TempDir(), "127.0.0.1:0", 1
	c.Nodes = c.Nodes[:1]
	c.MetricsAccounts = 10
	c.Nodes[0].Declared, c.Nodes[0].Resources = true, &job.Resources{CPUs: 8, Memory: 64 << 30, GPUs: 2}
	c.Markets[0].Units = []job.ClassUnit{{Class: "map", Unit: job.Resources{CPUs: 1, Memory: 1 << 30}}}
	site, err := embedded.Start(t.Context(), c, embedded.Options{Metrics: true})
	if err != nil {
		t.Fatal(err)
	}
	return site
}

// fresh returns the metrics of a new site by name. If a new site lacks a series, a rule that looks for an increase
// misses the first event of this series.
func fresh(t *testing.T) map[string]metric {
	t.Helper()
	site := newSite(t)
	families, err := site.Gatherer().Gather()
	if err := errors.Join(err, site.Close()); err != nil {
		t.Fatal(err)
	}
	known := map[string]metric{"up": {"job": {"candor"}}} // this metric comes from Prometheus itself
	for _, f := range families {
		m := metric{}
		for _, series := range f.GetMetric() {
			for _, l := range series.GetLabel() {
				if !slices.Contains(m[l.GetName()], l.GetValue()) {
					m[l.GetName()] = append(m[l.GetName()], l.GetValue())
				}
			}
		}
		known[f.GetName()] = m
		if f.GetType() == dto.MetricType_HISTOGRAM {
			known[f.GetName()+"_sum"], known[f.GetName()+"_count"] = m, m
			known[f.GetName()+"_bucket"] = metric{"le": nil}
			maps.Copy(known[f.GetName()+"_bucket"], m)
		}
	}
	return known
}

var (
	selector = regexp.MustCompile(`([a-z_]+)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"`)
)

// checkValues checks an expression of a rule or a dashboard. The expression selects or excludes series by the values of
// labels. For each value that it names, a new site must have a series with this value.
func checkValues(t *testing.T, where, expression string, known map[string]metric) {
	t.Helper()
	for _, s := range selector.FindAllStringSubmatch(expression, -1) {
		for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
			for value := range strings.SplitSeq(m[2], "|") {
				if m[1] != "site" && !slices.Contains(known[s[1]][m[1]], value) {
					t.Errorf("%s: a new site has no series of %s with %s=%q", where, s[1], m[1], value)
				}
			}
		}
	}
}
