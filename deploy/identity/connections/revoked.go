package connections

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// RevokedSubject is the subject in the system account on which a site's hosts hear of revocations. Only the owner of
// the site's keys can publish on it.
const RevokedSubject = "candor.revoked"

// Server is a NATS server of a site.
type Server struct{ ID, Name string }

// Servers asks the servers of a site to report, and waits until it has `want` reports, or until ctx ends.
func Servers(ctx context.Context, system bus.Bus, want int) ([]Server, error) {
	var mu sync.Mutex
	var all []Server
	seen, enough := map[string]bool{}, make(chan struct{})
	sub, err := system.Subscribe("$SYS.SERVER.*.STATSZ", func(_ string, data []byte) {
		var says struct {
			Server struct{ ID, Name string }
		}
		mu.Lock()
		defer mu.Unlock()
		if json.Unmarshal(data, &says) != nil || says.Server.ID == "" || seen[says.Server.ID] {
			return
		}
		seen[says.Server.ID] = true
		all = append(all, Server(says.Server))
		if len(all) == want {
			close(enough)
		}
	})
	if err != nil {
		return nil, err
	}
	if err := system.Publish("$SYS.REQ.SERVER.PING.STATSZ", nil); err != nil {
		return nil, err
	}
	select {
	case <-enough:
	case <-ctx.Done():
	}
	err = sub.Stop()
	mu.Lock()
	defer mu.Unlock()
	return all, err
}

// lookAgain is the pause before a server is asked again whether it refuses revoked keys.
const lookAgain = 100 * time.Millisecond

// AwaitRevoked returns when a server refuses some public keys in an account and has no connection with them. It returns
// an error if ctx ends first.
func AwaitRevoked(ctx context.Context, system bus.Bus, server Server, account string, keys []string) error {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		done, _ := refuses(ctx, system, server.ID, account, keys)
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return messages.Errorf(messages.Unavailable, "NATS server %s still admits the credentials, or does not answer", server.Name)
		case <-tick.C:
		}
	}
}

func refuses(ctx context.Context, system bus.Bus, id, account string, keys []string) (bool, error) {
	type detail struct {
		Account struct {
			Revoked map[string]time.Time `json:"revoked_user"`
		} `json:"account_detail"`
	}
	says, err := request[detail](ctx, system, id, "ACCOUNTZ", map[string]string{"account": account})
	if err != nil {
		return false, err
	}
	for _, key := range keys {
		if _, refused := says.Account.Revoked[key]; !refused {
			return false, nil
		}
		type open struct {
			Number int `json:"num_connections"`
		}
		left, err := request[open](ctx, system, id, "CONNZ", map[string]any{"auth": true, "acc": account, "user": key, "limit": 1})
		if err != nil || left.Number > 0 {
			return false, err
		}
	}
	return true, nil
}
