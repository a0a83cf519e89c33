package audit

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/candor-grid/candor/cmd/candor/internal/simulate"
	"github.com/candor-grid/candor/deploy/console"
	"github.com/candor-grid/candor/messages"
)

// commandLine returns the command that the user typed, with file names without their directories.
func commandLine(f *pflag.FlagSet) string {
	words := []string{"candor audit"}
	f.Visit(func(flag *pflag.Flag) {
		switch flag.Name {
		case "keep", "json", "row", "plots":
		case "trace", "market", "bids":
			words = append(words, "--"+flag.Name, filepath.Base(flag.Value.String()))
		default:
			words = append(words, "--"+flag.Name, strings.Trim(flag.Value.String(), "[]"))
		}
	})
	return strings.Join(words, " ")
}

// keep writes a report into the state directory. It replaces the last report of the same market.
func keep(state string, d *document) error {
	kept := *d
	kept.Trace = filepath.Base(d.Trace)
	name := d.Market.Name
	if !messages.ValidFreeName(name) {
		name = "market"
	}
	dir := filepath.Join(state, console.AuditsDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return messages.Errorf(messages.Invalid, "--keep: %v", err)
	}
	file, err := os.CreateTemp(dir, "new-*")
	if err != nil {
		return messages.Errorf(messages.Invalid, "--keep: %v", err)
	}
	err = errors.Join(simulate.Print(file, &kept), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), filepath.Join(dir, name+".json"))
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return messages.Errorf(messages.Invalid, "--keep: %v", err)
	}
	return nil
}
