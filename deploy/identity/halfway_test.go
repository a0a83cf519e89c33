package identity

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// After an interruption at any write or copy, the directory must belong to the old key or to the new one, and Finish
// must complete the rotation.
func TestRotationOfTheAccountsKeyHalfDone(t *testing.T) {
	a, dir := Made(t)
	for _, err := range []error{second(a.Rotate(BankKey)), a.Finish(BankKey), second(a.Rotate(AccountKey))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, accountFile)
	next := publicKey(a.held.Load().successor)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if a.Later(next) == nil {
		t.Error("a host does not know the key that is to come")
	}
	if err := a.held.Load().retire(dir); err != nil { // the process is killed here
		t.Fatal(err)
	}
	half, err := Open(dir)
	if err != nil || publicKey(half.held.Load().account) != next {
		t.Fatalf("after a kill in the middle: %v", err)
	}
	if _, err := half.Rotate(AccountKey); messages.KindOf(err) != messages.Conflict {
		t.Errorf("another rotation: %v", err)
	}
	if err := half.Finish(AccountKey); err != nil {
		t.Fatal(err)
	}
	if whole, err := Open(dir); err != nil || publicKey(whole.held.Load().account) != next || len(whole.Succession()) != 1 {
		t.Errorf("after the end: %v", err)
	}
	if err := os.WriteFile(path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := half.Reload(); err == nil || publicKey(half.held.Load().account) != next {
		t.Errorf("the old key is back: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }
