package embedded

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages/await"
)

// A door is a port that accepts connections. A door with too many connections must be shut for at least a second, and
// until it has fewer.
func TestCrowdedDoorIsShut(t *testing.T) {
	const most = 100
	d, start := &door{}, time.Now()
	for _, step := range []struct {
		after         time.Duration
		has           int
		shut, changes bool
	}{
		{0, 99, false, false},
		{1, 100, true, true},
		{2, 5000, true, false},
		{3, 10, true, false}, // few connections, but shut for less than staysShut
		{2 * staysShut, 100, true, false},
		{2 * staysShut, 99, false, true},
		{2*staysShut + 1, 99, false, false},
		{2*staysShut + 2, 200, true, true},
	} {
		if changes := d.decide(step.has, most, start.Add(step.after)); changes != step.changes || d.shut.IsZero() == step.shut {
			t.Errorf("%d connections after %v: changes %v, shut since %v; want %v, %v", step.has, step.after, changes, d.shut, step.changes, step.shut)
		}
	}
}

// One port has too many connections. It must refuse new connections until these end. Its present connections must go
// on, and the other port must stay open.
func TestCrowdedDoorShutsNoOther(t *testing.T) {
	const most = 10
	crowded, other := accepting(t), accepting(t)
	o := &server.Options{}
	o.Cluster.Port, o.LeafNode.Port = crowded.port, other.port
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan bool)
	go func() { refuseStrangers(ctx, o, most, zap.NewNop()); close(ended) }()
	defer func() { stop(); <-ended }()
	early := crowded.dial(t, patience)
	if early == nil {
		t.Fatal("the first connection is refused")
	}
	await.Until(t, "the crowded port is shut", func() bool { return crowded.dial(t, 100*time.Millisecond) == nil })
	if got := len(crowded.dialed); got < most-2 {
		t.Errorf("%d connections, want about %d", got, most)
	}
	for range most / 2 {
		if other.dial(t, 5*time.Second) == nil {
			t.Fatal("the other port is shut also")
		}
	}
	if _, err := early.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if n, err := early.Read(make([]byte, 1)); n != 1 {
		t.Errorf("a connection that existed: %v", err)
	}
	for _, c := range crowded.dialed {
		c.Close()
	}
	await.Until(t, "the port is open again", func() bool { return crowded.dial(t, 100*time.Millisecond) != nil })
}

// Files of the process are closed after a look at the doors. New connections then get the low numbers of these files.
// This must not hide how many connections there are. And a large gap between the numbers of files must not hide the
// files above it.
func TestConnectionsInGapsAreCounted(t *testing.T) {
	const most, gap = 100, 2000
	var others [gap]*os.File
	for i := range others {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Skip(err)
		}
		others[i] = f
	}
	crowded := accepting(t)
	o := &server.Options{}
	o.Cluster.Port = crowded.port
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan bool)
	go func() { refuseStrangers(ctx, o, most, zap.NewNop()); close(ended) }()
	defer func() { stop(); <-ended }()
	for range most / 4 {
		if crowded.dial(t, patience) == nil {
			t.Fatal("the port is shut early")
		}
	}
	time.Sleep(5 * leastLook)
	for _, f := range others {
		_ = f.Close()
	}
	await.Until(t, "the crowded port is shut", func() bool { return crowded.dial(t, 100*time.Millisecond) == nil })
	if got := len(crowded.dialed); got > 2*most {
		t.Errorf("%d connections, want about %d", got, most)
	}
}

func TestMissingDoorIsNamed(t *testing.T) {
	doors, err := findDoors(0, accepting(t).port, 1)
	if err == nil || !strings.Contains(err.Error(), "port 1 has no listener") || len(doors) != 1 {
		t.Errorf("%d doors, %v", len(doors), err)
	}
}

// The number of files that a process may open can be small or large. Clients and three doors together must leave some
// of these files for the process itself.
func TestDoorsLeaveFiles(t *testing.T) {
	if most := mostAtDoor(); most < 1 || most > 4096 || mostConnections()+3*most > 2*mostConnections()*11/16 {
		t.Errorf("%d at each door", most)
	}
}

// echoes is a listener that echoes what it reads.
type echoes struct {
	port    int
	address string
	dialed  []net.Conn
}

func accepting(t *testing.T) *echoes {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); c.Close() }()
		}
	}()
	return &echoes{port: listener.Addr().(*net.TCPAddr).Port, address: listener.Addr().String()}
}

// dial returns nil if nobody answers in time.
func (e *echoes) dial(t *testing.T, within time.Duration) net.Conn {
	c, err := net.DialTimeout("tcp", e.address, within)
	if err != nil {
		return nil
	}
	t.Cleanup(func() { c.Close() })
	e.dialed = append(e.dialed, c)
	return c
}
