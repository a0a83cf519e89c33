package runner_test

import (
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/runner"
)

var parallel = 8 * runtime.NumCPU()

// BenchmarkBare measures the least time that a task can take: a loop of fork, exec and wait, without the runner.
func BenchmarkBare(b *testing.B) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	attr := &os.ProcAttr{Files: []*os.File{null, null, null}}
	keepRunning(b, func(int) {
		p, err := os.StartProcess("/bin/true", []string{"/bin/true"}, attr)
		if err != nil {
			b.Error(err)
			return
		}
		if _, err := p.Wait(); err != nil {
			b.Error(err)
		}
	})
}

// BenchmarkRunner measures the same tasks as BenchmarkBare, but it starts them with the runner.
func BenchmarkRunner(b *testing.B) {
	r, err := runner.NewProcesses(runner.Config{Site: "s", Node: "n", Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	program := &agent.Program{Job: 1, StageName: "work", Account: "ann", Tasks: b.N, Command: []string{"/bin/true"}}
	keepRunning(b, func(i int) {
		task := runner.Task{Program: program}
		task.Attempt = messages.Attempt{Task: messages.TaskRef{Job: messages.JobID(1 + i/1000), Index: uint32(i)}, Number: 1}
		done := make(chan agent.Finished, 1)
		r.Start(task, func(f agent.Finished) { done <- f })
		if f := <-done; f.Outcome != agent.Exited || f.ExitCode != 0 {
			b.Errorf("finished as %+v", f)
		}
	})
}

func keepRunning(b *testing.B, work func(i int)) {
	b.ResetTimer()
	next := make(chan int)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for i := range next {
				work(i)
			}
		})
	}
	for i := range b.N {
		next <- i
	}
	close(next)
	workers.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}
