package simulate

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"github.com/candor-grid/candor/cmd/internal/chart"
	"github.com/candor-grid/candor/messages"
)

// Await does something that takes long, and returns before it is done when ctx
// ends: the program is about to, and takes it along.
func Await(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Print writes a report as JSON.
func Print(out io.Writer, report any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(report)
}

// Draw draws figures, by their names, into a directory, which is made if need be.
func Draw(dir, title string, figures map[string]func() (*chart.Chart, error)) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return messages.Errorf(messages.Invalid, "--plots: %v", err)
	}
	for name, figure := range figures {
		c, err := figure()
		if err != nil {
			return messages.Errorf(messages.Internal, "--plots: %s: %v", name, err)
		}
		c.Title = title
		if err := c.Save(filepath.Join(dir, name+".svg")); err != nil {
			return messages.Errorf(messages.Invalid, "--plots: %v", err)
		}
	}
	return nil
}
