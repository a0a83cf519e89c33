package serve

import (
	"context"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// If the other servers do not know the server, the error has the kind NotFound. If another removal is under way, or no
// server can decide, the error must tell the user to repeat the command.
func TestDropSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		reply string
		kind  messages.Kind
		says  string
	}{
		"removed before": {`{"error":{"code":400,"err_code":10044,"description":"server is not a member of the cluster"}}`, messages.NotFound, "was removed already"},
		"under way":      {`{"error":{"code":400,"err_code":10202,"description":"cluster member change is in progress"}}`, messages.Unavailable, "repeat the command"},
		"no leader":      {`{"error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}`, messages.Unavailable, "temporarily unavailable"},
		"refused":        {`{"error":{"code":400,"err_code":10003,"description":"bad request"}}`, messages.Invalid, "bad request"},
		"broken":         {`{"error":{"code":500,"err_code":10041,"description":"raft is broken"}}`, messages.Internal, "raft is broken"},
		"no reason":      {`{}`, messages.Internal, "give no reason"},
	} {
		err := dropped("west-rack2", []byte(c.reply))
		if messages.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, of kind %v", name, err, messages.KindOf(err))
		}
	}
	if err := dropped("west-rack2", []byte(`{"success":true}`)); err != nil {
		t.Error(err)
	}
}

type answers struct {
	bus.Bus
	left []string
}

func (a *answers) Request(context.Context, string, []byte) ([]byte, error) {
	answer := a.left[0]
	a.left = a.left[1:]
	return []byte(answer), nil
}

// A removal of the same server may already be under way. The command must wait until that removal has ended, and then
// report success. If the command failed, the user would try again, and would be told that there is no server of this
// name.
func TestDropWaitsForWhatIsUnderWay(t *testing.T) {
	const underWay, unknown = `{"error":{"code":400,"err_code":10202}}`, `{"error":{"code":400,"err_code":10044}}`
	if sure, err := forgetServer(t.Context(), &answers{left: []string{underWay, unknown}}, "west-rack2"); err != nil || sure {
		t.Errorf("sure: %v, %v: the name can be wrong", sure, err)
	}
	if sure, err := forgetServer(t.Context(), &answers{left: []string{underWay, `{"success":true}`}}, "west-rack2"); err != nil || !sure {
		t.Errorf("sure: %v, %v", sure, err)
	}
	if _, err := forgetServer(t.Context(), &answers{left: []string{unknown}}, "west-rack2"); messages.KindOf(err) != messages.NotFound {
		t.Errorf("a wrong name: %v", err)
	}
}
