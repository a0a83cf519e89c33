package job_test

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

const gib = 1 << 30

func TestWidthIsTheLeastNumberOfUnitsThatContainsTheShape(t *testing.T) {
	cpu := job.Resources{CPUs: 1, Memory: 4 * gib}
	gpu := job.Resources{CPUs: 8, Memory: 60 * gib, GPUs: 1, GPUType: "a100"}
	for _, c := range []struct {
		unit, shape job.Resources
		width       int // 0 means that no width is enough
	}{
		{cpu, job.Resources{}, 1},
		{cpu, job.Resources{CPUs: 4}, 4},
		{cpu, job.Resources{CPUs: 4, Memory: 16 * gib}, 4},
		{cpu, job.Resources{CPUs: 4, Memory: 16*gib + 1}, 5},
		{cpu, job.Resources{Memory: 1}, 1},
		{cpu, job.Resources{GPUs: 1}, 0},
		{cpu, job.Resources{Disk: 1}, 0},
		{gpu, job.Resources{CPUs: 9, GPUs: 1}, 2},
		{gpu, job.Resources{GPUs: 3, GPUType: "a100"}, 3},
		{gpu, job.Resources{GPUs: 1, GPUType: "v100"}, 0},
		{job.Resources{GPUs: 1}, job.Resources{GPUs: 2, GPUType: "v100"}, 2}, // the slots name no type, so the type of the nodes decides
		{job.Resources{Memory: 1}, job.Resources{Memory: job.MaxMemory}, 0},  // the task needs more units than an int can hold
	} {
		if width, ok := c.unit.Width(c.shape); width != c.width || ok != (c.width > 0) {
			t.Errorf("%v in units of %v: width %d, %v; want %d", c.shape, c.unit, width, ok, c.width)
		}
	}
}

func TestEveryBadShapeHasItsSentence(t *testing.T) {
	for said, change := range map[string]func(*job.Stage){
		"stages[0].cpus: -1 must not be negative":                                func(s *job.Stage) { s.CPUs = -1 },
		"stages[0].cpus: 65537 is above the limit of 65536":                      func(s *job.Stage) { s.CPUs = job.MaxCPUs + 1 },
		"stages[0].gpus: 1025 is above the limit of 1024":                        func(s *job.Stage) { s.GPUs = job.MaxGPUs + 1 },
		"stages[0].disk: -1 must not be negative":                                func(s *job.Stage) { s.Disk = -1 },
		"stages[0].width: -1 must not be negative":                               func(s *job.Stage) { s.Width = -1 },
		"stages[0].memory: 1 bytes: must be at least 1048576 bytes, or \"all\"":  func(s *job.Stage) { s.Memory = 1 },
		"stages[0].memory: -2 bytes: must be at least 1048576 bytes, or \"all\"": func(s *job.Stage) { s.Memory = -2 },
		"stages[0].memory: 128P is more than the limit of 64P":                   func(s *job.Stage) { s.Memory = 2 * job.MaxMemory },
		`stages[0].gpu_type: "a100" is a type of GPUs, and the stage`:            func(s *job.Stage) { s.GPUType = "a100" },
		`stages[0].gpu_type: "a b"`:                                              func(s *job.Stage) { s.GPUs, s.GPUType = 1, "a b" },
		`stages[0].constraint: "a&&b": "" is not a label`:                        func(s *job.Stage) { s.Constraint = "a&&b" },
		`stages[0].constraint: "(a|b)&c": "(a" is not a label`:                   func(s *job.Stage) { s.Constraint = "(a|b)&c" },
		`stages[0].nodes[1]: "n1" is given twice`:                                func(s *job.Stage) { s.Nodes = []messages.Name{"n1", "n1"} },
		`stages[0].exclude[0]: "a b"`:                                            func(s *job.Stage) { s.Exclude = []messages.Name{"a b"} },
		"stages[0].exclude: 1025 is above the limit of 1024":                     func(s *job.Stage) { s.Exclude = make([]messages.Name, job.MaxChosen+1) },
		"stages[0].constraint: 1025 bytes are more than the limit of 1024":       func(s *job.Stage) { s.Constraint = strings.Repeat("a", 1025) },
	} {
		spec := job.JobSpec{Budget: 1, Stages: []job.Stage{{Name: "main", Command: []string{"true"}}}}
		if err := spec.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&spec.Stages[0])
		if err := spec.Validate(); err == nil || !strings.HasPrefix(messages.Detail(err), said) {
			t.Errorf("error %v; want %s…", err, said)
		}
	}
}

func TestEveryBadUnitHasItsSentence(t *testing.T) {
	one := job.Resources{CPUs: 1}
	for said, units := range map[string][]job.ClassUnit{
		`units[0].class: the market has no class "gpu"`:    {{Class: "gpu", Unit: one}},
		`units[1].class: the unit of "cpu" is given twice`: {{Class: "cpu", Unit: one}, {Class: "cpu", Unit: one}},
		`units[0].unit: is empty`:                          {{Class: "cpu"}},
		`units[0].unit.memory: -1 must not be negative`:    {{Class: "cpu", Unit: job.Resources{Memory: -1}}},
		`units[0].unit.gpu_type: "a100" is a type`:         {{Class: "cpu", Unit: job.Resources{CPUs: 1, GPUType: "a100"}}},
	} {
		m := market.Market{Name: "main", Mechanism: market.FIFO, Classes: []messages.Name{"cpu"}, Units: units}
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("error %v; want %s…", err, said)
		}
	}
}

func TestConstraintsHoldForLabels(t *testing.T) {
	for text, want := range map[string]bool{"": true, "a": true, "c": false, "a&b": true, "a&c": false, "c|a & b": true, "c&a|c&b": false} {
		c, err := job.ParseConstraint(text)
		if err != nil || c.Satisfied([]messages.Name{"a", "b"}) != want {
			t.Errorf("%q on a node with a and b: %v, %v; want %v", text, !want, err, want)
		}
	}
}

func TestSizesAreReadAndWritten(t *testing.T) {
	for text, bytes := range map[string]int64{"4G": 4 * gib, "512M": 512 << 20, "1.5T": 3 << 39, "64P": 64 << 50, "12B": 12} {
		if n, err := job.ParseSize(text); err != nil || n != bytes || job.SizeText(bytes) != text {
			t.Errorf("%s: %d bytes, %v, written %s", text, n, err, job.SizeText(bytes))
		}
	}
	if _, err := job.ParseSize("many"); err == nil {
		t.Error("a word is a size")
	}
}
