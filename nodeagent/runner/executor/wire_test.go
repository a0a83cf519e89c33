package executor

import (
	"testing"

	"github.com/candor-grid/candor/messages"
)

// TestFramesForEarlierReleases: an executor outlives the agent that an upgrade replaces.
// What it knew it can still read.
func TestFramesForEarlierReleases(t *testing.T) {
	for name, c := range map[string]struct {
		message any
		fields  byte
	}{
		"a frame":   {frame{Kind: start, Program: &messages.Program{}}, 14},
		"a program": {messages.Program{}, 15},
	} {
		data, err := messages.Marshal(c.message, messages.Msgpack)
		if err != nil {
			t.Fatal(err)
		}
		if data[0] != 0x90|c.fields {
			t.Errorf("%s begins with %#x, and earlier releases read %d fields", name, data[0], c.fields)
		}
	}
}
