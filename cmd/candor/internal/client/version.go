package client

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
)

// buildVersion identifies the build of candor.
type buildVersion struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Time     string `json:"time,omitempty"` // time of the commit
	Modified bool   `json:"modified"`       // built from files that were not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// release is the version of a released build. The build sets it with -ldflags "-X …/client.release=v1.2.3".
var release string

func versionCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "print the version",
		Example: "  candor version\n  candor version --json | jq -r .revision",
		RunE:    func(*cobra.Command, []string) error { return showVersion(a) },
	}
}

func showVersion(a *cli.App) error {
	v := readVersion()
	return a.Show(v, func(p *cli.Page) {
		revision := cmp.Or(v.Revision, "unknown revision")
		if v.Time != "" {
			revision += " of " + v.Time
		}
		if v.Modified {
			revision += ", modified"
		}
		p.Printf("candor %s (%s) %s %s\n", v.Version, revision, v.Go, v.Platform)
	})
}

// readVersion reads the version that the Go tool recorded in the binary.
func readVersion() buildVersion {
	v := buildVersion{Version: cmp.Or(release, "(devel)"), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = cmp.Or(release, info.Main.Version, v.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
