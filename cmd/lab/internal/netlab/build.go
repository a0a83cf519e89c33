package netlab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Build builds the binary from the module's source into a file, with a given version. It needs the Go tool.
func Build(ctx context.Context, file, version string) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	return buildIn(ctx, root, file, version)
}

// BuildCommit builds the binary from the source at a commit of the module's history.
func BuildCommit(ctx context.Context, file, version, commit string) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "netlab-source-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	unpack := exec.CommandContext(ctx, "sh", "-c", `git -C "$0" archive "$1" | tar -x -C "$2"`, root, commit, dir)
	if output, err := unpack.CombinedOutput(); err != nil || len(output) > 0 {
		return fmt.Errorf("the source of %s, commit %s, was not found in the history: %w\n%s", version, commit, err, output)
	}
	return buildIn(ctx, dir, file, version)
}

func buildIn(ctx context.Context, root, file, version string) error {
	flags := "-X github.com/candor-grid/candor/messages.version=" + version
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags", flags, "-o", file, "./cmd/candor")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building candor: %w\n%s", err, output)
	}
	return nil
}

func moduleRoot(ctx context.Context) (string, error) {
	output, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("the source of the module was not found: %w; run the command in a directory of the module", err)
	}
	return strings.TrimSpace(string(output)), nil
}
