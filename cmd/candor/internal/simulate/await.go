package simulate

import (
	"context"
	"encoding/json"
	"io"
)

// Await runs do, which may take long. If ctx ends first, it returns at once: the program is about
// to exit, and do ends with it.
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
