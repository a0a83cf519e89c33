package embedded

import (
	"context"
	"testing"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// If the bank refuses a start because its log has no room, the starting program must ask again. If the bank refuses for
// any other reason, the program must end.
func TestAStartWaitsForRoom(t *testing.T) {
	network := bus.NewMemory()
	asked, answers := 0, []error{
		messages.Errorf(messages.Exhausted, "no replica of the bank has room on its disk for its log"), nil,
		messages.Errorf(messages.PermissionDenied, "no"),
	}
	_, err := network.Connect("$bank").Serve(bus.Service{Name: "bank", Version: "1.0.0", Endpoints: []bus.Endpoint{{
		Name: messages.VerbAccounts, Subject: messages.Subject("here", messages.Bank, messages.VerbAccounts, "*"),
		Handle: func(context.Context, bus.Request) ([]byte, error) {
			asked++
			return []byte("{}"), answers[asked-1]
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	o := &operator{share: &share{config: Config{Site: "here", Operators: []messages.Name{"ops"}}, log: zap.NewNop()}, bus: network.Connect("ops")}
	if err := o.openAccounts(t.Context()); err != nil || asked != 2 {
		t.Errorf("asked %d times, the start came to %v", asked, err)
	}
	if err := o.openAccounts(t.Context()); messages.KindOf(err) != messages.PermissionDenied || asked != 3 {
		t.Errorf("asked %d times, the start came to %v", asked, err)
	}
}
