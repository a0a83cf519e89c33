package netlab

import (
	"net"
	"testing"

	"github.com/candor-grid/candor/messages"
)

func TestLabsOnLoopbackDoNotMeet(t *testing.T) {
	one, err := Loopback()
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	two, err := Loopback()
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	if one.Address(1, 1) == two.Address(1, 1) {
		t.Errorf("two labs have host %s", one.Address(1, 1))
	}
	for _, address := range []string{one.Address(1, 1), one.Address(maxSites, maxHosts), one.Border(2)} {
		l, err := net.Listen("tcp", address+":0")
		if err != nil {
			t.Errorf("a host cannot listen: %v", err)
			continue
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestPlacesOutOfRangeAreRefused(t *testing.T) {
	n, err := Loopback()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	for _, place := range [][2]int{{0, 1}, {1, 0}, {maxSites + 1, 1}, {1, maxHosts + 1}} {
		if err := n.Add(place[0], place[1]); messages.KindOf(err) != messages.Invalid {
			t.Errorf("host %d of site %d: %v", place[1], place[0], err)
		}
	}
	if err := n.Cut(1, 1); messages.KindOf(err) != messages.Unavailable {
		t.Errorf("cutting a host off on loopback: %v", err)
	}
}

func TestNamespacesAreMadeInsideAlone(t *testing.T) {
	if _, err := Namespaces(t.TempDir()); messages.KindOf(err) != messages.Invalid {
		t.Errorf("namespaces of hosts outside of the lab's own: %v", err)
	}
}
