package intake_test

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
)

func TestAShapeIsRefusedWhereAClassHasNoUnit(t *testing.T) {
	for said, change := range map[string]func(*messages.Stage){
		"cpus":                     func(s *messages.Stage) { s.CPUs = 1 },
		"gpus":                     func(s *messages.Stage) { s.GPUs = 1 },
		"disk":                     func(s *messages.Stage) { s.Disk = 1 },
		"a whole node (exclusive)": func(s *messages.Stage) { s.Exclusive = true },
		"all memory of a node":     func(s *messages.Stage) { s.Memory = messages.AllMemory },
		"":                         func(s *messages.Stage) { s.Memory, s.Width = 1<<20, 9 }, // a bound, as ever
	} {
		r := rules()
		spec := &request("k").Spec
		change(&spec.Stages[0])
		err := r.Complete(spec)
		switch {
		case said == "" && (err != nil || spec.Stages[0].Width != 0):
			t.Errorf("memory alone: %v, width %d", err, spec.Stages[0].Width)
		case said != "" && (err == nil || !strings.Contains(err.Error(), "asks for "+said+", and market")):
			t.Errorf("%s: %v", said, err)
		}
	}
}
