package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
)

// drop makes the NATS servers of a site forget a server that will not come back.
type drop struct {
	settings settings
	server   string
}

func dropCommand() *cobra.Command {
	d := &drop{}
	cmd := &cobra.Command{
		Use:   "drop HOST",
		Short: "remove a lost host from the NATS servers of the site",
		Long: `Removes the NATS server of a host that will not come back. The servers store
files and observations only while a majority of them answers, and a lost server
counts until it is removed. The files and observations of the lost server are
copied to other servers. Remove the replicas of the host too, with candor
replica remove.`,
		Example: `  candor site drop rack2 --config site.yaml --keys keys`,
		RunE:    prepared(func(cmd *cobra.Command, args []string) error { return d.run(cmd, args[0]) }),
	}
	keysFlags(cmd, &d.settings)
	cmd.Flags().StringVar(&d.server, "server", "", "`URL` of a server of the site (default: from the state directory)")
	return cmd
}

// forgetServer waits dropWithin for the answers of the servers. While it waits, it repeats its request at intervals of
// dropAgain.
const (
	dropWithin = 15 * time.Second
	dropAgain  = time.Second / 2
)

func (d *drop) run(cmd *cobra.Command, host messages.Name) error {
	c, authority, err := d.settings.authority()
	if err != nil {
		return err
	}
	b, err := systemOf(&c, authority, d.server)
	if err != nil {
		return err
	}
	defer b.Close()
	server := embedded.ServerName(c.Site, host)
	sure, err := forgetServer(cmd.Context(), b, server)
	if err != nil {
		return err
	}
	doubt := ""
	if !sure {
		doubt = ". Another removal was under way, so perhaps there was no such server: check the name of the host"
	}
	return say(cmd.OutOrStdout(), "Site %s no longer has a server %s%s\n", c.Site, server, doubt)
}

// forgetServer asks the servers of a cluster, as their system account, to remove one server. The servers remove one
// server after another, and their confirmation does not name the server. If another removal was under way, the
// confirmation may be about that one. Then `sure` is false.
func forgetServer(ctx context.Context, b bus.Bus, server string) (sure bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, dropWithin)
	defer cancel()
	request, err := json.Marshal(map[string]string{"peer": server})
	if err != nil {
		return false, err
	}
	for waited := false; ; waited = true {
		data, err := b.Request(ctx, "$JS.API.SERVER.REMOVE", request)
		if messages.KindOf(err) == messages.Unavailable {
			return false, messages.Errorf(messages.Unavailable, "server %s: no server of the site answers the request to remove a server; if the site has only this server, it cannot be removed; otherwise repeat the command", server)
		}
		if err != nil {
			return false, err
		}
		err = dropped(server, data)
		switch {
		case waited && messages.KindOf(err) == messages.NotFound:
			return false, nil // either the removal that runs is for this server, or the name of the server is wrong
		case !errors.Is(err, errPending):
			return true, err
		}
		select {
		case <-ctx.Done():
			return false, err
		case <-time.After(dropAgain):
		}
	}
}

// With these error codes, NATS refuses to remove a server.
const (
	notMember     = 10044 // no server has the name: it was removed earlier, or never existed
	changePending = 10202 // another removal has not ended
)

var errPending = messages.Errorf(messages.Unavailable, "the removal of a server is under way; repeat the command to see how the removal ended")

// dropped returns the error in the servers' answer to a removal, or nil if the server was removed.
func dropped(server string, answer []byte) error {
	var reply struct {
		Success bool `json:"success"`
		Error   *struct {
			Code        int    `json:"code"`     // status code, as in HTTP
			ErrorCode   int    `json:"err_code"` // error code of NATS
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(answer, &reply); err != nil {
		return fmt.Errorf("the servers' answer: %w", err)
	}
	switch e := reply.Error; {
	case e == nil && reply.Success:
		return nil
	case e == nil:
		return messages.Errorf(messages.Internal, "server %s was not removed, and the servers give no reason", server)
	case e.ErrorCode == notMember:
		return messages.Errorf(messages.NotFound, "the site has no server %s: the server was removed already, or the name of the host is wrong", server)
	case e.ErrorCode == changePending:
		return fmt.Errorf("server %s: %w", server, errPending)
	case e.Code == http.StatusServiceUnavailable:
		return messages.Errorf(messages.Unavailable, "server %s: %s; repeat the command", server, e.Description)
	case e.Code >= 400 && e.Code < 500:
		return messages.Errorf(messages.Invalid, "server %s: %s", server, e.Description)
	default:
		return messages.Errorf(messages.Internal, "server %s: %s", server, e.Description)
	}
}

// systemOf connects to the system account of a running site's servers. The argument `server` is their URL; "" means the
// URL in the state directory.
func systemOf(c *embedded.Config, authority *identity.Authority, server string) (bus.Bus, error) {
	creds, err := authority.SystemCredentials(identity.ForCommand)
	if err != nil {
		return nil, err
	}
	if server == "" {
		info, err := embedded.ReadInfo(c.State)
		if err != nil {
			return nil, messages.Errorf(messages.NotFound, "--server: give the URL of a server of the site; %v", err)
		}
		server = info.Server
	}
	settings := bus.Config{URL: server, Name: "operator", JWT: creds.Token, Seed: creds.Seed}
	if settings.TLS, err = c.TLS.Client(); err != nil {
		return nil, err
	}
	return bus.Connect(settings)
}
