package site

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/deploy/console"
	"github.com/candor-grid/candor/messages"
)

func consoleCommand(a *cli.App) *cobra.Command {
	var listen, websocket string
	cmd := &cobra.Command{
		Use:   "console",
		Short: "show the site in a browser",
		Long: `Print the address of the site's console, the pages that show the site in a
browser. A site has a console if it was started with candor up --console. Give
the console your credentials file: the file stays in the browser.

If the site has no console, but takes WebSocket connections (the setting
websocket), this command serves the pages on this machine until Ctrl-C. The site
accepts the pages only from the default address.`,
		Example: "  candor console\n  candor console --site west --websocket wss://west.example:8471",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, local, err := a.LocalSite()
			if err != nil {
				return err
			}
			site := local.Site
			if a.Flags.Site != "" {
				site = a.Flags.Site
			}
			switch {
			case websocket == "" && local.Console != "":
				p := a.Page(a.Out)
				p.Printf("Site %s has its console at %s\n", local.Site, local.Console)
				_, err := a.Out.Write(p.Bytes())
				return err
			case websocket == "" && local.WebSocket == "":
				return messages.Errorf(messages.Unavailable, "no site with a console is known here: start a site with `candor up --console %s`, or name a site's WebSocket listener with --site and --websocket", console.DefaultAddress)
			case websocket == "":
				websocket = local.WebSocket
			case site == "":
				return cli.Usagef("--site: missing: name the site that %s serves", websocket)
			}
			return serveConsole(cmd.Context(), a, listen, console.Config{Site: site, WebSocket: websocket, Names: []string{"127.0.0.1", "localhost"}})
		},
	}
	cmd.Flags().StringVar(&listen, "listen", console.DefaultAddress, "`address` on loopback that serves the pages")
	cmd.Flags().StringVar(&websocket, "websocket", "", "`URL` of the WebSocket listener of the site (default: of the site on this machine)")
	return cmd
}

func serveConsole(ctx context.Context, a *cli.App, listen string, c console.Config) error {
	host, _, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return cli.Usagef("--listen %q: must be an address on loopback, like %s", listen, console.DefaultAddress)
	}
	h, err := console.Handler(c)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return messages.Errorf(messages.Conflict, "--listen: %v; name another address", err)
	}
	p := a.Page(a.Out)
	p.Printf("The console of site %s is at http://%s\nStop with Ctrl-C.\n", c.Site, listener.Addr())
	if _, err := a.Out.Write(p.Bytes()); err != nil {
		return errors.Join(err, listener.Close())
	}
	s := console.Server(h, nil)
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
