package mailbox

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
)

func TestConfigIsRefusedByField(t *testing.T) {
	cases := []struct {
		field  string
		spoil  func(*Config)
		reason string
	}{
		{"ID", func(c *Config) { c.ID = "" }, "empty"},
		{"Dir", func(c *Config) { c.Dir = "" }, "empty"},
		{"Name", func(c *Config) { c.Name = "Bank!" }, "not a metric's name"},
		{"Listen", func(c *Config) { c.Listen = "" }, "no address"},
		{"Resolve", func(c *Config) { c.Resolve = nil }, "no addresses"},
		{"Bootstrap", func(c *Config) { c.Bootstrap = []string{"b"} }, "without this replica"},
		{"Bootstrap", func(c *Config) { c.Bootstrap = []string{"a", "b", "b"} }, "twice"},
		{"Bootstrap", func(c *Config) { c.Bootstrap = []string{"a", ""} }, "empty ID"},
		{"TLS", func(c *Config) { c.TLS = nil }, "plaintext"},
		{"TLS", func(c *Config) { c.TLS.Certificates = nil }, "no certificate"},
		{"TLS", func(c *Config) { c.TLS.ClientAuth = tls.VerifyClientCertIfGiven }, "callers without a certificate"},
		{"TLS", func(c *Config) { c.TLS.InsecureSkipVerify = true }, "any certificate"},
		{"TLS", func(c *Config) { c.TLS.MinVersion = tls.VersionTLS12 }, "an old version"},
		{"Group", func(c *Config) { c.Group = "" }, "certificates for anything"},
		{"Local", func(c *Config) { c.Local = NewLocal() }, "and a port"},
		{"Timeout", func(c *Config) { c.Timeout = time.Millisecond }, "too short"},
		{"SegmentBytes", func(c *Config) { c.SegmentBytes = 1 }, "too small"},
	}
	secure := newAuthority(t).issue("a.bank.west")
	for _, test := range cases {
		c := Config{ID: "a", Dir: "d", Listen: "127.0.0.1:0", Group: "bank.west", TLS: secure.Clone(), Bootstrap: []string{"a", "b"},
			Resolve: func(string) (string, error) { return "127.0.0.1:1", nil }}
		if err := c.Validate(); err != nil {
			t.Fatalf("a good configuration is refused: %v", err)
		}
		test.spoil(&c)
		err := c.Validate()
		if !errors.Is(err, &messages.Error{Kind: messages.Invalid}) || !strings.Contains(err.Error(), test.field) {
			t.Errorf("%s, %s: %v", test.field, test.reason, err)
		}
	}
}

func TestDirectoryIsLocked(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 1, nil)
	g.start("r1")
	if _, err := OpenRaft(g.config("r1"), newTally()); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second replica opened the directory: %v", err)
	}
}

// An earlier release kept the log with the library bolt. A directory with such a log must stay unchanged, and the error
// must say what to do.
func TestLogOfTheDroppedStoreIsRefused(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, nil)
	old := filepath.Join(g.dirs["r1"], boltFile)
	if err := errors.Join(os.MkdirAll(g.dirs["r1"], 0o700), os.WriteFile(old, []byte("a log"), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err := OpenRaft(g.config("r1"), newTally())
	if messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), old) || !strings.Contains(err.Error(), "the previous release") {
		t.Errorf("opened: %v", err)
	}
	if text, err := os.ReadFile(old); string(text) != "a log" {
		t.Errorf("the log is %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(g.dirs["r1"], walDir)); err == nil {
		t.Error("another log was begun beside it")
	}
}

// TestLockIsGivenUpAtOnce closes a replica while a child process starts. Until the child executes its program, it
// shares the open lock file. The lock must still be free at once.
func TestLockIsGivenUpAtOnce(t *testing.T) {
	dir := t.TempDir()
	held, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	child, err := unix.Dup(int(held.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	if err := unlock(held); err != nil {
		t.Fatal(err)
	}
	again, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := unlock(again); err != nil {
		t.Fatal(err)
	}
}
