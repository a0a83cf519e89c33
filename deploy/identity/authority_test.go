package identity

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
)

func create(t *testing.T) (*Authority, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state", "keys")
	a, err := Create(dir, "west")
	if err != nil {
		t.Fatal(err)
	}
	return a, dir
}

// Only the owner may read the seeds, and the directory must be complete or absent.
func TestCreateKeepsKeysPrivate(t *testing.T) {
	_, dir := create(t)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	others := []string{siteFile}
	if want := len(others) + len(keyFiles()); len(entries) != want {
		t.Fatalf("%d files in the keys directory, want %d", len(entries), want)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %04o, want 0600", e.Name(), info.Mode().Perm())
		}
	}
	siblings, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	if len(siblings) != 1 {
		t.Errorf("left beside the keys directory: %v", siblings)
	}
}

func TestCreateReplacesNothing(t *testing.T) {
	_, dir := create(t)
	if _, err := Create(dir, "west"); messages.KindOf(err) != messages.Conflict {
		t.Fatalf("second Create: %v, want Conflict", err)
	}
}

// Credentials from before a restart must be valid after it.
func TestOpenIsTheSameAuthority(t *testing.T) {
	a, dir := create(t)
	creds, err := a.Issue(Node, "node1")
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenOrCreate(dir, "west")
	if err != nil {
		t.Fatal(err)
	}
	role, name, err := again.Issued(creds)
	if err != nil || role != Node || name != "node1" {
		t.Fatalf("Issued = %s %s %v, want node node1", role, name, err)
	}
	first, err1 := a.RouteSecret()
	second, err2 := again.RouteSecret()
	if err1 != nil || err2 != nil || first != second {
		t.Fatalf("route secrets differ or failed: %v %v", err1, err2)
	}
	stranger, _ := create(t)
	if _, _, err := stranger.Issued(creds); messages.KindOf(err) != messages.PermissionDenied {
		t.Errorf("another authority took the credentials: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	damage := map[string]struct {
		do   func(dir string) error
		want string
	}{
		"a key that others can read": {
			func(dir string) error { return os.Chmod(filepath.Join(dir, accountFile), 0o640) }, "other users can read this file"},
		"a key of the wrong type": {
			func(dir string) error {
				return os.Rename(filepath.Join(dir, accountFile), filepath.Join(dir, operatorFile))
			}, "wrong type"},
		"a cut seed": {
			func(dir string) error { return os.Truncate(filepath.Join(dir, systemFile), 20) }, systemFile},
		"a missing key": {
			func(dir string) error { return os.Remove(filepath.Join(dir, roleFile(User))) }, roleFile(User)},
		"a site that is no name": {
			func(dir string) error { return os.WriteFile(filepath.Join(dir, siteFile), []byte("West!\n"), 0o600) }, "site's name"},
	}
	for what, c := range damage {
		t.Run(what, func(t *testing.T) {
			_, dir := create(t)
			if err := c.do(dir); err != nil {
				t.Fatal(err)
			}
			_, err := OpenOrCreate(dir, "west")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestOpenOfNothingAndOfAnotherSite(t *testing.T) {
	_, dir := create(t)
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of a missing directory: %v, want fs.ErrNotExist", err)
	}
	if _, err := OpenOrCreate(dir, "east"); messages.KindOf(err) != messages.Conflict || !strings.Contains(err.Error(), filepath.Join(dir, siteFile)) {
		t.Errorf("keys of another site: %v, want Conflict", err)
	}
}

func TestIssueRefusesNames(t *testing.T) {
	a, _ := create(t)
	cases := []struct {
		role Role
		name messages.Name
	}{
		{User, ""}, {User, "*"}, {User, "a.b"}, {User, "$bank"}, {User, "Alice"}, {User, "{{name()}}"},
		{Operator, ">"}, {Node, "$auctioneer"}, {Service, "bank"}, {Service, "$issuer"}, {Role("root"), "alice"},
	}
	for _, c := range cases {
		if creds, err := a.Issue(c.role, c.name); messages.KindOf(err) != messages.Invalid || creds != nil {
			t.Errorf("Issue(%s, %q) = %d bytes, %v; want Invalid", c.role, c.name, len(creds), err)
		}
	}
}
