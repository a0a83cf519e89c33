package study

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/candor-grid/candor/deploy/simulated/swf"
	"github.com/candor-grid/candor/messages"
)

// Study is the reproduction of some tables or figures of a paper.
type Study struct {
	Name  string
	About string // description of the study, in one line
	// Run runs the study. Its result depends only on the options and on the logs that they name.
	Run func(Options) (*Report, error)
}

// Options are the parameters of a study.
type Options struct {
	Seed   uint64
	Quick  bool   // a small version for tests: it takes seconds, and its numbers are only plausible
	Traces string // the directory of the logs
	// Told may be nil. It is called during a long study, with the part that is done and the result of the last part.
	Told func(done, of int, what string)
}

// Tell reports how much of a study is done, and the result of the last part.
func (o Options) Tell(done, of int, format string, args ...any) {
	if o.Told != nil {
		o.Told(done, of, fmt.Sprintf(format, args...))
	}
}

// Sized returns the size of a study: the argument `quick` if Quick is set, and otherwise the argument `full`.
func Sized[T any](o Options, full, quick T) T {
	if o.Quick {
		return quick
	}
	return full
}

// Log reads a log of the Parallel Workloads Archive from the directory of logs.
func (o Options) Log(file string) (*swf.Log, error) {
	const which = "name the directory that holds %s, from the Parallel Workloads Archive"
	if o.Traces == "" {
		return nil, messages.Errorf(messages.Invalid, "--traces: this study runs on a log: "+which, file)
	}
	f, err := os.Open(filepath.Join(o.Traces, file))
	if err != nil {
		return nil, messages.Errorf(messages.Invalid, "--traces: %v: "+which, err, file)
	}
	defer f.Close()
	log, err := swf.Read(f)
	if err != nil {
		return nil, messages.Errorf(messages.Invalid, "%s: %v", file, err)
	}
	return log, nil
}

// Report is the result of a study.
type Report struct {
	Numbers any // the study's numbers; Write encodes them as NAME.json
	Page    *Page
	Figures []*Figure
}

// Write draws the figures and writes a study's report into a directory: NAME.json, NAME.md and the figures. It makes a
// missing directory.
func (r *Report) Write(dir, name string) error {
	for _, f := range r.Figures {
		f.Title, _, _ = strings.Cut(r.Page.captions[f.Name], ": ")
		if err := f.Add(f.lines...); err != nil {
			return fmt.Errorf("figure %s: %w", f.Name, err)
		}
	}
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
		if err := f.Save(filepath.Join(dir, f.Name+".svg")); err != nil {
			return messages.Errorf(messages.Invalid, "--out: %v", err)
		}
	}
	return nil
}
