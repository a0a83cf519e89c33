package runner_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/candor-grid/candor/nodeagent/runner"
)

func BenchmarkContainment(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("needs root")
	}
	for _, kind := range []struct {
		name   string
		change func(*runner.Config)
	}{
		{"self", func(*runner.Config) {}},
		{"users", func(c *runner.Config) { c.User = "100000-165535" }},
		{"apart", func(c *runner.Config) { c.User, c.Apart = "100000-165535", true }},
		{"private", func(c *runner.Config) { c.User, c.Private = "100000-165535", true }},
	} {
		b.Run(kind.name, func(b *testing.B) {
			r := newBench(b, func(c *runner.Config) {
				kind.change(c)
				c.Inside = []string{os.Args[0], "inside"}
				c.Dir = filepath.Join(c.Dir, "node")
			})
			p := sh("")
			p.Command = []string{"/bin/true"}
			p.Job, p.Account, p.Stage = 7, "ann", 1
			r.start(p).wait()
			for b.Loop() {
				if f := r.start(p).wait(); f.ExitCode != 0 {
					b.Fatalf("%+v", f)
				}
			}
		})
	}
}
