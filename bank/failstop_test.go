package bank

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/candor-grid/candor/bank/clearing"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	clearingmsg "github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/money"
)

// believing is a machine whose Check accepts every command, like the machine of a leader that runs another version.
type believing struct{ mailbox.Machine }

func (believing) Check([]byte) (int, error) { return 1, nil }

// fatal receives what a process would log before it ends.
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

// TestCommandThatCannotBeReadEndsTheReplica puts a command that cannot be decoded into the log. No command in the log
// may be skipped, so the replica must end, also at the next start.
func TestCommandThatCannotBeReadEndsTheReplica(t *testing.T) {
	t.Parallel()
	grant := ledger.Command{Verb: ledger.Grant, At: 2000, By: "ops", Grant: money.GrantRequest{Key: "1", Account: "ada", Amount: 10 * c}}
	whole := grant.Encode()
	later, verb := append([]byte{99}, whole[1:]...), append([]byte{whole[0], 0xff}, whole[2:]...)
	settles := clearing.Command{At: 2000, By: "ada", Revoke: &clearingmsg.RevokeRequest{ID: "ada/k"}}
	revoke, err := settles.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"cut": whole[:len(whole)-1], "empty": {}, "later version": later, "unknown verb": verb,
		"clearing, cut": revoke[:len(revoke)-1], "clearing, empty": {clearing.Mark}, "clearing, later rules": append([]byte{clearing.Mark, 99}, revoke[2:]...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for try := range 2 {
				ends := make(fatal, 1)
				var box mailbox.Mailbox
				bank, err := Start(t.Context(), Config{
					Site: "here", Replica: "1", Replicas: []string{"1"}, Bus: bus.NewMemory().Connect("bank"), Metrics: prometheus.NewRegistry(),
					Clock: func() messages.Time { return 1000 }, Mono: still,
					Open: func(m mailbox.Machine) (_ mailbox.Mailbox, err error) {
						if _, err := m.Check(data); err == nil {
							t.Error("a leader would propose it")
						}
						box, err = mailbox.OpenRaft(mailbox.Config{ID: "1", Name: "bank", Dir: dir, Local: mailbox.NewLocal(), Bootstrap: []string{"1"},
							Timeout: 100 * time.Millisecond, SegmentBytes: 1 << 20, MinFreeBytes: 1, Log: zap.New(zapcore.NewNopCore(), zap.WithFatalHook(ends))}, believing{m})
						return box, err
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				for try == 0 {
					_, err := box.Propose(t.Context(), data)
					if errors.Is(err, mailbox.ErrNotLeader) { // try again: this replica does not lead yet
						runtime.Gosched()
						continue
					}
					if !errors.Is(err, mailbox.ErrUnknown) && !errors.Is(err, mailbox.ErrClosed) {
						t.Errorf("proposed with %v", err)
					}
					break
				}
				if why := <-ends; !strings.Contains(why, "but this build cannot apply it") {
					t.Errorf("it ended with %q", why)
				}
				if totals := read(bank.machine, (*ledger.Ledger).Totals); totals.Issued != 0 {
					t.Errorf("credits were issued: %+v", totals)
				}
				_ = bank.Close() // Close returns the error that ended the replica
			}
		})
	}
}
