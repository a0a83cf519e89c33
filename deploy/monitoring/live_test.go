package monitoring

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/candor-grid/candor/messages/await"
)

// TestPrometheusReadsASite lets Prometheus scrape a new site. Each expression of the dashboard must then have data, and
// Prometheus must evaluate each rule without an error.
func TestPrometheusReadsASite(t *testing.T) {
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not here")
	}
	site, dir := newSite(t), t.TempDir()
	defer site.Close()
	metrics := httptest.NewServer(promhttp.HandlerFor(site.Gatherer(), promhttp.HandlerOpts{}))
	defer metrics.Close()
	rules, err := filepath.Abs("rules.yaml")
	config := fmt.Sprintf(`{global: {scrape_interval: 1s, evaluation_interval: 1s}, rule_files: [%q],
		scrape_configs: [{job_name: candor, static_configs: [{targets: [%q], labels: {site: west}}]}]}`, rules, strings.TrimPrefix(metrics.URL, "http://"))
	free, err2 := net.Listen("tcp", "127.0.0.1:0")
	if err := errors.Join(err, err2, os.WriteFile(filepath.Join(dir, "prometheus.yaml"), []byte(config), 0o600)); err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	_ = free.Close()
	p := exec.Command(program, "--config.file=prometheus.yaml", "--storage.tsdb.path=data", "--web.listen-address="+at)
	p.Dir = dir
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	}()

	ask := func(path string, answer any) bool {
		r, err := http.Get("http://" + at + "/api/v1/" + path)
		if err != nil {
			return false // it starts
		}
		defer r.Body.Close()
		return json.NewDecoder(r.Body).Decode(answer) == nil && r.StatusCode == http.StatusOK
	}
	for _, panel := range readDashboard(t).Panels {
		for _, target := range panel.Targets {
			query := strings.NewReplacer("$site", ".*", "$__rate_interval", "1m").Replace(target.Expr)
			await.Until(t, panel.Title+" has data: "+query, func() bool {
				var answer struct{ Data struct{ Result []any } }
				return ask("query?query="+url.QueryEscape(query), &answer) && len(answer.Data.Result) > 0
			})
		}
	}
	await.Until(t, "all rules are evaluated without an error", func() bool {
		var answer struct {
			Data struct {
				Groups []struct{ Rules []struct{ Health string } }
			}
		}
		if !ask("rules", &answer) || len(answer.Data.Groups) == 0 {
			return false
		}
		for _, g := range answer.Data.Groups {
			for _, r := range g.Rules {
				if r.Health != "ok" {
					return false
				}
			}
		}
		return true
	})
}
