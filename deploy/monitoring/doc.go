// Package monitoring holds files to monitor a site: alert rules for Prometheus (rules.yaml), its scrape configuration
// (prometheus.yaml), and a dashboard for Grafana (dashboard.json). Its tests check that a site has every metric, label
// and value of a label that the files name. For promtool, rules_test.yaml has data that makes each alert fire.
//
// The rules group by the label site. The scrape configuration adds this label to a site's targets. Without the label,
// the rules treat all targets as one site.
package monitoring
