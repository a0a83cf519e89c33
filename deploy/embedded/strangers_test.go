package embedded

import (
	"net"
	"testing"
	"time"
)

// While the valve is shut, nobody connects, and connections that exist go on.
func TestValveStopsNewConnections(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	v, err := newValve(listener.Addr().(*net.TCPAddr).Port)
	if err != nil || len(v.listeners) != 1 {
		t.Fatalf("%d listeners, %v", len(v.listeners), err)
	}
	defer func() { _ = v.close() }()
	dial := func(within time.Duration) error {
		c, err := net.DialTimeout("tcp", listener.Addr().String(), within)
		if err == nil {
			t.Cleanup(func() { c.Close() })
		}
		return err
	}
	early, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	if err := v.shut(); err != nil {
		t.Fatal(err)
	}
	if dial(100*time.Millisecond) == nil {
		t.Error("a connection is accepted while the valve is shut")
	}
	if _, err := early.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if n, err := accepted.Read(make([]byte, 1)); n != 1 {
		t.Errorf("a connection that existed: %v", err)
	}
	if err := v.open(); err != nil {
		t.Fatal(err)
	}
	if err := dial(patience); err != nil {
		t.Errorf("after the valve opened: %v", err)
	}
}
