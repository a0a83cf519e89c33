package serve

import (
	"fmt"
	"os"
	"testing"

	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

// A site under test starts the test binary as the executor of tasks. TestMain makes the binary behave as an executor
// then.
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
