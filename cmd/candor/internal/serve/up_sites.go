package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/deploy/embedded"
	"github.com/candor-grid/candor/messages"
)

// firstLimit is the largest debt between two sites that one command `candor up` has started.
const firstLimit = 1000 * messages.Credit

// sitesDir is a directory in the state directory of the first site. It has the state directories of the other sites.
const sitesDir = "sites"

// runSites runs several sites in this process. Each site is a peer of the others.
func (u *up) runSites(cmd *cobra.Command) error {
	configs, err := u.several()
	if err != nil {
		return err
	}
	o, door, err := u.options(cmd, &configs[0])
	if err != nil {
		return err
	}
	o.LeaveRunning, o.Fresh = u.leave, u.fresh
	sites, err := embedded.StartSites(cmd.Context(), configs, firstLimit, o)
	if err != nil {
		return unstarted(cmd.Context(), err)
	}
	sites.Greet(cmd.Context())
	return serve(cmd, served{
		Gather: sites.Gatherer, Ready: sites.Ready, Metrics: door, Profile: profileSocket(&configs[0], ""), Close: sites.Close, Stopping: sayStopping,
		Announce: func(ctx context.Context, w io.Writer) { u.announceSites(ctx, w, sites) },
	}, o.Log)
}

// several returns one configuration for each of the named sites. Each site gets a port of its own. Each site after the
// first gets a state directory below the first site's state directory.
func (u *up) several() ([]embedded.Config, error) {
	c, err := u.load()
	if err != nil {
		return nil, err
	}
	switch {
	case len(c.Hosts) > 0 || u.settings.host != "":
		return nil, messages.Errorf(messages.Invalid, "--sites runs whole sites, not hosts of one site; start each host with its own command")
	case c.TLS != nil || len(c.Peers) > 0 || c.Keys != "":
		return nil, messages.Errorf(messages.Invalid, "--sites is for trials, and makes its own keys and peers; start sites that have keys or peers one by one, with candor up --config")
	}
	seen := map[messages.Name]bool{}
	var configs []embedded.Config
	for i, name := range u.sites {
		if !messages.ValidName(name) || seen[name] {
			return nil, messages.Errorf(messages.Invalid, "--sites: %q is no name, or is given twice; write names of lower-case letters with commas, like west,east", name)
		}
		seen[name] = true
		own := c
		own.Site = name
		if i > 0 {
			own.State = filepath.Join(c.State, sitesDir, name)
		}
		if own.Listen, err = portAfter(c.Listen, i); err != nil {
			return nil, err
		}
		if i > 0 {
			own.Console, own.WebSocket = "", "" // only the first site has a console
		}
		configs = append(configs, own)
	}
	return configs, nil
}

// portAfter returns the same address with a larger port: `more` is added to it. Port 0 means any free port, and stays
// 0.
func portAfter(address string, more int) (string, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", messages.Errorf(messages.Invalid, "listen: %v", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil || port+more > 65535 {
		return "", messages.Errorf(messages.Invalid, "listen: the port of %q is too high: each further site of --sites listens at the next port, up to 65535; name a lower port with --listen", address)
	}
	if port != 0 {
		port += more
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}

func (u *up) announceSites(ctx context.Context, w io.Writer, sites embedded.Sites) {
	first := sites[0]
	c := first.Config()
	fmt.Fprintf(w, "%d sites are up, each a peer of the others\n", len(sites))
	for _, s := range sites {
		fmt.Fprintf(w, "  %-10s %s  accounts %s\n", s.Config().Site, s.URL(), accountList(ctx, s))
	}
	fmt.Fprintln(w, "each with")
	announceFacts(ctx, w, first)
	fact(w, "state", tilde(c.State)+", and below it in "+sitesDir)
	last := sites[len(sites)-1].Config().Site
	fmt.Fprintf(w, "\nIn another terminal, as %s of %s:\n%s", first.Info().DefaultAccount, c.Site, exportState(&c))
	fmt.Fprintf(w, "  echo 'echo hello from $CANDOR_SITE' | candor submit --budget 1 --wait\n")
	fmt.Fprintf(w, "At another site, by its name:\n  candor --at %s nodes\n", last)
	if len(sites) > 1 {
		fmt.Fprintln(w, "Between sites:")
		fmt.Fprintf(w, "  echo 'echo hello from $CANDOR_SITE' | candor submit --site %s --budget 1 --wait\n", last)
		fmt.Fprintf(w, "  candor remit bob@%s 10\n  candor site status --account operator\n", last)
	}
	fmt.Fprintf(w, "Stop with Ctrl-C.\n")
}
