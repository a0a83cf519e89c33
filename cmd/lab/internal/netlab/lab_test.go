package netlab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
)

// patience is the longest wait for something that must happen.
const patience = 20 * time.Second

func newLab(t *testing.T, names ...messages.Name) *Lab {
	t.Helper()
	network, err := Loopback()
	if err != nil {
		t.Fatal(err)
	}
	var plans []Plan
	for _, name := range names {
		plans = append(plans, Plan{Name: name, Racks: 3, Agents: 4, Slots: 2, Users: []messages.Name{"alice"}, Grant: messages.Credit, Lease: 10 * time.Second})
	}
	l, err := New(t.TempDir(), "/nonexistent/candor", network, plans...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func read(t *testing.T, s *Site, file string) (c embedded.Config) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &c); err == nil {
		return c
	}
	// In the file, the slots of nodes have a form that only the YAML decoder can read. This test uses encoding/json, so
	// it leaves the nodes out.
	var plain map[string]any
	if err := json.Unmarshal(text, &plain); err != nil {
		t.Fatal(err)
	}
	delete(plain, "nodes")
	if text, err = json.Marshal(plain); err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every site has the others as peers. It must connect to earlier sites over links at its own border, and accept
// connections from later sites.
func TestJoinedSitesAreConfigured(t *testing.T) {
	l := newLab(t, "west", "east", "north")
	if err := l.Join(time.Millisecond, 7*messages.Credit); err != nil {
		t.Fatal(err)
	}
	for i, s := range l.Sites {
		if err := s.configure(); err != nil {
			t.Fatal(err)
		}
		c := read(t, s, "site.yaml")
		if len(c.Hosts) != 3 || len(c.Peers) != 2 || c.Reserve != 7*messages.Credit {
			t.Errorf("%s has hosts %+v, peers %+v and reserve %v", s.Name, c.Hosts, c.Peers, c.Reserve)
		}
		for _, p := range c.Peers {
			earlier := slices.IndexFunc(l.Sites, func(other *Site) bool { return other.Name == p.Name }) < i
			if (len(p.URLs) == 3) != earlier || (p.Creds != "") != earlier || len(p.Keys) != 1 || p.Limit != 7*messages.Credit {
				t.Errorf("%s has peer %+v", s.Name, p)
			}
			for _, u := range p.URLs {
				if !strings.HasPrefix(u, "nats://"+l.network.Border(s.number)+":") {
					t.Errorf("%s reaches %s at %s, which is not its border", s.Name, p.Name, u)
				}
			}
		}
	}
}

func TestASiteHasAHostForEachPart(t *testing.T) {
	s := newLab(t, "west").Sites[0]
	var names []string
	addresses := map[string]bool{}
	for _, h := range s.Hosts() {
		names = append(names, h.Name+" "+h.Node)
		addresses[h.Address] = true
	}
	if want := []string{"rack1 node1", "rack2 ", "rack3 ", "node2 node2", "node3 node3", "node4 node4"}; !slices.Equal(names, want) || len(addresses) != len(want) {
		t.Errorf("hosts %q at %v, want %q", names, addresses, want)
	}
	if n := strings.Count(s.URL(), "nats://"); n != 3 {
		t.Errorf("%d servers in %s", n, s.URL())
	}
}

func TestAHostWithoutABinaryDoesNotStart(t *testing.T) {
	s := newLab(t, "west").Sites[0]
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Start(ctx); err == nil {
		t.Error("a site of a binary that does not exist starts")
	}
}

func start(t *testing.T, script string) *process {
	t.Helper()
	p, err := begin(exec.Command("sh", "-c", script), filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

func TestAProcessIsReadyWhenItSaysSo(t *testing.T) {
	p := start(t, "exec sleep 1000")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	say := func(word string) {
		c, err := net.Dial("unixgram", p.log+".notify")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := fmt.Fprint(c, word); err != nil {
			t.Fatal(err)
		}
	}
	say("STATUS=starting")
	ended, cancelled := context.WithCancel(ctx)
	cancelled()
	if err := p.await(ended); !errors.Is(err, &messages.Error{Kind: messages.Unavailable}) {
		t.Errorf("a process that is not ready: %v", err)
	}
	say("READY=1\n")
	if err := p.await(ctx); err != nil {
		t.Error(err)
	}
	if p.memory() == 0 {
		t.Error("a process that runs has nothing in memory")
	}
	if err := p.stop(); err == nil {
		t.Error("a process that a signal ended is said to have stopped well")
	}
}

func TestAProcessThatEndsSaysWhatItSaid(t *testing.T) {
	p := start(t, "echo cannot bind; exit 3")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.await(ctx); err == nil || !strings.Contains(err.Error(), "cannot bind") {
		t.Errorf("a process that ended: %v", err)
	}
}

func TestALongPathIsRefused(t *testing.T) {
	log := filepath.Join(t.TempDir(), strings.Repeat("x", socketPath))
	if _, err := begin(exec.Command("true"), log); messages.KindOf(err) != messages.Invalid {
		t.Errorf("a process whose socket cannot be named: %v", err)
	}
}

func TestOrphansAreEnded(t *testing.T) {
	if err := adopt(); err != nil {
		t.Fatal(err)
	}
	before := children()
	output, err := exec.Command("sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!").Output()
	if err != nil {
		t.Fatal(err)
	}
	orphan := "/proc/" + strings.TrimSpace(string(output))
	if _, err := os.Stat(orphan); err != nil {
		t.Fatalf("there is no orphan: %v", err)
	}
	endOrphans(before)
	if _, err := os.Stat(orphan); err == nil {
		t.Error("an orphan goes on")
	}
}
