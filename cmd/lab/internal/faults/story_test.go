package faults

import (
	"reflect"
	"strings"
	"testing"
)

// A failing seed tells a story of what happened. The story must contain the fault, the leaders, and the committed
// entries about the node in the violation. It must be short, and the same in each run.
func TestAFailingSeedTellsItsStory(t *testing.T) {
	for _, c := range controls {
		if c.bug != LeaseForever {
			continue
		}
		plan := controlPlan(c.rates)
		found, ok := find(t, plan, c.bug, c.invariant, c.within)
		if !ok {
			return
		}
		short := Shrink(plan, found.Seed, c.bug)
		lines := Tell(short, found.Seed, c.bug)
		if len(lines) > mostLines+2 || !reflect.DeepEqual(lines, Tell(short, found.Seed, c.bug)) {
			t.Errorf("%d lines, or others when told again", len(lines))
		}
		text := strings.Join(lines, "\n")
		last := lines[len(lines)-1]
		if !strings.Contains(last, "VIOLATED: ") || !strings.Contains(last, "invariant 9") {
			t.Errorf("the last line is %q", last)
		}
		for _, want := range []string{"fault at", " leads the book in term ", "the book: register node"} {
			if !strings.Contains(text, want) {
				t.Errorf("nothing of %q in\n%s", want, text)
			}
		}
	}
}

// A story tells the events that led to a violation. It leaves out other jobs, accounts and sites, and its length is
// limited.
func TestAStoryIsAboutItsViolation(t *testing.T) {
	s := &story{}
	for range 100 {
		s.moments = append(s.moments, moment{at: epoch, site: "east", what: "of job 3", subjects: map[string]bool{"job 3": true, "job/u1/j0": true}})
	}
	s.moments = append(s.moments,
		moment{at: epoch, site: "east", what: "of its hold", subjects: map[string]bool{"job/u1/j0": true}},
		moment{at: epoch, site: "east", what: "of job 4", subjects: map[string]bool{"job 4": true}},
		moment{at: epoch, site: "west", what: "of job 3 elsewhere", subjects: map[string]bool{"job 3": true}},
		moment{at: epoch, what: "a fault"})
	lines := s.about("invariant 2: job 3 is charged twice, at east", 0)
	text := strings.Join(lines, "\n")
	if len(lines) != mostLines+2 || !strings.Contains(text, "of its hold") || !strings.Contains(text, "a fault") ||
		strings.Contains(text, "of job 4") || strings.Contains(text, "elsewhere") || !strings.HasPrefix(text, "62 earlier") {
		t.Errorf("%d lines:\n%s", len(lines), text)
	}
}

func TestASoundSeedHasNoStory(t *testing.T) {
	if lines := Tell(Default(), 1, Sound); lines != nil {
		t.Error(lines)
	}
}
