// Command study reproduces the tables and figures of the papers that Candor's
// mechanisms come from, and sets ours beside theirs.
package main

import (
	"fmt"
	"os"

	"github.com/candor-grid/candor/cmd/study/internal/command"
)

func main() {
	if err := command.New().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "study:", err)
		os.Exit(1)
	}
}
