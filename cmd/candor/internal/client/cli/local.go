package cli

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/candor-grid/candor/messages"
)

// sitesDir is where the state directory of the first of several sites that run
// together holds those of the others.
const sitesDir = "sites"

// LocalSite is the site of this machine that is meant: the one named with --at,
// else that of the state directory. The zero value: there is none.
func (a *App) LocalSite() (state string, site siteFile, err error) {
	state = a.StateDir()
	site, err = readSiteFile(state)
	at := cmp.Or(a.Flags.at, a.Getenv("CANDOR_AT"))
	if err != nil || at == "" || site.Site == at {
		return state, site, err
	}
	if !messages.ValidName(at) {
		return state, site, Usagef("--at %q: is not a name: use lower-case letters, digits, - and _", at)
	}
	below := filepath.Join(state, sitesDir, at)
	named, err := readSiteFile(below)
	if err == nil && named.Site == "" {
		return state, site, messages.Errorf(messages.NotFound, "--at: no site %s is known here%s: start it with candor up --sites, or name its directory with --state", at, others(state, site))
	}
	return below, named, err
}

// others lists the sites of this machine, for a hint.
func others(state string, base siteFile) string {
	var names []string
	if base.Site != "" {
		names = append(names, base.Site)
	}
	entries, _ := os.ReadDir(filepath.Join(state, sitesDir)) // none: no hint
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if len(names) == 0 {
		return ""
	}
	return " (there is " + strings.Join(names, ", ") + ")"
}
