package netlab

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Build builds the binary from the module's source into a file, with a given version. It needs the Go tool and the
// source. The packages are compiled as for tests.
func Build(ctx context.Context, file, version string) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	flags := "-X github.com/candor-grid/candor/messages.version=" + version
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", flags, "-o", file, "./cmd/candor")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building candor: %w\n%s", err, output)
	}
	return nil
}

func moduleRoot(ctx context.Context) (string, error) {
	output, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("the module's source was not found: %w: run this within it", err)
	}
	return strings.TrimSpace(string(output)), nil
}
