package serve

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/money"
)

func must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := run(t, args...)
	if err != nil {
		t.Fatalf("candor %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// refused runs a command that must fail with an error of the given kind and text.
func refused(t *testing.T, kind messages.Kind, sentence string, args ...string) {
	t.Helper()
	if _, err := run(t, args...); messages.KindOf(err) != kind || !strings.Contains(err.Error(), sentence) {
		t.Errorf("candor %s: %v (%v), want %v with %q", strings.Join(args, " "), err, messages.KindOf(err), kind, sentence)
	}
}

// joined makes two sites, and exchanges the invitation and the answers that make them peers. It returns the directories
// of the two sites.
func joined(t *testing.T, further ...string) (west, east string) {
	t.Helper()
	dir := t.TempDir()
	west, east = filepath.Join(dir, "west"), filepath.Join(dir, "east")
	for _, name := range []string{"west", "east"} {
		must(t, append([]string{"site", "init", name, "--dir", filepath.Join(dir, name)}, further...)...)
	}
	invitation, answer := filepath.Join(dir, "invitation"), filepath.Join(dir, "answer")
	must(t, "site", "invite", "east", "--config", west+"/site.yaml", "-o", invitation)
	must(t, "site", "join", invitation, "--config", east+"/site.yaml", "--limit", "50", "-o", answer)
	must(t, "site", "join", answer, "--config", west+"/site.yaml", "--limit", "40")
	return west, east
}

// If two joined sites have the same owner, the written configuration must say so.
func TestSitesOfOneOwner(t *testing.T) {
	dir := t.TempDir()
	west, east := filepath.Join(dir, "west"), filepath.Join(dir, "east")
	must(t, "site", "init", "west", "--dir", west)
	must(t, "site", "init", "east", "--dir", east)
	must(t, "site", "invite", "east", "--config", west+"/site.yaml", "-o", dir+"/letter")
	must(t, "site", "join", dir+"/letter", "--config", east+"/site.yaml", "--limit", "50", "--same-owner", "-o", dir+"/answer")
	if c := configOf(t, east); len(c.Peers) != 1 || !c.Peers[0].SameOwner {
		t.Errorf("%+v", c.Peers)
	}
}

func configOf(t *testing.T, dir string) embedded.Config {
	t.Helper()
	c, err := (&settings{file: filepath.Join(dir, "site.yaml")}).load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Two sites are made and joined by commands. With the written configuration, payments must work in both directions,
// over links with certificates at both ends.
func TestJoinedSitesSettle(t *testing.T) {
	westDir, eastDir := joined(t)
	west, east := configOf(t, westDir), configOf(t, eastDir)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if west.TLS == nil || len(east.Peers[0].URLs) != 1 || east.Peers[0].URLs[0] != "tls://127.0.0.1:7422" {
		t.Fatalf("west has TLS %v; east has peers %+v", west.TLS, east.Peers)
	}
	start := func(c *embedded.Config) *embedded.Site {
		c.Listen, c.ListenLeaf, c.Replicas = "127.0.0.1:0", "127.0.0.1:0", 1
		c.Accounts = []embedded.Account{{Name: "alice", Grant: 100 * messages.Credit}}
		s, err := embedded.Start(ctx, *c, embedded.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
		return s
	}
	hub := start(&west)
	east.Peers[0].URLs[0] = "tls://" + hub.Info().Leaf
	leaf := start(&east)
	payer, payee := connected(t, leaf), connected(t, hub)
	remit := clearing.RemitRequest{Key: "k", Peer: "west", Payee: "alice", Amount: 7 * messages.Credit}
	if _, err := bus.Call[clearing.ClearingReply](ctx, payer, messages.Subject("east", messages.Bank, clearing.VerbRemit, "alice"), remit); err != nil {
		t.Fatal(err)
	}
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for ; ; <-every.C { // the loop ends at the deadline of ctx
		a, err := bus.Call[money.AccountReply](ctx, payee, messages.Subject("west", messages.Bank, messages.VerbAccount, "alice"), money.AccountRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if a.Balance == 107*messages.Credit {
			return
		}
	}
}

func connected(t *testing.T, s *embedded.Site) bus.Bus {
	t.Helper()
	b, err := s.Connect("alice")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// Two sites become peers by an exchange of two letters: an invitation and an answer. Only the owner of the files may
// read the letters. After the exchange, the configuration must be right.
func TestLettersAreWritten(t *testing.T) {
	west, east := joined(t)
	for file, mode := range map[string]os.FileMode{
		filepath.Dir(west) + "/invitation": 0o600, filepath.Dir(west) + "/answer": 0o600,
		east + "/peers/west.creds": 0o600, west + "/site.yaml": 0o644, west + "/tls/ca.key": 0o600, west + "/keys/operator.nk": 0o600,
	} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: mode %v, %v; want %v", file, info.Mode().Perm(), err, mode)
		}
	}
	w, e := configOf(t, west), configOf(t, east)
	if p := w.Peers[0]; p.Name != "east" || p.Limit != 40*messages.Credit || len(p.Keys) != 1 || len(p.URLs) != 0 || p.Creds != "" || p.CA == "" {
		t.Errorf("west's peer is %+v", p)
	}
	if p := e.Peers[0]; p.Name != "west" || p.Limit != 50*messages.Credit || len(p.Keys) != 1 || len(p.URLs) != 1 || p.Creds == "" || p.CA == "" {
		t.Errorf("east's peer is %+v", p)
	}
	if text, err := os.ReadFile(west + "/site.yaml"); err != nil || !strings.Contains(string(text), "# Who may grant credits") {
		t.Errorf("what was written in the configuration is gone: %v\n%s", err, text)
	}
}

func TestLettersAreRefused(t *testing.T) {
	west, east := joined(t)
	dir := filepath.Dir(west)
	invitation, answer, config := dir+"/invitation", dir+"/answer", []string{"--config", west + "/site.yaml"}
	before, err := os.ReadFile(west + "/site.yaml")
	if err != nil {
		t.Fatal(err)
	}
	refused(t, messages.Invalid, "is the site itself", append([]string{"site", "invite", "west"}, config...)...)
	refused(t, messages.Conflict, "exists already", append([]string{"site", "invite", "north", "-o", invitation}, config...)...)
	refused(t, messages.Conflict, "is a peer already, with other", append([]string{"site", "join", answer, "--limit", "1"}, config...)...)
	refused(t, messages.Invalid, `is for site "east"`, append([]string{"site", "join", invitation, "--limit", "1"}, config...)...)
	refused(t, messages.Invalid, "--limit", append([]string{"site", "join", answer, "--limit", "much"}, config...)...)
	refused(t, messages.Invalid, "no such file", append([]string{"site", "join", dir + "/nothing", "--limit", "1"}, config...)...)
	refused(t, messages.Invalid, "no invitation or answer", append([]string{"site", "join", west + "/site.yaml", "--limit", "1"}, config...)...)

	must(t, "site", "init", "north", "--dir", dir+"/north", "--plain")
	must(t, append([]string{"site", "invite", "north", "-o", dir + "/to-north"}, config...)...)
	refused(t, messages.Conflict, "only one has certificates", "site", "join", dir+"/to-north", "--limit", "1", "--config", dir+"/north/site.yaml")
	must(t, "site", "init", "south", "--dir", dir+"/south")
	must(t, append([]string{"site", "invite", "south", "-o", dir + "/to-south"}, config...)...)
	alone := configOf(t, dir+"/south")
	refused(t, messages.Conflict, "exists already", "site", "join", dir+"/to-south", "--limit", "1", "--config", dir+"/south/site.yaml", "-o", answer)
	if now := configOf(t, dir+"/south"); len(now.Peers) != len(alone.Peers) {
		t.Errorf("whose answer cannot be written has the peers %+v", now.Peers)
	}
	altered := dir + "/altered"
	alter(t, answer, altered, func(l *identity.Letter) { l.Site = "south" })
	refused(t, messages.PermissionDenied, "this site has written no invitation", append([]string{"site", "join", altered, "--limit", "1"}, config...)...)
	if after, err := os.ReadFile(west + "/site.yaml"); err != nil || string(after) != string(before) {
		t.Errorf("the configuration was changed: %v", err)
	}
	if entries, err := os.ReadDir(east + "/peers"); err != nil || len(entries) != 2 {
		t.Errorf("beside it are %v, %v", entries, err)
	}
}

func alter(t *testing.T, from, to string, change func(*identity.Letter)) {
	t.Helper()
	letter, err := readLetter(from)
	if err != nil {
		t.Fatal(err)
	}
	change(letter)
	text, err := json.Marshal(letter)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPeersAreInserted adds a peer to configuration files. The existing lines of a file must stay, and the new file
// must contain the peer. If a peer cannot be added to a file, the error must have the text that the operator must add
// by hand.
func TestPeersAreInserted(t *testing.T) {
	p := embedded.Peer{Name: "east", URLs: []string{"tls://h:1"}, Creds: "/x/east.creds", Keys: []string{"A", "B"}, Limit: 7 * messages.Credit / 2}
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"none":              {"site: west # ours\nlisten_leaf: 127.0.0.1:1\n", true},
		"no newline":        {"site: west", true},
		"empty":             {"", true},
		"one":               {"site: west\npeers:\n  # a comment\n  - {name: north, keys: [C], limit: 1, urls: [\"tls://n:1\"], creds: c}\nreplicas: 3\n", true},
		"not indented":      {"peers:\n- name: north\n  keys: [C]\n  urls: [\"tls://n:1\"]\n  creds: c\n  limit: 1\nsite: west\n", true},
		"in braces":         {"peers: [{name: north, keys: [C], urls: [\"tls://n:1\"], creds: c, limit: 1}]\n", false},
		"an empty list":     {"peers: []\n", false},
		"all in braces":     {"{site: west}\n", false},
		"there already":     {"peers:\n  - {name: east, keys: [C], urls: [\"tls://n:1\"], creds: c, limit: 1}\n", false},
		"wrong in the rest": {"site: west\nreplicas: 2\n", false},
	} {
		file := filepath.Join(t.TempDir(), "site.yaml")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		changed, err := withPeer(file, p)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		for _, line := range strings.Split(strings.TrimSuffix(c.text, "\n"), "\n") {
			if !strings.Contains(string(changed), line+"\n") {
				t.Errorf("%s: the line %q is gone:\n%s", name, line, changed)
			}
		}
	}
}

// A site for one host, or for three, has all files that each host needs. Existing files must not change.
func TestInitMakesSites(t *testing.T) {
	dir := t.TempDir()
	out := must(t, "site", "init", "west", "--dir", dir+"/w", "--hosts", "rack1=10.0.0.1,rack2=10.0.0.2,rack3=10.0.0.3")
	if !strings.Contains(out, "candor up --config "+dir+"/w/site.yaml --host rack2") {
		t.Errorf("it says %s", out)
	}
	c := configOf(t, dir+"/w")
	if len(c.Hosts) != 3 || c.Hosts[2].Leaf != "10.0.0.3:7422" || c.TLS.Cert != dir+"/w/tls/{host}.pem" || c.Nodes[1].Name != "rack2" {
		t.Errorf("hosts %+v, tls %+v, nodes %+v", c.Hosts, c.TLS, c.Nodes)
	}
	if want := map[bool]string{true: "account"}[os.Geteuid() == 0]; c.Tasks.User != want {
		t.Errorf("tasks run as %q, want %q", c.Tasks.User, want)
	}
	if out := must(t, "site", "certify", "rack1", "10.0.0.1", "hub.west.example", "--tls", dir+"/w/tls"); !strings.Contains(out, "after its next start") {
		t.Errorf("it says %s", out)
	}
	if out := must(t, "site", "certify", "rack9", "--tls", dir+"/w/tls"); !strings.Contains(out, `"tls:" of its configuration names`) {
		t.Errorf("of a certificate that no host uses it says %s", out)
	}
	for _, file := range []string{"rack1.pem", "rack2.key", "ca.pem"} {
		if _, err := os.Stat(dir + "/w/tls/" + file); err != nil {
			t.Error(err)
		}
	}
	must(t, "site", "invite", "east", "--config", dir+"/w/site.yaml", "-o", dir+"/letter")
	letter, err := readLetter(dir + "/letter")
	if err != nil || len(letter.URLs) != 3 || letter.URLs[0] != "tls://10.0.0.1:7422" {
		t.Errorf("the invitation has %v, %v", letter.URLs, err)
	}
	refused(t, messages.Conflict, "exists already", "site", "init", "west", "--dir", dir+"/w")
	refused(t, messages.Invalid, "lower-case", "site", "init", "West!")
	refused(t, messages.Invalid, "rack1=10.0.0.1", "site", "init", "x", "--dir", dir+"/x", "--hosts", "rack1")
	refused(t, messages.Invalid, "an odd number", "site", "init", "x", "--dir", dir+"/x", "--hosts", "a=10.0.0.1,b=10.0.0.2")
	refused(t, messages.Invalid, "has all its files in --dir", "site", "init", "x", "--keys", dir+"/x")
	refused(t, messages.NotFound, "--tls", "site", "certify", "rack1", "--tls", dir)
	if _, err := os.Stat(dir + "/x"); !os.IsNotExist(err) {
		t.Errorf("what was refused left something: %v", err)
	}
	must(t, "site", "init", "plain", "--dir", dir+"/p", "--plain", "--listen", "127.0.0.1:5222")
	if c := configOf(t, dir+"/p"); c.TLS != nil || c.ListenLeaf != "127.0.0.1:8422" {
		t.Errorf("plain: %+v", c)
	}
}

// candor site nats prints the NATS accounts that another server needs. For all peers together, it must print the
// account of each peer with its key.
func TestAccountsForOtherServers(t *testing.T) {
	west, _ := joined(t, "--plain")
	text := must(t, "site", "nats", "--config", west+"/site.yaml")
	key := strings.TrimSpace(must(t, "site", "nats", "--config", west+"/site.yaml", "--peer", "east"))
	if !strings.Contains(text, "# PEER-east\n  "+key+": ") || !strings.Contains(text, "# CANDOR\n") {
		t.Errorf("the key is %s, of\n%s", key, text)
	}
	refused(t, messages.NotFound, "no site has keys there", "site", "nats", "--config", write(t, "site: south\nkeys: /nowhere\n"))
	refused(t, messages.Conflict, "holds the keys of site west", "site", "nats", "--config", write(t, "site: south\nkeys: "+west+"/keys\n"))
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "site.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// To become peers, sites exchange letters: an invitation and an answer, in files. If a site reads the same letters
// again, nothing must change. A new invitation must have new credentials, so that an operator can revoke the
// credentials of the old invitation.
func TestLettersAgain(t *testing.T) {
	west, east := joined(t)
	dir := filepath.Dir(west)
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	config, creds := read(east+"/site.yaml"), read(east+"/peers/west.creds")
	must(t, "site", "join", dir+"/invitation", "--config", east+"/site.yaml", "--limit", "50", "-o", dir+"/again")
	if read(east+"/site.yaml") != config || read(east+"/peers/west.creds") != creds {
		t.Error("the same letter changed something")
	}
	must(t, "site", "invite", "east", "--config", west+"/site.yaml", "-o", dir+"/new")
	must(t, "site", "join", dir+"/new", "--config", east+"/site.yaml", "--limit", "50", "-o", dir+"/answer2")
	must(t, "site", "join", dir+"/answer2", "--config", west+"/site.yaml", "--limit", "40")
	if read(east+"/site.yaml") != config || read(east+"/peers/west.creds") == creds {
		t.Error("a new invitation changed the configuration, or not the credentials")
	}
	must(t, "user", "revoke", "--file", dir+"/invitation", "--config", west+"/site.yaml")
	key, err := identity.KeyOf([]byte(creds))
	if err != nil || !strings.Contains(read(west+"/keys/revoked.json"), key) {
		t.Errorf("%s is not revoked: %v", key, err)
	}
}
