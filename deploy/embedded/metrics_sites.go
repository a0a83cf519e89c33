package embedded

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Gatherer collects the metrics of all sites. Each metric has the label site.
func (s Sites) Gatherer() prometheus.Gatherer {
	all := prometheus.Gatherers{}
	for _, site := range s {
		all = append(all, ofSite{site.Gatherer(), site.config.Site})
	}
	return all
}

type ofSite struct {
	prometheus.Gatherer
	site string
}

// Gather implements [prometheus.Gatherer].
func (g ofSite) Gather() ([]*dto.MetricFamily, error) {
	families, err := g.Gatherer.Gather()
	name := "site"
	for _, f := range families {
		for _, m := range f.Metric {
			m.Label = append(slices.Clone(m.Label), &dto.LabelPair{Name: &name, Value: &g.site})
			slices.SortFunc(m.Label, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
		}
	}
	return families, err
}
