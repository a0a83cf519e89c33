package auctioneer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/candor-grid/candor/auctioneer/series"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/market"
)

// looked adds samples to the histories, as if the site had looked at a market, an account and a node `looks` times.
func looked(p *histories, from messages.Time, looks int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin(from)
	for i := range looks {
		now := from.Add(messages.Duration(i) * 2 * aSecond)
		p.market("m", []messages.Name{"cpu"}).all.Add(now, []int64{1, 2, int64(i), 4, 5, 6, series.Unknown, 8})
		p.markets["m"].account(now, "alice").Add(now, []int64{int64(i)})
		p.node(now, "n1", []messages.Name{"cpu"}).all.Add(now, []int64{4, int64(i % 4)})
		p.last = now
	}
}

func (p *histories) told(now messages.Time) string {
	text := ""
	for _, over := range []messages.Duration{600, 3600, 12 * 3600, 7 * 86400} {
		var market, node market.HistoryReply
		p.markets["m"].tell(&market, now, over*aSecond, "alice", true)
		p.nodes["n1"].tell(&node, now, over*aSecond)
		text += fmt.Sprintf("%+v %+v\n", market, node)
	}
	return text
}

// Histories are copied from time to time, with restarts of both replicas. The copy must equal the original.
func TestHistoriesAreCopied(t *testing.T) {
	from := epoch
	a, b := &histories{}, &histories{}
	for i := range 40 {
		looked(a, from, 1+i%7)
		from = a.last.Add(2 * aSecond)
		if i%3 == 0 {
			continue // replica b was away in this round, and copies nothing
		}
		for after := ""; ; {
			part := a.part(b.last, after)
			b.merge(&part)
			if after = part.Next; after == "" {
				break
			}
		}
	}
	part := a.part(b.last, "")
	b.merge(&part)
	if x, y := a.told(from), b.told(from); x != y || b.since != a.since {
		t.Errorf("the leader has\n%s\nand the copy\n%s", x, y)
	}
	before := b.told(from)
	b.merge(&part) // a second merge of the same part must change nothing
	b.merge(&market.PastReply{Since: from, Now: from, Parts: []market.Past{{Key: "n/"}, {Key: "m/m", Classes: []messages.Name{"cpu"}, Steps: part.Parts[1].Steps}}})
	if b.told(from) != before {
		t.Error("a part that came twice, or is not of the series, changed the copy")
	}
}

// The number of nodes with a history is bounded. At the bound, a new node takes the place of a node whose last sample
// is old. If all nodes have new samples, the new node gets no history.
func TestHistoriesAreBounded(t *testing.T) {
	p := &histories{}
	p.begin(epoch)
	for i := range mostNodes + 10 {
		if n := p.node(epoch, fmt.Sprint("n", i), []messages.Name{"cpu"}); n != nil {
			n.all.Add(epoch, []int64{1, 1})
		}
	}
	if p.node(epoch.Add(9*minute), "late", nil) != nil || len(p.nodes) != mostNodes {
		t.Errorf("%d histories of nodes", len(p.nodes))
	}
	if p.node(epoch.Add(11*minute), "late", nil) == nil || len(p.nodes) != mostNodes || p.nodes["n0"] != nil {
		t.Errorf("no place for a new node among %d", len(p.nodes))
	}
	pages := 0
	for after := "start"; after != ""; pages++ {
		after = p.part(0, map[bool]string{true: "", false: after}[after == "start"]).Next
	}
	if pages != 1 {
		t.Errorf("%d pages", pages)
	}
}

// After a restart, the histories must be read from the file. If the file was cut or damaged, the part before the damage
// must be read. The file must stay small.
func TestHistoriesAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "past")
	open := func() *Auctioneer {
		a := &Auctioneer{site: &site{}}
		a.Past = path
		a.Config.defaults()
		a.loadPast()
		return a
	}
	a, from, most := open(), epoch, int64(0)
	for range 120 {
		looked(&a.histories, from, 5)
		from = a.histories.last.Add(2 * aSecond)
		if err := a.pastFile.save(&a.histories); err != nil {
			t.Fatal(err)
		}
		about, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, about.Size())
	}
	if whole := a.pastFile.whole; most > leastWhole+3*max(whole, leastWhole) {
		t.Errorf("the file had %d bytes, and %d when it was written as a whole", most, whole)
	}
	want := a.histories.told(from)
	if b := open(); b.histories.told(from) != want || b.histories.since != epoch || b.pastFile.rewrites {
		t.Errorf("after a start:\n%s\nwant\n%s", b.histories.told(from), want)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range 8 {
		damaged := slices.Clone(data)
		if damaged[len(data)-1-85*cut] ^= 0x40; cut%2 == 0 {
			damaged = data[:len(data)-1-65*cut]
		}
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		b := open()
		if len(b.histories.markets) == 0 || !b.pastFile.rewrites {
			t.Fatalf("of a damaged file: %d markets, rewrites %v", len(b.histories.markets), b.pastFile.rewrites)
		}
		looked(&b.histories, from, 1)
		if err := b.pastFile.save(&b.histories); err != nil {
			t.Fatal(err)
		}
		if c := open(); c.histories.told(from) != b.histories.told(from) || c.pastFile.rewrites {
			t.Fatal("the file was not mended")
		}
	}
	for _, other := range []string{"", "something else\n"} {
		if err := os.WriteFile(path, []byte(other), 0o600); err != nil {
			t.Fatal(err)
		}
		if b := open(); b.histories.markets != nil || !b.pastFile.rewrites {
			t.Errorf("of %q: %v", other, b.histories.markets)
		}
	}
}

func TestTheNextLeaderKnowsTheHistory(t *testing.T) {
	net, dir := bus.NewMemory(), t.TempDir()
	began := time.Now()
	replica := func(id string) (*Auctioneer, *mailbox.Memory) {
		var log *mailbox.Memory
		a, err := Start(t.Context(), Config{Site: "west", Replica: id, Bus: net.Connect("$auctioneer"), Markets: []market.Market{{Name: "m", Mechanism: market.FIFO, Classes: []messages.Name{"cpu"}}},
			Past:  filepath.Join(dir, id),
			Clock: func() messages.Time { return epoch.Add(messages.Duration(20 * time.Since(began))) }, // the clock runs fast, so that the steps of the histories end during the test
			Open: func(m mailbox.Machine) (mailbox.Mailbox, error) {
				log = mailbox.NewMemory(m)
				log.Depose()
				return log, nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		return a, log
	}
	caller := &fixture{t: t, net: net}
	known := func(of string, since messages.Time) (reply market.HistoryReply) {
		await.Until(t, of, func() (ok bool) {
			var err error
			reply, err = call[market.HistoryReply](caller, "alice", market.VerbHistory, market.HistoryRequest{Market: "m"})
			return err == nil && len(reply.At) > 0 && (since == 0 || reply.Since == since)
		})
		return reply
	}
	a, first := replica("a")
	b, second := replica("b")
	first.Elect()
	was := known("the first leader looks", 0)
	await.Until(t, "the second replica copies", func() bool {
		b.histories.mu.Lock()
		defer b.histories.mu.Unlock()
		return b.histories.since == was.Since && b.histories.markets["m"] != nil
	})
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	second.Elect()
	if is := known("the second leader knows it", was.Since); is.At[0] != was.At[0] {
		t.Errorf("it begins at %v, and began at %v", is.At[0], was.At[0])
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	c, third := replica("b")
	defer c.Close()
	third.Elect()
	if is := known("a start knows it", was.Since); is.At[0] != was.At[0] {
		t.Errorf("after a start it begins at %v, and began at %v", is.At[0], was.At[0])
	}
}
