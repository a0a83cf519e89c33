package serve

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/deploy/embedded"
)

func nothingGathered() prometheus.Gatherer { return prometheus.NewRegistry() }

func TestMetricsAreForWhoHasTheToken(t *testing.T) {
	const token = "0123456789abcdef01234567"
	at, stop, err := observeMetrics(embedded.MetricsDoor{Address: "127.0.0.1:0", Token: token}, nothingGathered, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for shown, want := range map[string]int{
		"": http.StatusUnauthorized, "Bearer": http.StatusUnauthorized, "Bearer " + token[1:]: http.StatusUnauthorized,
		"Basic " + token: http.StatusUnauthorized, token: http.StatusUnauthorized, "Bearer " + token: http.StatusOK,
	} {
		request, err := http.NewRequest(http.MethodGet, "http://"+at.String()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", shown)
		reply, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = reply.Body.Close()
		if reply.StatusCode != want {
			t.Errorf("%q: %s, want %d", shown, reply.Status, want)
		}
	}
}

// Profiles must be served only at the owner's socket, and not at the port of the metrics.
func TestProfilesAreOnNoPort(t *testing.T) {
	dir, err := os.MkdirTemp("", "candor") // the path of a socket must be short, so t.TempDir cannot be used
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	c := embedded.Default()
	c.State, c.Profile = filepath.Join(dir, "state"), true
	socket := profileSocket(&c, "")
	for range 2 { // the second start finds the socket of a process that was killed
		at, stopMetrics, err := observeMetrics(embedded.MetricsDoor{Address: "127.0.0.1:0"}, nothingGathered, nil)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := http.Get("http://" + at.String() + "/debug/pprof/heap")
		if err != nil {
			t.Fatal(err)
		}
		_ = reply.Body.Close()
		if reply.StatusCode != http.StatusNotFound {
			t.Errorf("at the port of the metrics: %s", reply.Status)
		}
		stop, err := observe(embedded.MetricsDoor{}, socket, nothingGathered, nil, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the socket: %v, %v", info.Mode(), err)
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}}
		reply, err = client.Get("http://site/debug/pprof/")
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(reply.Body)
		if err != nil || !strings.Contains(string(page), "heap") {
			t.Errorf("%s: %v", reply.Status, err)
		}
		_ = reply.Body.Close()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if err := stopMetrics(); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(socket, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if one := profileSocket(&c, "bank"); one == socket {
		t.Error("actors that share a state directory share a socket")
	}
}

func TestHealthNeedsNoToken(t *testing.T) {
	problem := errors.New("replica 1 of the bank knows no leader")
	for _, now := range []error{nil, problem} {
		at, stop, err := observeMetrics(embedded.MetricsDoor{Address: "127.0.0.1:0", Token: "0123456789abcdef01234567"}, nothingGathered, func() error { return now })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		for path, fails := range map[string]error{"/healthz": nil, "/readyz": now} {
			reply, err := http.Get("http://" + at.String() + path)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(reply.Body)
			_ = reply.Body.Close()
			want, says := http.StatusOK, "ok\n"
			if fails != nil {
				want, says = http.StatusServiceUnavailable, fails.Error()+"\n"
			}
			if reply.StatusCode != want || string(text) != says {
				t.Errorf("%s: %s %q, want %d %q", path, reply.Status, text, want, says)
			}
		}
	}
}
