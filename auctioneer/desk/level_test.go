package desk

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

// An agent whose release is one older or one newer than this release must be served. An agent whose release is two
// newer must be refused.
func TestAgentsOfTheReleasesBesideAreServed(t *testing.T) {
	s := newSite(t, func(*Config) {})
	for level, serves := range map[int]bool{0: true, messages.Level: true, messages.Level + 1: true, messages.Level + 2: false} {
		c, err := s.desk.Register("n9", &agent.RegisterRequest{Session: 1, Slots: []job.ClassSlots{{Class: "map", Slots: 1}}, Level: level})
		switch {
		case serves && err != nil:
			t.Errorf("level %d: %v", level, err)
		case serves && c.Register.Level != level:
			t.Errorf("level %d is registered as %d", level, c.Register.Level)
		case !serves && (messages.KindOf(err) != messages.Conflict || !strings.Contains(err.Error(), "upgrade to")):
			t.Errorf("level %d: %v", level, err)
		}
	}
}
