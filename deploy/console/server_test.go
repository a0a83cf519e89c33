package console_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/candor-grid/candor/deploy/console"
	"github.com/candor-grid/candor/messages/await"
)

// Idle connections must not use up the file descriptors of the process. Other users must still get pages.
func TestIdleConnectionsKeepNobodyOut(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := console.Server(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "page") }), nil)
	go func() { _ = s.Serve(listener) }()
	defer s.Close()
	get := func() (net.Conn, error) {
		c, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			return nil, err
		}
		_ = c.SetDeadline(time.Now().Add(await.Patience))
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		_, err = c.Read(make([]byte, 1))
		return c, err
	}
	const more = 100
	var idle []net.Conn
	for range console.MostConnections + more {
		c, err := get()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		idle = append(idle, c)
	}
	for i, c := range idle[:more/2] { // roughly the first connections are closed; not exactly these, because a connection counts as idle a moment after its answer
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Fatalf("connection %d of %d is still open: %v", i, len(idle), err)
		}
	}
	last := idle[len(idle)-1]
	fmt.Fprint(last, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if _, err := io.ReadFull(last, make([]byte, 200)); err != nil {
		t.Errorf("the last connection: %v", err)
	}
}

// Connections that send nothing do not end a page that is being sent, no matter how fast they come.
func TestSilentConnectionsDoNotEndARequest(t *testing.T) {
	t.Run("slowly", func(t *testing.T) { testSilentConnections(t, 1100*time.Millisecond) })
	t.Run("at once", func(t *testing.T) { testSilentConnections(t, 0) })
}

func testSilentConnections(t *testing.T, pause time.Duration) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	began, finish := make(chan struct{}), make(chan struct{})
	s := console.Server(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(began)
		<-finish
		fmt.Fprint(w, "page")
	}), nil)
	go func() { _ = s.Serve(listener) }()
	defer s.Close()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(await.Patience))
		return c
	}
	page := dial()
	fmt.Fprint(page, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	<-began
	first := dial()
	for range console.MostConnections - 2 {
		dial()
	}
	time.Sleep(pause)
	dial()
	if _, err := first.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the first silent connection is still open: %v", err)
	}
	close(finish)
	if got, err := io.ReadAll(page); err != nil || !strings.HasSuffix(string(got), "page") {
		t.Errorf("the page is %q (%v)", got, err)
	}
}
