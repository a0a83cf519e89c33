package auctioneer

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/siteclock"
)

// A leader of another version may propose commands that this version cannot read. To test this, the method Check of
// `believing` accepts every command.
type believing struct{ *replica }

func (believing) Check([]byte) (int, error) { return 1, nil }

// fatal receives the message that a process would log before it ends.
type fatal chan string

func (f fatal) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	said := zapcore.NewMapObjectEncoder()
	for _, one := range fields {
		one.AddTo(said)
	}
	why, _ := said.Fields["error"].(string)
	f <- e.Message + ": " + why
	runtime.Goexit()
}

// A command in the log cannot be decoded. The replica must end, and end again after each start. Its book must not
// change: no command may be skipped. A leader must refuse such a command.
func TestCommandThatCannotBeReadEndsTheReplica(t *testing.T) {
	t.Parallel()
	good := book.Command{Register: &book.Register{Node: "n1", Session: 1, Slots: []job.ClassSlots{{Class: "map", Slots: 1}}}}
	good.Stamp(7, 0, false)
	whole, err := good.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"cut": whole[:len(whole)-1], "empty": {}, "unknown kind": more(t, whole),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := newReplica(nil, zap.NewNop()).Check(data); err == nil {
				t.Error("a leader would propose it")
			}
			dir := t.TempDir()
			for try := range 2 {
				ends := make(fatal, 1)
				r := newReplica(nil, zap.NewNop())
				r.time = siteclock.NewSteady(func() messages.Time { return 7 }, nil, nil)
				box, err := mailbox.OpenRaft(mailbox.Config{ID: "1", Name: "auctioneer", Dir: dir, Local: mailbox.NewLocal(), Bootstrap: []string{"1"},
					Timeout: 100 * time.Millisecond, SegmentBytes: 1 << 20, MinFreeBytes: 1, Log: zap.New(zapcore.NewNopCore(), zap.WithFatalHook(ends))}, believing{r})
				if err != nil {
					t.Fatal(err)
				}
				if try == 0 {
					<-box.Leadership()
					if _, err := box.Propose(t.Context(), data); !errors.Is(err, mailbox.ErrUnknown) && !errors.Is(err, mailbox.ErrClosed) {
						t.Errorf("proposed with %v", err)
					}
				}
				if why := <-ends; !strings.Contains(why, "but this build cannot apply it") {
					t.Errorf("it ended with %q", why)
				}
				if now := r.book.Now(); now != 0 {
					t.Errorf("the book is at %v", now)
				}
				_ = box.Close() // Close returns the error that ended the replica
			}
		})
	}
}

// The function `more` returns the command with one field more. Only a later version of the program knows this field.
func more(t *testing.T, command []byte) []byte {
	t.Helper()
	if command[0] != 0xdc {
		t.Fatalf("a command begins with %x: no array of 16 fields or more", command[0])
	}
	const fields = 100
	longer := append([]byte{}, command...)
	longer[2] += fields
	return append(longer, bytes.Repeat([]byte{0xc0}, fields)...)
}
