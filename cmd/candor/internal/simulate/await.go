package simulate

import (
	"context"
	"encoding/json"
	"io"
)

// Await runs the function `do`, which may take long. If ctx ends first, Await returns at once and lets the function
// run: the program will exit.
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
