package delay

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

const oneWay = 30 * time.Millisecond

// pair returns the two ends of one direction of a link, in virtual time. Data from sender arrives at receiver.
func pair(t *testing.T, g *gate) (sender, receiver net.Conn) {
	sender, src := net.Pipe()
	dst, receiver := net.Pipe()
	done := make(chan struct{})
	go func() { forward(t.Context(), dst, src, g); close(done) }()
	t.Cleanup(func() { _ = sender.Close(); _ = receiver.Close(); <-done })
	return sender, receiver
}

func send(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

// receive reads as many bytes as the text `want` has. It returns how long this took.
func receive(t *testing.T, r io.Reader, want string) time.Duration {
	t.Helper()
	began := time.Now()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
		t.Fatalf("received %q and %v, want %q", got, err, want)
	}
	return time.Since(began)
}

func TestEveryByteArrivesOneDelayLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sender, receiver := pair(t, newGate(oneWay))
		send(t, sender, "one")
		<-time.After(10 * time.Millisecond)
		send(t, sender, "two")
		if took := receive(t, receiver, "one"); took != oneWay-10*time.Millisecond {
			t.Errorf("the first message took %v more", took)
		}
		if took := receive(t, receiver, "two"); took != 10*time.Millisecond {
			t.Errorf("the second message came %v after the first", took)
		}
	})
}

func TestACutLinkCarriesNothingAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(oneWay)
		sender, receiver := pair(t, g)
		send(t, sender, "before")
		g.cut()
		g.cut() // a second cut changes nothing
		send(t, sender, "during")
		time.AfterFunc(time.Minute, g.heal)
		if took := receive(t, receiver, "before"); took != time.Minute {
			t.Errorf("what was under way arrived %v after the cut, want it to wait for the minute that the cut lasts", took)
		}
		receive(t, receiver, "during")
		g.heal()
		send(t, sender, "after")
		if took := receive(t, receiver, "after"); took != oneWay {
			t.Errorf("after the cut a message takes %v", took)
		}
	})
}

func TestTheEndIsToldAsLateAsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sender, receiver := pair(t, newGate(oneWay))
		send(t, sender, "last words")
		if err := sender.Close(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		got, err := io.ReadAll(receiver)
		if err != nil || string(got) != "last words" || time.Since(began) != oneWay {
			t.Errorf("received %q and %v after %v", got, err, time.Since(began))
		}
	})
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		g := newGate(oneWay)
		g.cut()
		if err := g.wait(ctx, time.Now()); err != context.DeadlineExceeded {
			t.Errorf("a wait at a cut gate ended with %v", err)
		}
	})
}

// echo returns the address of a server that sends back what it receives.
func echo(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	return listener.Addr().String()
}

// More data than a link can hold goes in both directions, and the link is cut meanwhile. All data must arrive, and a
// closed link must leave no connection.
func TestLink(t *testing.T) {
	l, err := Listen("127.0.0.1:0", echo(t), time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", l.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	send(t, c, "hello")
	receive(t, c, "hello")
	l.Cut()
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // twice as much as a direction can hold
	wrote := make(chan error, 1)
	go func() { _, err := c.Write(large); wrote <- err }()
	l.Heal()
	got := make([]byte, len(large))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, large) {
		t.Fatalf("%d bytes came back changed, or with %v", len(large), err)
	}
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if n, err := c.Read(got); err == nil {
		t.Errorf("read %d bytes through a link that is closed", n)
	}
}

func TestListenRefusesAnAddressInUse(t *testing.T) {
	l, err := Listen("127.0.0.1:0", "127.0.0.1:1", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := Listen(l.Address(), "127.0.0.1:1", 0); err == nil {
		t.Error("a second link listens on the same address")
	}
}
