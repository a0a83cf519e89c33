package executor_test

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner"
	"github.com/candor-grid/candor/nodeagent/runner/executor"
)

// BenchmarkExecutor measures the same tasks as BenchmarkRunner of package runner, through an executor.
func BenchmarkExecutor(b *testing.B) {
	k, err := executor.Open(context.Background(), executor.Config{
		Command: []string{os.Args[0], executor.Argument},
		Runner:  runner.Config{Site: "home", Node: "n1", Dir: b.TempDir()},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer k.Close()
	program := &agent.Program{Job: 1, StageName: "work", Account: "ann", Tasks: b.N, Command: []string{"/bin/true"}}
	const parallel = 64
	slots := make(chan struct{}, parallel)
	var tasks sync.WaitGroup
	b.ResetTimer()
	for i := range b.N {
		slots <- struct{}{}
		tasks.Add(1)
		a := messages.Attempt{Task: messages.TaskRef{Job: messages.JobID(1 + i/1000), Index: uint32(i)}, Number: 1}
		k.Start(runner.Task{Grant: agent.Grant{Attempt: a}, Program: program}, func(f agent.Finished) {
			if f.Outcome != agent.Exited || f.ExitCode != 0 {
				b.Errorf("finished as %+v", f)
			}
			k.Confirm(f.Attempt)
			<-slots
			tasks.Done()
		})
	}
	tasks.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}
