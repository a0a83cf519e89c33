package connections

import (
	"context"
	"encoding/json"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// page is the number of connections that a server lists in one answer.
const page = 1000

type answer[T any] struct {
	Data  T `json:"data"`
	Error *struct {
		Description string `json:"description"`
	} `json:"error"`
}

func (g *Guard) ask(id string) (map[uint64]connection, error) {
	all := map[uint64]connection{}
	for offset := 0; ; offset += page {
		type listed struct {
			Connections []struct {
				ID    uint64    `json:"cid"`
				JWT   string    `json:"jwt"`
				Start time.Time `json:"start"`
			} `json:"connections"`
			Total int `json:"total"`
		}
		got, err := request[listed](g.ctx, g.c.System, id, "CONNZ", map[string]any{"auth": true, "acc": g.c.Account, "offset": offset, "limit": page})
		if err != nil {
			return nil, err
		}
		for _, c := range got.Connections {
			all[c.ID] = connection{place: place{id, c.ID}, by: g.holder(c.JWT), start: c.Start}
		}
		if len(got.Connections) == 0 || offset+page >= got.Total {
			return all, nil
		}
	}
}

func (g *Guard) cut(at place) error {
	_, err := request[json.RawMessage](g.ctx, g.c.System, at.server, "KICK", map[string]uint64{"cid": at.id})
	if messages.KindOf(err) == messages.NotFound {
		return nil // the connection has already ended
	}
	return err
}

func request[T any](ctx context.Context, system bus.Bus, id, what string, content any) (none T, err error) {
	data, err := json.Marshal(content)
	if err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	text, err := system.Request(ctx, "$SYS.REQ.SERVER."+id+"."+what, data)
	if err != nil {
		return none, err
	}
	var a answer[T]
	if err := json.Unmarshal(text, &a); err != nil {
		return none, messages.Errorf(messages.Internal, "server %s: %s: %v", id, what, err)
	}
	if a.Error != nil {
		return none, messages.Errorf(messages.NotFound, "server %s: %s: %s", id, what, a.Error.Description)
	}
	return a.Data, nil
}
