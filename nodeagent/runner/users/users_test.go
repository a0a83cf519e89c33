package users_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/candor-grid/candor/nodeagent/runner/users"
)

// TestNumbersAreOneAccounts checks that no two accounts get the same number, that nodes which share the file agree, and
// that a restart changes no number.
func TestNumbersAreOneAccounts(t *testing.T) {
	among := users.Range{First: 5000, Last: 5000 + users.Least - 1}
	file := filepath.Join(t.TempDir(), "users")
	nodes := []*users.Registry{users.Open(file, among), users.Open(file, among)}
	got := make([]map[string]uint32, len(nodes))
	var wg sync.WaitGroup
	for i, node := range nodes {
		got[i] = map[string]uint32{}
		wg.Go(func() {
			for a := range users.Least {
				name := fmt.Sprint("account", (a*(1+2*i))%users.Least)
				n, err := node.Number(name)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				got[i][name] = n
			}
		})
	}
	wg.Wait()
	seen := map[uint32]string{}
	again := users.Open(file, among)
	for name, n := range got[0] {
		if other := seen[n]; other != "" || !among.Contains(n) {
			t.Errorf("%s and %s have %d", name, other, n)
		}
		seen[n] = name
		if later, err := again.Number(name); got[1][name] != n || later != n || err != nil {
			t.Errorf("%s has %d, %d and later %d (%v)", name, n, got[1][name], later, err)
		}
	}
	if n, err := again.Number("one-more"); err == nil || !strings.Contains(err.Error(), "widen") {
		t.Errorf("beyond the range: %d, %v", n, err)
	}
}

func TestRangesThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"0-70000": "above 0", "70000-60000": "above 0", "1-4294967295": "above 0", "100000-100100": "at least 256",
	} {
		r, ok := users.Parse(text)
		if err := r.Check(); !ok || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	taken := []users.Taken{{Range: users.Range{First: 100000, Last: 165535}, Who: "the subordinate users of bob"}}
	if err := (users.Range{First: 165535, Last: 200000}).Free(taken); err == nil || !strings.Contains(err.Error(), "bob has 100000-165535") {
		t.Errorf("a range of bob's: %v", err)
	}
	if err := (users.Range{First: 165536, Last: 200000}).Free(taken); err != nil {
		t.Errorf("a free range: %v", err)
	}
	small := []users.Range{{First: 0, Last: 65535}} // the usual range of users in a container
	if r, err := users.Choose(nil, small); err != nil || r.Last > 65535 || r.Check() != nil {
		t.Errorf("in a container: %v %v", r, err)
	}
	if r, err := users.Choose([]users.Range{{First: 1, Last: 4294967294}}, small); err == nil {
		t.Errorf("chose %v where nothing is free", r)
	}
}

// TestADamagedLineIsRefused flips one bit in each byte of the file. No account may get another account's number.
func TestADamagedLineIsRefused(t *testing.T) {
	path, among := filepath.Join(t.TempDir(), "users"), users.Range{First: 100000, Last: 165535}
	if _, err := users.Open(path, among).Number("alice"); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole[:len(whole)-1] { // a crash can cut off the last line; its number was not yet given to an account
		damaged := slices.Clone(whole)
		damaged[i] ^= 1
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := users.Open(path, among).Number("bob"); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("byte %d: %d, %v", i, n, err)
		}
	}
	if err := os.WriteFile(path, []byte("100007 alice\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := users.Open(path, among).Number("alice"); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("a line without a checksum: %d, %v", n, err)
	}
}
