// Command reference writes man pages, completions, a list of components, and the pages of the reference. It is a
// separate program, so that candor does not contain this code.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/candor-grid/candor/cmd/candor/internal/audit"
	"github.com/candor-grid/candor/cmd/candor/internal/client"
	"github.com/candor-grid/candor/cmd/candor/internal/demo"
	"github.com/candor-grid/candor/cmd/candor/internal/serve"
	"github.com/candor-grid/candor/cmd/candor/internal/simulate"
	"github.com/candor-grid/candor/cmd/candor/internal/solve"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: reference man|completions|docs DIR, or reference sbom BINARY")
	}
	switch args[0] {
	case "man":
		return manPages(args[1])
	case "completions":
		return completions(args[1])
	case "docs":
		return writePages(args[1])
	case "sbom":
		return sbom(os.Stdout, args[1])
	}
	return fmt.Errorf("%q is not one of man, completions, docs and sbom", args[0])
}

// root returns the tree of commands. Default paths in the home directory are the same for every user.
func root() *cobra.Command {
	_ = os.Setenv("HOME", "/home/USER")
	_ = os.Unsetenv("XDG_STATE_HOME")
	return client.Root(
		client.Group{Title: "Run a site:", Commands: serve.Commands()},
		client.Group{Title: "Study:", Commands: []*cobra.Command{demo.Command(), solve.Command(), simulate.Command(), audit.Command()}},
	)
}

// manPages writes a man page for each command. The pages have no date, so the same source gives the same pages.
func manPages(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tree := root()
	tree.DisableAutoGenTag = true
	return doc.GenManTree(tree, &doc.GenManHeader{Title: "CANDOR", Section: "1", Source: "Candor", Manual: "Candor", Date: new(time.Unix(0, 0))}, dir)
}

// completions writes a completion file for each shell, under the name that the shell looks for.
func completions(dir string) error {
	tree := root()
	for name, write := range map[string]func(string) error{
		"bash-completion/completions/candor":    func(f string) error { return tree.GenBashCompletionFileV2(f, true) },
		"zsh/site-functions/_candor":            tree.GenZshCompletionFile,
		"fish/vendor_completions.d/candor.fish": func(f string) error { return tree.GenFishCompletionFile(f, true) },
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := write(file); err != nil {
			return err
		}
	}
	return nil
}
