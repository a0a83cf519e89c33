package client

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
	"github.com/candor-grid/candor/messages"
)

type buildVersion struct {
	Version  string `json:"version"`
	Level    int    `json:"level"` // see messages.Level
	Revision string `json:"revision"`
	Time     string `json:"time,omitempty"` // time of the commit
	Modified bool   `json:"modified"`       // built from files that were not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

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
		p.Printf("candor %s (%s), level %d, %s %s\n", v.Version, revision, v.Level, v.Go, v.Platform)
	})
}

// readVersion reads the version that the Go tool recorded in the binary.
func readVersion() buildVersion {
	v := buildVersion{Version: messages.ThisRelease(), Level: messages.Level, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
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
