package nodeagent

import (
	"testing"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/runner"
)

// Private tasks have no network, and so no steps on other nodes. Without the variable, srun says this, and does not say
// that the agent is silent.
func TestPrivateTasksHaveNoStepsOnOtherNodes(t *testing.T) {
	for _, private := range []bool{false, true} {
		a := &Agent{c: Config{Dir: t.TempDir(), Log: zap.NewNop(), Tasks: runner.Config{Private: private}}, real: struct{ runner.Real }{}}
		if err := a.openSteps(); err != nil {
			t.Fatal(err)
		}
		if value := a.steps.variable(messages.Attempt{Number: 1}); (value == "") != private {
			t.Errorf("private %v: %q", private, value)
		}
		a.steps.close()
	}
}
