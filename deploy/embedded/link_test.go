package embedded

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	jobmsg "github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/money"
)

// road carries the connections between the servers of two sites. A test can cut and restore them.
type road struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	open  map[net.Conn]bool
	cutup bool
}

func newRoad(t *testing.T, to string) *road {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &road{listener: listener, to: to, open: map[net.Conn]bool{}}
	t.Cleanup(func() {
		_ = listener.Close()
		r.cut()
	})
	go r.carry()
	return r
}

func (r *road) address() string { return r.listener.Addr().String() }

func (r *road) carry() {
	for {
		from, err := r.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", r.to)
		if err != nil || !r.enter(from, to) {
			_ = from.Close()
			continue
		}
		go r.copy(from, to)
		go r.copy(to, from)
	}
}

// enter adds both ends of a connection over the road. If the road is cut, it closes them, and returns false.
func (r *road) enter(pair ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cutup {
		for _, c := range pair {
			_ = c.Close()
		}
		return false
	}
	for _, c := range pair {
		r.open[c] = true
	}
	return true
}

func (r *road) copy(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = to.Close(), from.Close()
}

func (r *road) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cutup = true
	for c := range r.open {
		_ = c.Close()
	}
	clear(r.open)
}

func (r *road) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cutup = false
}

// overRoad starts the sites west and east. The server of east connects to the server of west over a simulated
// connection, the road.
func overRoad(t *testing.T, changes ...func(*Config)) (west, east *Site, between *road) {
	t.Helper()
	o := Options{Log: logged(t, zap.ErrorLevel)}
	var sites Sites
	for _, c := range firstLook(t, "west", "east") {
		for _, change := range changes {
			change(&c)
		}
		s, err := prepared(c, o)
		if err != nil {
			t.Fatal(err)
		}
		sites = append(sites, s)
	}
	t.Cleanup(func() {
		if err := sites.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	west, east = sites[0], sites[1]
	if err := west.join(nil, sites[1:], 500*messages.Credit); err != nil {
		t.Fatal(err)
	}
	between = newRoad(t, west.info.Leaf)
	west.info.Leaf = between.address()
	if err := east.join(sites[:1], nil, 500*messages.Credit); err != nil {
		t.Fatal(err)
	}
	ctx := within(t)
	if err := together([]func() error{func() error { return west.startActors(ctx) }, func() error { return east.startActors(ctx) }}); err != nil {
		t.Fatal(err)
	}
	return west, east, between
}

func (u user) links() clearing.LinksReply {
	u.Helper()
	return request[clearing.LinksReply](u, messages.Links, messages.VerbStatus, messages.Empty{})
}

// linked reports whether the only peer has a link and answers.
func (u user) linked() bool {
	u.Helper()
	r := u.links()
	return len(r.Links) == 1 && r.Links[0].Peer != "" && len(r.Trips) == 1 && r.Trips[0].Took > 0
}

// TestSitesCutOffAndMended cuts the road between two sites. Each must continue its own work, and keep what it owes.
// When the road is restored, the books must agree, and no credit may be lost or moved twice.
func TestSitesCutOffAndMended(t *testing.T) {
	t.Parallel()
	west, east, between := overRoad(t)
	alice, bob := connect(t, west, "alice"), connect(t, east, "bob")
	atWest, atEast := connect(t, west, "operator"), connect(t, east, "operator")
	await.Until(t, "the sites are linked", func() bool { return atWest.linked() && atEast.linked() })
	alice.remit("before", "east", "bob", 10*messages.Credit)
	await.Until(t, "bob is paid", func() bool { return bob.account().Balance == 1010*messages.Credit })
	await.Until(t, "the receipt is back", atWest.settled)

	between.cut()
	await.Until(t, "the cut is seen", func() bool {
		r := atWest.links()
		return len(r.Links) == 0 && r.Trips[0].Took == 0 && r.Trips[0].Failure != ""
	})
	alice.remit("during", "east", "bob", 20*messages.Credit)
	bob.remit("during", "west", "alice", 5*messages.Credit)
	if job := alice.final(alice.submit("own", twoStages(t.TempDir(), messages.Credit))); job.State != jobmsg.Completed {
		t.Errorf("cut off, a job of the site's own ended %v", job.State)
	}
	await.Until(t, "it is tried again", func() bool {
		p := atWest.peers().Peers[0]
		return p.Tries >= 2 && p.Outstanding == 1 && p.Waiting == 20*messages.Credit && p.Failure != ""
	})
	if got := bob.account().Balance; got != 1010*messages.Credit {
		t.Errorf("cut off, bob has %v", got)
	}

	between.mend()
	await.Until(t, "the banks settle", func() bool { return atWest.settled() && atEast.settled() })
	if got := bob.account().Balance; got != 1025*messages.Credit {
		t.Errorf("bob has %v, want 1010 + 20 - 5", got)
	}
	agree(t, atWest, atEast)
}

// agree checks that the books of both sites balance, and that they agree with each other.
func agree(t *testing.T, one, other user) {
	t.Helper()
	compared := request[clearing.ReconcileReply](one, messages.Bank, clearing.VerbReconcile, clearing.ReconcileRequest{Peer: other.site})
	for _, b := range compared.Books {
		if b.Difference != nil || b.Ours != b.Theirs {
			t.Errorf("instructions of %s: %+v", b.Sender, b)
		}
	}
	if a, b := one.peers().Peers[0].Owed, other.peers().Peers[0].Owed; a+b != 0 {
		t.Errorf("%s owes %v, and %s %v", one.site, a, other.site, b)
	}
	for _, u := range []user{one, other} {
		if books := request[money.BooksReply](u, messages.Bank, messages.VerbBooks, money.BooksRequest{Full: true}); !books.Balanced {
			t.Errorf("the books of %s do not balance: %s", u.site, books.Message)
		}
	}
}

// Only operators may ask the site's hosts for the state of its links, and only hosts may answer this request.
func TestLinksAreForOperators(t *testing.T) {
	t.Parallel()
	west, _, _ := overRoad(t)
	for _, name := range []messages.Name{"alice", "operator"} {
		u := connect(t, west, name)
		_, err := bus.Call[clearing.LinksReply](within(t), u.bus, messages.Subject("west", messages.Links, messages.VerbStatus, name), messages.Empty{})
		if want := name == "operator"; (err == nil) != want || !want && messages.KindOf(err) != messages.PermissionDenied {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Errors in the configurations must be reported before anything runs.
func TestStartSitesRefuses(t *testing.T) {
	configs := firstLook(t, "west", "east")
	configs[1].Site = "West!"
	if _, err := StartSites(within(t), configs, messages.Credit, Options{}); messages.KindOf(err) != messages.Invalid {
		t.Errorf("a name that is none: %v", err)
	}
	configs[1].Site = "west"
	if _, err := StartSites(within(t), configs, messages.Credit, Options{}); messages.KindOf(err) != messages.Invalid {
		t.Errorf("the same name twice: %v", err)
	}
	if _, err := os.Stat(filepath.Join(configs[0].State, infoFile)); !os.IsNotExist(err) {
		t.Errorf("a site that did not start left %s: %v", infoFile, err)
	}
}
