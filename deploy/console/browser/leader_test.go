//go:build browser

package browser

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/job"
)

// host is one host of a site of three hosts, in a separate process.
type host struct {
	name, state string
	process     *exec.Cmd
}

func hosts(t *testing.T) []*host {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, "candor")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "hashicorpmetrics", "-o", bin, "../../../cmd/candor").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	if _, err := identity.OpenOrCreate(filepath.Join(dir, "keys"), "west"); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "site: west\nkeys: %s/keys\ntasks: {user: self}\nhosts:\n", dir)
	t.Cleanup(func() { endAll(bin) }) // runs after the cleanup of the hosts
	var all []*host
	free := ports(t, 12)
	for i, name := range []string{"a", "b", "c"} {
		fmt.Fprintf(&text, "  - {name: %s, listen: %s, cluster: %s, auctioneer: %s, bank: %s, nodes: [node-%s]}\n", name, free[4*i], free[4*i+1], free[4*i+2], free[4*i+3], name)
		all = append(all, &host{name: name, state: filepath.Join(dir, name)})
	}
	text.WriteString("nodes:\n")
	for _, h := range all {
		fmt.Fprintf(&text, "  - {name: node-%s, slots: {map: 2, reduce: 1}}\n", h.name)
	}
	file := filepath.Join(dir, "site.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, h := range all {
		h.process = exec.Command(bin, "up", "--config", file, "--host", h.name, "--state", h.state, "--console", "127.0.0.1:0")
		log, err := os.Create(h.state + ".log")
		if err != nil {
			t.Fatal(err)
		}
		h.process.Stdout, h.process.Stderr = log, log
		if err := h.process.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = h.process.Process.Kill() // the process may have ended already
			_ = h.process.Wait()
			if text, _ := os.ReadFile(h.state + ".log"); t.Failed() {
				t.Logf("host %s:\n%s", h.name, text)
			}
		})
	}
	for _, h := range all {
		await.Until(t, "host "+h.name+" is up", func() bool { return h.info(t).Console != "" })
	}
	return all
}

// endAll kills all processes of a program. These include the executors of hosts that were killed before.
func endAll(program string) {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		if target, _ := os.Readlink(link); target != program {
			continue // the process runs another program, or has ended
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// ports returns free addresses whose ports Linux does not choose for outgoing connections.
func ports(t *testing.T, n int) (free []string) {
	t.Helper()
	for tries := 0; len(free) < n; tries++ {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 10_000+rand.IntN(22_000)))
		if err == nil {
			defer l.Close()
			free = append(free, l.Addr().String())
		} else if tries > 100*n {
			t.Fatal(err)
		}
	}
	return free
}

func (h *host) info(t *testing.T) embedded.Info {
	t.Helper()
	info, _ := embedded.ReadInfo(h.state) // without this information, the site is not up yet
	return info
}

func (h *host) connect(t *testing.T, account messages.Name) bus.Bus {
	t.Helper()
	b, err := bus.Connect(bus.Config{URL: h.info(t).Server, Name: account, CredsFile: embedded.CredsFile(h.state, account)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func TestLeaderKilled(t *testing.T) {
	chromium(t)
	all := hosts(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	status, err := bus.Call[messages.StatusReply](ctx, all[0].connect(t, "alice"), messages.Subject("west", messages.Auctioneer, messages.VerbStatus, "alice"), messages.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	var leader, other *host
	for _, h := range all {
		if h.name == status.Leader {
			leader = h
		} else {
			other = h
		}
	}
	creds, err := os.ReadFile(embedded.CredsFile(other.state, "alice"))
	if err != nil {
		t.Fatal(err)
	}
	w := browse(t)
	w.login(other.info(t).Console, string(creds))
	w.shows("3 of 3 nodes up")
	w.open("jobs")
	w.shows("You have no jobs yet")
	if err := leader.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	ctx, cancel = context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = bus.Call[job.SubmitReply](ctx, other.connect(t, "alice"), messages.Subject("west", messages.Auctioneer, messages.VerbSubmit, "alice"),
		job.SubmitRequest{Key: "after", Spec: job.JobSpec{Name: "after-the-leader", Budget: messages.Credit, Stages: []job.Stage{{Name: "main", Script: "true"}}}})
	if err != nil {
		t.Fatal(err)
	}
	w.shows("after-the-leader")
	t.Logf("the page shows a job %v after the leader was killed", time.Since(began).Round(time.Millisecond))
	w.until(`!document.getElementById("state").classList.contains("bad")`)
	w.fine()
}
