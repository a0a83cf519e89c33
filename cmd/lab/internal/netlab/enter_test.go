package netlab

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	Probed() // if this process was started only to try the network, Probed does not return
	os.Exit(m.Run())
}

// A bridge, a host and its link are made in new namespaces. None may be visible in the test's own namespaces, even
// after a refused step.
func TestTryingLeavesNothing(t *testing.T) {
	before, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	permitted := 0
	for name, more := range map[string]uintptr{"as this user": 0, "in a user namespace": unix.CLONE_NEWUSER} {
		if err := tryEnter(more); err != nil {
			t.Logf("%s: not permitted: %v", name, err)
			continue
		}
		permitted++
	}
	t.Logf("namespaces are permitted in %d of 2 ways", permitted)
	after, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range after {
		if i.Name == "site1" || i.Name == veth(1, 1) {
			t.Errorf("interface %s was left behind; there were %d before and are %d", i.Name, len(before), len(after))
		}
	}
}
