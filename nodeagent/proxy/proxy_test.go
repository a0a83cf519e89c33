package proxy

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
)

func attempt(job messages.JobID, number uint32) messages.Attempt {
	return messages.Attempt{Task: messages.TaskRef{Job: job, Stage: 1, Index: 2}, Number: number}
}

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestATokenOpensOneAttempt checks that a token works only for its own attempt, and only at the socket of its own node.
func TestATokenOpensOneAttempt(t *testing.T) {
	dir := t.TempDir()
	key, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Open(dir); err != nil || string(again) != string(key) {
		t.Fatalf("the key is another when the agent starts again: %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, "proxy.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	asked := make(chan messages.Attempt, 1)
	s, err := Serve(key, zap.NewNop(), func(_ context.Context, of messages.Attempt, verb string, request []byte) ([]byte, error) {
		if verb == "fail" {
			return nil, messages.Errorf(messages.Fenced, "it has ended")
		}
		asked <- of
		return append([]byte(verb+" "), request...), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	good := key.Value("alice", attempt(7, 3))
	reply, err := Request(patient(t), good, "jobs", []byte("all\x00"))
	if err != nil || string(reply) != "jobs all\x00" {
		t.Fatalf("%q, %v", reply, err)
	}
	if of := <-asked; of != attempt(7, 3) {
		t.Errorf("asked for %v", of)
	}
	if account, err := Account(good); err != nil || account != "alice" {
		t.Errorf("%q, %v", account, err)
	}
	if _, err := Request(patient(t), good, "fail", nil); messages.KindOf(err) != messages.Fenced || !strings.Contains(err.Error(), "it has ended") {
		t.Errorf("an error of the site is told as %v", err)
	}
	other, _ := Open(t.TempDir())
	stranger, err := Serve(other, zap.NewNop(), func(context.Context, messages.Attempt, string, []byte) ([]byte, error) {
		return nil, errors.New("a stranger was let in")
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Stop()
	parts := strings.Split(good, ":")
	for what, value := range map[string]string{
		"another attempt":     strings.Replace(good, ":7.1.2.3:", ":7.1.2.4:", 1),
		"another job":         strings.Replace(good, ":7.1.2.3:", ":8.1.2.3:", 1),
		"another token":       strings.Join(parts[:4], ":") + ":" + strings.Repeat("0", 32),
		"no token":            strings.Join(parts[:4], ":") + ":",
		"another node":        strings.Join(append([]string{other.socket()}, parts[1:]...), ":"),
		"the socket as token": strings.Join(parts[:4], ":") + ":" + strings.TrimPrefix(key.socket(), "@candor-"),
	} {
		if _, err := Request(patient(t), value, "jobs", nil); messages.KindOf(err) != messages.PermissionDenied || !strings.Contains(err.Error(), "token") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, value := range []string{"", "x", "@x:0", good + ":more", strings.TrimPrefix(good, "@")} {
		if _, err := Request(patient(t), value, "jobs", nil); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%q: %v", value, err)
		}
	}
}

// TestAnotherUserGetsNoToken: another user takes the name of the socket while the agent is away. The client must send
// no token.
func TestAnotherUserGetsNoToken(t *testing.T) {
	key, _ := Open(t.TempDir())
	value := key.Value("alice", attempt(7, 1))
	if _, err := Request(patient(t), value, "jobs", nil); messages.KindOf(err) != messages.Unavailable {
		t.Errorf("without an agent: %v", err)
	}
	l, err := net.Listen("unix", key.socket())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan int, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		n, _ := conn.Read(make([]byte, 1024))
		got <- n
	}()
	parts := strings.Split(value, ":")
	parts[1] = "4242" // as if the agent belonged to another user
	if _, err := Request(patient(t), strings.Join(parts, ":"), "jobs", nil); messages.KindOf(err) != messages.PermissionDenied || !strings.Contains(err.Error(), "another user's process") {
		t.Errorf("%v", err)
	}
	if n := <-got; n != 0 {
		t.Errorf("%d bytes were sent to it", n)
	}
}

// TestStopEndsCalls checks that Stop ends calls that are being answered, and connections of clients that send nothing.
func TestStopEndsCalls(t *testing.T) {
	key, _ := Open(t.TempDir())
	began := make(chan struct{})
	s, err := Serve(key, zap.NewNop(), func(ctx context.Context, _ messages.Attempt, _ string, _ []byte) ([]byte, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Dial("unix", key.socket())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := Request(patient(t), key.Value("alice", attempt(1, 1)), "job", nil)
		ended <- err
	}()
	<-began
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("a call that was ended has an answer")
	}
}
