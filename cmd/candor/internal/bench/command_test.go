package bench

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// TestUnknownMeasurement: a name that no measurement has is an error, and no page of help.
func TestUnknownMeasurement(t *testing.T) {
	c := Command()
	var out strings.Builder
	c.SetOut(&out)
	c.SetErr(&out)
	c.SetArgs([]string{"speed"})
	c.SilenceErrors, c.SilenceUsage = true, true
	if err := c.Execute(); messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), `there is no measurement "speed"`) {
		t.Errorf("%v\n%s", err, out.String())
	}
}
