package study

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/candor-grid/candor/cmd/internal/chart"
	"github.com/candor-grid/candor/messages"
)

// Study is one reproduction.
type Study struct {
	Name  string
	About string // one line
	// Run is a pure function of the options and the logs they point to.
	Run func(Options) (*Report, error)
}

// Options are what a study depends on.
type Options struct {
	Seed   uint64
	Quick  bool   // a small one, for tests: seconds, and no more than plausible numbers
	Traces string // the directory of the logs
}

// Report is what a study leaves.
type Report struct {
	Numbers any // encoded as NAME.json
	Page    *Page
	Figures []Figure
}

// Figure is a plot, saved as NAME.svg.
type Figure struct {
	Name string
	Plot *chart.Chart
}

// Write writes the report of the study into a directory, which is made if need
// be: NAME.json, NAME.md and the figures.
func (r *Report) Write(dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return messages.Errorf(messages.Invalid, "--out: %v", err)
	}
	numbers, err := json.MarshalIndent(r.Numbers, "", " ")
	if err != nil {
		return messages.Errorf(messages.Internal, "%s: %v", name, err)
	}
	for file, data := range map[string][]byte{name + ".json": append(numbers, '\n'), name + ".md": []byte(r.Page.String())} {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o644); err != nil {
			return messages.Errorf(messages.Invalid, "--out: %v", err)
		}
	}
	for _, f := range r.Figures {
		if err := f.Plot.Save(filepath.Join(dir, f.Name+".svg")); err != nil {
			return messages.Errorf(messages.Invalid, "--out: %v", err)
		}
	}
	return nil
}
