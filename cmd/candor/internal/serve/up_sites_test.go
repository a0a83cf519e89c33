package serve

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
)

// Each site must have its own port, and be found by its name. An interrupt ends all sites.
func TestUpSites(t *testing.T) {
	state := t.TempDir()
	out, interrupt := running(t, "up", "--sites", "west,east", "--state", state, "--listen", "127.0.0.1:0", "--nodes", "1", "--replicas", "1", "--metrics", "127.0.0.1:0")

	address := out.Match(t, `"serving metrics","address":"([^"]+)"`)[1]
	out.Match(t, `(?s)2 sites are up.*west +nats://127.0.0.1:\d+ .*alice 1000.*east +nats://127.0.0.1:\d+ .*--at east .*remit bob@east.*Stop with`)
	west, err := embedded.ReadInfo(state)
	east, err2 := embedded.ReadInfo(state + "/sites/east")
	if err != nil || err2 != nil || west.Site != "west" || east.Site != "east" || west.Server == east.Server {
		t.Errorf("site.json: %+v, %v and %+v, %v", west, err, east, err2)
	}
	body := metricsOf(t, address)
	for _, want := range []string{`candor_bank_log_leader{replica="1",site="west"}`, `candor_bank_log_leader{replica="1",site="east"}`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s among the metrics", want)
		}
	}
	interrupt()
}

// The error must name the flags that cannot be used with --sites.
func TestUpSitesRefuses(t *testing.T) {
	up := func(further ...string) []string {
		return append([]string{"up", "--state", t.TempDir(), "--sites"}, further...)
	}
	refused(t, messages.Invalid, "is no name", up("west,West!")...)
	refused(t, messages.Invalid, "given twice", up("west,west")...)
	refused(t, messages.Invalid, "each further site of --sites listens at the next port", up("west,east", "--listen", "127.0.0.1:65535")...)
	refused(t, messages.Invalid, "makes its own keys", up("west,east", "--keys", t.TempDir())...)
	refused(t, messages.Invalid, "not hosts of one", up("west,east", "--host", "rack1")...)
}

func TestAtNamesASite(t *testing.T) {
	state := t.TempDir()
	for dir, site := range map[string]string{state: "west", state + "/sites/east": "east"} {
		if _, err := identity.Create(dir+"/keys", site); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/site.json", []byte(`{"site":"`+site+`"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(args ...string) error {
		root := &cobra.Command{Use: "candor", SilenceErrors: true, SilenceUsage: true}
		root.PersistentFlags().String("at", "", "")
		root.AddCommand(Commands()...)
		root.SetOut(io.Discard)
		root.SetArgs(append([]string{"--at"}, args...))
		return root.ExecuteContext(t.Context())
	}
	for site, file := range map[string]string{"west": state + "/creds/dave.creds", "east": state + "/sites/east/creds/dave.creds"} {
		if err := at(site, "user", "add", "dave", "--state", state); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(file); err != nil {
			t.Errorf("at %s: %v", site, err)
		}
	}
	if err := at("south", "user", "add", "dave", "--state", state); messages.KindOf(err) != messages.NotFound {
		t.Errorf("at no site: %v", err)
	}
	if err := at("east", "site", "nats", "--peer", "west"); messages.KindOf(err) != messages.Invalid {
		t.Errorf("a command that has no site: %v", err)
	}
}
