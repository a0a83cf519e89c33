package program

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages/await"
)

// TestUsersOfADirectoryService checks two things. The programs getent and id must find a user of a directory service
// who is in no file of this machine. A number must not be taken for the name of a user.
func TestUsersOfADirectoryService(t *testing.T) {
	dir := t.TempDir()
	asked := filepath.Join(dir, "asked")
	for name, script := range map[string]string{
		"getent": "#!/bin/sh\necho $2 >>" + asked + "\n[ $2 = frieda ] || [ $2 = 0 ] || exit 2\necho frieda:*:70001:70002:Frieda:/home/frieda:/bin/sh\n",
		"id":     "#!/bin/sh\n[ $2 = frieda ] && echo 70002 70003\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	var d lookups
	now := time.Now()
	for range 2 {
		l, err := d.find("frieda", now)
		if err != nil {
			t.Fatal(err)
		}
		if l.Uid != "70001" || l.Gid != "70002" || l.HomeDir != "/home/frieda" {
			t.Fatalf("%+v", l.User)
		}
		if !slices.Equal(l.groups, []string{"70002", "70003"}) {
			t.Fatalf("groups %v", l.groups)
		}
	}
	if said, err := os.ReadFile(asked); string(said) != "frieda\n" {
		t.Errorf("asked for %q, %v", said, err)
	}
	for _, name := range []string{"0", "nobody-of-that-name"} {
		if l, err := d.find(name, now); err == nil {
			t.Errorf("%s is %+v", name, l.User)
		}
	}
	if l, err := d.find("daemon", now); err != nil || l.Uid != "1" { // the file of this machine has the user "daemon"
		t.Errorf("%+v, %v", l.User, err)
	}
	if _, err := d.find("frieda", now.Add(lookupLasts)); err != nil {
		t.Error(err)
	}
	if said, _ := os.ReadFile(asked); string(said) != "frieda\n0\nnobody-of-that-name\ndaemon\nfrieda\n" {
		t.Errorf("asked for %q", said)
	}
}

// TestSlowNameDelaysNoOther makes the look-up of one user hang. Other users must be found.
func TestSlowNameDelaysNoOther(t *testing.T) {
	dir := t.TempDir()
	gate, asked := filepath.Join(dir, "gate"), filepath.Join(dir, "asked")
	if err := unix.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"getent": "#!/bin/sh\necho $2 >>" + asked + "\nif [ $2 = slow ]; then read line <" + gate + "; fi\necho $2:*:70001:70002:X:/home/x:/bin/sh\n",
		"id":     "#!/bin/sh\necho 70002\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	var d lookups
	now := time.Now()
	slow := make(chan error, 2)
	for range cap(slow) {
		go func() { _, err := d.find("slow", now); slow <- err }()
	}
	await.Until(t, "it is asked for", func() bool { said, _ := os.ReadFile(asked); return string(said) == "slow\n" })
	quick := make(chan error, 1)
	go func() { _, err := d.find("quick", now); quick <- err }()
	select {
	case err := <-quick:
		if err != nil {
			t.Error(err)
		}
	case err := <-slow: // fails after 10 s
		t.Errorf("it waited for the other: %v", err)
	}
	if err := os.WriteFile(gate, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	for range cap(slow) {
		if err := <-slow; err != nil {
			t.Error(err)
		}
	}
	if said, _ := os.ReadFile(asked); string(said) != "slow\nquick\n" {
		t.Errorf("asked for %q", said)
	}
}
