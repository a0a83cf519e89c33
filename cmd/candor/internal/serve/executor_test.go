package serve

import (
	"fmt"
	"os"
	"testing"

	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

// TestMain makes the test binary behave as the executor of tasks when a site under test starts it as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == executor.Argument {
		if err := executor.Main(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
