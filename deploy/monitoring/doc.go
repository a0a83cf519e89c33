// Package monitoring holds what watches a site: rules for Prometheus, which say
// what an operator has to know of (rules.yaml), what to scrape (prometheus.yaml),
// and a dashboard for Grafana (dashboard.json). Its tests start a
// site, and compare every metric, label and value of a label that the files name with the ones
// that a new site has. rules_test.yaml has, for promtool, what makes each alert fire.
//
// The rules group by the label site, which the scrape configuration gives to a
// site's targets; without it they take all targets for one site.
package monitoring
