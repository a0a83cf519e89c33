package embedded

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
)

func TestStateHasOneHolder(t *testing.T) {
	state := filepath.Join(t.TempDir(), "a", "b")
	held, err := lockState(state)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockState(state); messages.KindOf(err) != messages.Conflict {
		t.Fatalf("second holder: %v, want Conflict", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := lockState(state)
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// Erasing a site must remove only files that the site made.
func TestEraseLeavesTheRest(t *testing.T) {
	state := t.TempDir()
	for _, dir := range []string{"keys", "creds", "nats", "auctioneer/1/wal", "bank", "nodes", "mine"} {
		if err := os.MkdirAll(filepath.Join(state, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeInfo(state, Info{Site: "west"}); err != nil {
		t.Fatal(err)
	}
	if err := erase(state); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(state)
	if err != nil || len(left) != 1 || left[0].Name() != "mine" {
		t.Errorf("left: %v, %v; want only mine", left, err)
	}
}

// A fresh start in a directory that never had a site must leave the directory's files, even if the start fails.
func TestFreshRemovesNobodyElses(t *testing.T) {
	state := t.TempDir()
	mine := filepath.Join(state, "keys", "mine")
	if err := errors.Join(os.Mkdir(filepath.Dir(mine), 0o700), os.WriteFile(mine, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, fresh := range []bool{true, false, true} {
		s, err := Start(within(t), small(state), Options{Fresh: fresh})
		if err == nil {
			closeSite(t, s)
		}
		if err == nil || fresh && (messages.KindOf(err) != messages.Conflict || !strings.Contains(err.Error(), filepath.Dir(mine))) {
			t.Errorf("fresh %v: %v", fresh, err)
		}
		if _, err := os.Stat(mine); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInfoIsRead(t *testing.T) {
	state := t.TempDir()
	if _, err := ReadInfo(state); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a site: %v, want fs.ErrNotExist", err)
	}
	want := Info{Site: "west", Server: "nats://127.0.0.1:4222", DefaultAccount: "alice"}
	if err := writeInfo(state, want); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadInfo(state); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v; want %+v", got, err, want)
	}
}

// Valid credentials must be kept, so that a user's copy stays valid too. Credentials of another role, or with old keys,
// must be replaced.
func TestCredentialsAreReplacedWhenTheyMust(t *testing.T) {
	state := t.TempDir()
	authority, err := identity.Create(filepath.Join(state, "keys"), "west")
	if err != nil {
		t.Fatal(err)
	}
	issue := func(a *identity.Authority, role identity.Role) string {
		t.Helper()
		file, err := WriteCredentials(state, a, role, "alice")
		if err != nil || file != CredsFile(state, "alice") {
			t.Fatal(file, err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := issue(authority, identity.User)
	if issue(authority, identity.User) != first {
		t.Error("right credentials were replaced")
	}
	operator := issue(authority, identity.Operator)
	if operator == first {
		t.Error("credentials of another role were kept")
	}
	if file, err := WriteCredentials(state, authority, identity.Node, "alice"); err != nil || file == CredsFile(state, "alice") {
		t.Errorf("a node called like a user has credentials in %s, %v", file, err)
	}
	renewed, err := identity.Create(filepath.Join(state, "keys2"), "west")
	if err != nil {
		t.Fatal(err)
	}
	if issue(renewed, identity.Operator) == operator {
		t.Error("credentials of other keys were kept")
	}
}

// A state directory may be used again only with the same shape of the site.
func TestStateKeepsItsShape(t *testing.T) {
	made := small(t.TempDir())
	for range 2 {
		if err := keepShape(&made); err != nil {
			t.Fatal(err)
		}
	}
	for what, change := range map[string]func(*Config){
		"other replicas": func(c *Config) { c.Replicas = 5 },
		"another site":   func(c *Config) { c.Site = "east" },
		"hosts":          func(c *Config) { c.Hosts = three() },
	} {
		c := made
		change(&c)
		if err := keepShape(&c); messages.KindOf(err) != messages.Conflict || !strings.Contains(err.Error(), filepath.Join(made.State, shapeFile)) {
			t.Errorf("%s: %v, want a Conflict that names the file", what, err)
		}
	}
	path := filepath.Join(made.State, shapeFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		flipped := bytes.Clone(text)
		flipped[i] ^= 2
		if err := os.WriteFile(path, flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		err := keepShape(&made)
		if err != nil && (!strings.Contains(err.Error(), path)) || err == nil && i < bytes.Index(text, []byte(`"sum"`)) {
			t.Errorf("byte %d flipped: %v, want an error that names the file", i, err)
		}
	}
}
