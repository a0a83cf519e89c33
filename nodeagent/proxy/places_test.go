package proxy

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/await"
)

// TestPlacesAreShared lets users take and leave places at random. A user with less than an equal share of the places
// must always get one more, and the number of taken places must never exceed the number of places.
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
		// never unlocked, so that this thread, which runs as another user, ends with the goroutine
		runtime.LockOSThread()
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

// TestWaitingRequestsLeavePlaces lets tasks of one account send requests that wait for a job's end. It sends the
// largest number of requests that may wait for one account. Another request of the account must be answered meanwhile.
// One more waiting request must be refused with the reason, even if the request is large.
func TestWaitingRequestsLeavePlaces(t *testing.T) {
	key, _ := Open(t.TempDir())
	waiting, release := make(chan bool, mostCalls), make(chan bool)
	s, err := Serve(key, zap.NewNop(), func(_ context.Context, _ messages.Attempt, verb string, _ []byte) ([]byte, error) {
		if verb == "job" {
			waiting <- true
			<-release
		}
		return []byte("yes"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	var under sync.WaitGroup
	defer under.Wait()
	defer close(release)
	ask := func(verb string, size int) (string, error) {
		reply, err := Request(patient(t), key.Value("alice", attempt(7, 3)), verb, make([]byte, size))
		return string(reply), err
	}
	wait := func(n int) {
		for range n {
			under.Go(func() {
				reply, err := ask("job", 0)
				for messages.KindOf(err) == messages.NotLeader { // repeat while the place of the answered request is not free yet
					reply, err = ask("job", 0)
				}
				if err != nil || reply != "yes" {
					t.Errorf("a request that waits: %q, %v", reply, err)
				}
			})
		}
		for range n {
			<-waiting
		}
	}
	wait(64)
	if reply, err := ask("jobs", 0); err != nil || reply != "yes" {
		t.Errorf("while 64 requests wait: %q, %v", reply, err)
	}
	wait(mostCalls - 64)
	for _, size := range []int{0, 4 << 20} {
		if _, err := ask("jobs", size); messages.KindOf(err) != messages.NotLeader || !strings.Contains(err.Error(), "the node carries out 512 requests of tasks at the same time") {
			t.Errorf("one request more, of %d bytes: %v", size, err)
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
	for range 5 {
		c, err := net.Dial("unix", key.socket())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		_ = c.SetDeadline(time.Now().Add(await.Patience))
		if _, err = c.Write(append([]byte(`{"attempt":"7.1.2.3","request":"`), piece...)); err != nil {
			t.Errorf("request %d: %v", len(open), err)
		}
	}
	_, err = Request(patient(t), key.Value("alice", attempt(7, 3)), "submit", piece[:5<<20])
	if messages.KindOf(err) != messages.NotLeader || !strings.Contains(err.Error(), "more than 32 MiB at the same time; the node did not carry out this request") {
		t.Errorf("one request more: %v", err)
	}
	for _, c := range open {
		c.Close()
	}
	await.Until(t, "a request is answered again", func() bool {
		reply, err := Request(patient(t), key.Value("alice", attempt(7, 3)), "submit", piece[:5<<20])
		return err == nil && string(reply) == "yes"
	})
}
