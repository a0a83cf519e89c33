package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages/job"
)

// metricsPage starts a site, and returns a page with each of its metrics.
func metricsPage() (string, error) {
	families, err := newSite()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# Metrics\n\n" + generated)
	b.WriteString("What `candor up --metrics ADDRESS` serves at `/metrics`. Each value of a label is there from the start, with 0.\n" +
		"`replica` is the number of the replica that counts, and `kind` is a [kind of error](errors.md). A counter starts at 0\n" +
		"with its process. The metrics of Go and of the process, `go_` and `process_`, are those of every program in Go.\n" +
		"The [rules](../../monitoring/rules.yaml) for Prometheus and the [dashboard](../../monitoring/dashboard.json) for Grafana use them.\n\n")
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "candor_") {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), labelsOf(f), f.GetHelp())
		}
	}
	return b.String(), nil
}

// newSite starts a site with one replica and one node, and gathers its metrics.
func newSite() (families []*dto.MetricFamily, err error) {
	state, err := os.MkdirTemp("", "candor-reference-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	c := embedded.Default()
	c.State, c.Listen, c.Replicas, c.Nodes, c.MetricsAccounts = state, "127.0.0.1:0", 1, c.Nodes[:1], 1
	c.Nodes[0].Declared, c.Nodes[0].Resources = true, &job.Resources{CPUs: 8, Memory: 64 << 30, GPUs: 2, Disk: 1 << 40}
	c.Markets[0].Units = []job.ClassUnit{{Class: "map", Unit: job.Resources{CPUs: 1, Memory: 1 << 30}}}
	c.Licenses = job.Licenses{{Name: "matlab", Count: 2}}
	site, err := embedded.Start(context.Background(), c, embedded.Options{Metrics: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, site.Close()) }()
	return site.Gatherer().Gather()
}

// labelsOf returns the labels of a metric with their values. It leaves out the values of the labels "replica" and
// "kind".
func labelsOf(f *dto.MetricFamily) string {
	var names []string
	values := map[string][]string{}
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			name := l.GetName()
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			if name != "replica" && name != "kind" && !slices.Contains(values[name], l.GetValue()) {
				values[name] = append(values[name], l.GetValue())
			}
		}
	}
	var text []string
	for _, name := range names {
		label := "`" + name + "`"
		if len(values[name]) > 0 {
			label += ": " + strings.Join(values[name], ", ")
		}
		text = append(text, label)
	}
	return strings.Join(text, "; ")
}
