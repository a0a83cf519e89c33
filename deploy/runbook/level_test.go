package runbook

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// buildNext builds this program as a release with the next level. It compiles a changed copy of messages/level.go
// instead of this file.
func buildNext(t *testing.T) string {
	file, err := filepath.Abs("../../messages/level.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	next := strings.NewReplacer(
		fmt.Sprintf("const Level = %d\n", messages.Level), fmt.Sprintf("const Level = %d\n", messages.Level+1),
		"var Releases = []Release{", fmt.Sprintf(`var Releases = []Release{{"v9.0.0", %d}, `, messages.Level+1),
	).Replace(string(text))
	replaced, list := filepath.Join(t.TempDir(), "level.go"), filepath.Join(t.TempDir(), "overlay.json")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: replaced}})
	if err == nil {
		err = os.WriteFile(replaced, []byte(next), 0o600)
	}
	if err == nil {
		err = os.WriteFile(list, overlay, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return build(t, "-overlay", list, "-ldflags", "-X github.com/candor-grid/candor/messages.version=v9.0.0")
}

// install replaces the program on all hosts. Running processes continue with the old one.
func (r *racks) install(binary string) {
	r.Helper()
	if err := os.Rename(own(r.T, binary), r.binary); err != nil {
		r.Fatal(err)
	}
}

// levelRises upgrades a site, host by host, to a release of the next level, and lets the level rise. Before that, every
// host may go back to the old release; after that, none may. Jobs run before, during and after.
func levelRises(t *testing.T, binary string) {
	next := buildNext(t)
	r := newRacks(t, binary)
	r.startAll("site.yaml")
	r.work()
	is, will := fmt.Sprintf("agree on level %d", messages.Level), fmt.Sprintf("agree on level %d", messages.Level+1)
	again := func(host string) {
		t.Helper()
		r.stop(host)
		r.up(r.start(host, "site.yaml"))
		r.until("replica list", "The auctioneer can lose 1 more replica", "The bank can lose 1 more replica")
		r.work()
	}

	r.install(next)
	r.until("upgrade plan", "This program is candor v9.0.0", is, "1. On rack", "3. On rack", "4. Nodes on other machines (with a lower level now: node1, node2, node3; nodes on the hosts above are upgraded together with these hosts)", "5. candor upgrade finish", "Install the earlier release again")
	again("rack3")
	// The upgrade must be refused whichever release the leader has. If it has the earlier release, the command refuses
	// the upgrade. Otherwise the leader refuses it.
	if out := r.try("upgrade finish"); !strings.Contains(out, is) || !strings.Contains(out, "exit status") || !strings.Contains(out, ": upgrade ") {
		t.Errorf("the level rises before all hosts have the release:\n%s", out)
	}
	r.install(binary) // a host may still go back to the earlier release
	again("rack3")
	r.install(next)
	for _, host := range []string{"rack3", "rack2", "rack1"} {
		again(host)
	}
	r.until("upgrade plan", is, "1. candor upgrade finish")
	r.until("upgrade finish", "The replicas of the auctioneer "+will, "The replicas of the bank "+will)
	r.until("upgrade plan", will, "Nothing is left to do", "can no longer be started here")
	r.work()

	// A host that is started with the earlier release must end, and must say which release to start.
	r.stop("rack3")
	r.install(binary)
	p := r.start("rack3", "site.yaml")
	r.happens(patience, p.Ended, p.Ended) // if the host's log lacks the new level, the host starts, and ends when the leader sends the new level
	want := fmt.Sprintf("agreed on level %d, and this release works with level %d at most; start a release of level %[1]d here", messages.Level+1, messages.Level)
	if !strings.Contains(p.Output.String(), want) {
		t.Errorf("the earlier release says\n%s", p.Output)
	}
	r.work()
	r.install(next)
	again("rack3")
	r.do("bank verify", "The books verify")
}
