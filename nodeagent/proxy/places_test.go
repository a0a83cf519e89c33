package proxy

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
)

// TestPlacesAreShared lets users take and leave places at random. A user with less than an equal share of the places
// must always get one more, and no more places must be taken than there are.
func TestPlacesAreShared(t *testing.T) {
	const most, users = 12, 4
	random := rand.New(rand.NewPCG(1, 2))
	p := NewPlaces(most)
	held := map[string]map[*place]bool{}
	for i := range 20_000 {
		user := fmt.Sprint(random.IntN(users))
		if held[user] == nil {
			held[user] = map[*place]bool{}
		}
		if random.IntN(4) == 0 {
			for one := range held[user] {
				delete(held[user], one)
				p.remove(user, one)
				break
			}
			continue
		}
		had := len(held[user])
		mine := p.take(user, nil)
		if mine == nil && had < most/users {
			t.Fatalf("step %d: user %s gets no place with %d of %d", i, user, had, most)
		}
		if mine != nil {
			mine.end = func() {
				for _, places := range held {
					delete(places, mine)
				}
			}
			held[user][mine] = true
		}
		sum := 0
		for name, places := range held {
			sum += len(places)
			if len(places) != len(p.of[name]) {
				t.Fatalf("step %d: user %s has %d places, not %d", i, name, len(p.of[name]), len(places))
			}
		}
		if sum != p.all || sum > most {
			t.Fatalf("step %d: %d places are taken, %d are counted, of %d", i, sum, p.all, most)
		}
	}
}

// TestSilentConnectionsKeepNobodyOut lets a user open more connections than the server has places, and send nothing.
// Another user's request must be answered at once.
func TestSilentConnectionsKeepNobodyOut(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to connect as two users")
	}
	key, _ := Open(t.TempDir())
	s, err := Serve(key, zap.NewNop(), func(context.Context, messages.Attempt, string, []byte) ([]byte, error) { return []byte("yes"), nil })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	flooded := make(chan error)
	go func() {
		runtime.LockOSThread() // for good, so that the thread with the other user ends with this goroutine
		if _, _, failed := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), 4242, ^uintptr(0)); failed != 0 {
			flooded <- failed
			return
		}
		for range mostCalls + 10 {
			if c, err := net.Dial("unix", key.socket()); err == nil {
				t.Cleanup(func() { c.Close() })
			}
		}
		flooded <- nil
	}()
	if err := <-flooded; err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for range 3 {
		if reply, err := Request(ctx, key.Value("alice", attempt(7, 3)), "jobs", nil); err != nil || string(reply) != "yes" {
			t.Errorf("%q, %v", reply, err)
		}
	}
}

// TestRequestsTakeBoundedMemory lets a user begin more large requests than an agent may hold. The agent must hold no
// more than its bound, and refuse the others. When these requests have ended, the user must be able to send a large
// request again.
func TestRequestsTakeBoundedMemory(t *testing.T) {
	key, _ := Open(t.TempDir())
	s, err := Serve(key, zap.NewNop(), func(context.Context, messages.Attempt, string, []byte) ([]byte, error) { return []byte("yes"), nil })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	piece := bytes.Repeat([]byte("A"), 6<<20)
	var open []net.Conn
	refused := false
	for range 8 {
		c, err := net.Dial("unix", key.socket())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		_ = c.SetDeadline(time.Now().Add(await.Patience))
		_, err = c.Write(append([]byte(`{"attempt":"7.1.2.3","request":"`), piece...))
		if refused = err != nil; refused {
			break
		}
	}
	if !refused || len(open) != 6 {
		t.Errorf("the agent holds %d requests of 6 MiB, and refused one: %v", len(open), refused)
	}
	for _, c := range open {
		c.Close()
	}
	await.Until(t, "a request is answered again", func() bool {
		reply, err := Request(patient(t), key.Value("alice", attempt(7, 3)), "submit", piece[:5<<20])
		return err == nil && string(reply) == "yes"
	})
}
