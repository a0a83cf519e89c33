package bus

import (
	"encoding/json"
	"strings"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
)

// Refusal tells a client that the site will close its connection, and why. It is needed because NATS does not tell a
// client why its connection is closed. Several connections may have the same name; Server and Connection say which
// connection is meant.
type Refusal struct {
	Server     string `json:"server"`     // the NATS server that has the connection
	Connection uint64 `json:"connection"` // number of the connection at this server
	Reason     string `json:"reason"`
}

// Refuse sends a refusal to all connections that have this name. The refusal identifies one of these connections, which
// then closes itself.
func Refuse(b Bus, name messages.Name, r Refusal) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return b.Publish(messages.RefusalSubject(name), data)
}

// hearRefusals subscribes to the refusals that are sent to this connection's name. Services need no subscription,
// because they are never refused.
func (b *natsBus) hearRefusals() error {
	if b.proves == nil || strings.HasPrefix(b.name, "$") {
		return nil
	}
	_, err := b.conn.Subscribe(messages.RefusalSubject(b.name), b.onRefusal)
	return err
}

// onRefusal closes this connection if the refusal identifies it. Otherwise NATS would connect again and again.
func (b *natsBus) onRefusal(m *nats.Msg) {
	var r Refusal
	if json.Unmarshal(m.Data, &r) != nil || r.Reason == "" || r.Server != b.conn.ConnectedServerId() {
		return
	}
	if own, err := b.conn.GetClientID(); err != nil || own != r.Connection {
		return
	}
	why := messages.Errorf(messages.Exhausted, "%s", r.Reason)
	b.refusal.Store(why)
	b.log.Warn("the site refused this connection", zap.String("reason", r.Reason))
	b.watch.end(why)
	b.conn.Close()
}

// refused returns why the site closed this connection, or why the site accepts no new connection. It returns nil if
// neither has happened.
func (b *natsBus) refused() error {
	if why := b.refusal.Load(); why != nil {
		return why
	}
	if why := b.barred.Load(); why != nil {
		return unserved{refusal: why}
	}
	return nil
}
