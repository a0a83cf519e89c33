package serve

import (
	"context"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
)

// running starts the program candor. The function `interrupt` stops the program like an interrupt of the user, and
// checks that the program ends without an error.
func running(t *testing.T, arguments ...string) (out *await.Output, interrupt func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out = new(await.Output)
	root := &cobra.Command{Use: "candor", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Commands()...)
	root.SetOut(out)
	root.SetErr(out)
	root.SetArgs(arguments)
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	t.Cleanup(cancel)
	return out, func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("candor %s ended with %v", arguments[0], err)
			}
		case <-time.After(time.Minute):
			t.Errorf("candor %s did not end", arguments[0])
		}
	}
}

// candor up prints where the site is and what it has, serves metrics, and ends well after an interrupt.
func TestUp(t *testing.T) {
	state := t.TempDir()
	out, interrupt := running(t, "up", "--state", state, "--listen", "127.0.0.1:0", "--nodes", "2", "--metrics", "127.0.0.1:0")

	address := out.Match(t, `"serving metrics","address":"([^"]+)"`)[1]
	out.Match(t, `(?s)site west is up.*alice 1000, bob 1000, carol 1000.*main \(proportional: cpu\).*node1, node2 \(slots: \d*[02468] cpu\).*export CANDOR_STATE=.*candor jobs\nStop with`)
	info, err := embedded.ReadInfo(state)
	if err != nil || info.Site != "west" || !strings.HasPrefix(info.Server, "nats://127.0.0.1:") {
		t.Errorf("site.json: %+v, %v", info, err)
	}
	checkMetrics(t, address)
	if c, process, err := embedded.Running(state); err != nil || process != strconv.Itoa(os.Getpid()) || !strings.Contains(string(c), `"node2"`) || !strings.Contains(string(c), state) {
		t.Errorf("running: %s of process %s, %v", c, process, err)
	}
	interrupt()
}

func metricsOf(t *testing.T, address string) string {
	t.Helper()
	reply, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func checkMetrics(t *testing.T, address string) {
	t.Helper()
	body := metricsOf(t, address)
	every, tooLong := time.NewTicker(20*time.Millisecond), time.After(time.Minute)
	defer every.Stop()
	for late := true; late; late = !strings.Contains(body, `candor_bank_issued_credits{replica="2"} 3000`) {
		select { // a follower learns of the grants a moment later
		case <-every.C:
			body = metricsOf(t, address)
		case <-tooLong:
			t.Fatal("the second bank never heard of the grants")
		}
	}
	for _, want := range []string{
		`candor_auctioneer_log_leader{replica="3"}`, `candor_bank_log_leader{replica="1"}`,
		"candor_estimator_", "candor_nodeagent_", "candor_auctioneer_allocation_seconds", "go_goroutines",
		`candor_auctioneer_market_slots{class="cpu",market="main"`, `candor_auctioneer_nodes{`, `candor_auctioneer_node_state{node="node2"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s among the metrics", want)
		}
	}
	for _, label := range regexp.MustCompile(`[{,](job|account|task|attempt)="`).FindAllString(body, -1) {
		t.Errorf("a label that grows: %s", label)
	}
	if pprof, err := http.Get("http://" + address + "/debug/pprof/"); err != nil || pprof.StatusCode != http.StatusNotFound {
		t.Errorf("pprof without being asked for: %v, %v", pprof.Status, err)
	}
}

// If no site runs in a state directory, a request for the running site's configuration must give an error.
func TestRunningConfiguration(t *testing.T) {
	state := t.TempDir()
	if _, _, err := embedded.Running(state); messages.KindOf(err) != messages.NotFound {
		t.Errorf("no site was started: %v", err)
	}
	if err := os.WriteFile(state+"/lock", []byte("17"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := embedded.Running(state); messages.KindOf(err) != messages.Unavailable {
		t.Errorf("the site has stopped: %v", err)
	}
}

func TestActorsWantServerAndCreds(t *testing.T) {
	for _, args := range [][]string{{"bank"}, {"auctioneer", "--server", "nats://127.0.0.1:1"}, {"estimator", "--creds", "x"}, {"nodeagent", "--node", "node1"}} {
		if _, err := run(t, args...); err == nil || !strings.Contains(err.Error(), "--server and --creds") {
			t.Errorf("candor %v: %v, want an error about --server and --creds", args, err)
		}
	}
	if _, err := run(t, "nodeagent"); err == nil || !strings.Contains(err.Error(), `"node"`) {
		t.Errorf("candor nodeagent: %v, want an error about --node", err)
	}
}

// Without accounts, a job would be refused, so the first printed command must open an account.
func TestFirstCommandsNeedAnAccount(t *testing.T) {
	c := embedded.Default()
	if text := firstCommands(&c); !strings.Contains(text, "candor submit") {
		t.Errorf("%s", text)
	}
	c.Accounts = nil
	if text := firstCommands(&c); strings.Contains(text, "candor submit") || !strings.Contains(text, "candor grant alice 1000 --yes --account operator") {
		t.Errorf("%s", text)
	}
}
