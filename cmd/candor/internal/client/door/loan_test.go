package door

import (
	"testing"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
)

// The clock of a login node may be wrong. A door must nevertheless get new credentials every quarter of an hour. It must
// not give credentials that the site no longer accepts.
func TestADoorWithAWrongClockGetsNewCredentials(t *testing.T) {
	got := time.Now()
	for _, ahead := range []time.Duration{0, 2 * time.Hour, -2 * time.Hour} {
		l := loan{cli.Loan{}, got.Add(ahead)} // the site's clock says `got`
		for age, want := range map[time.Duration]bool{0: true, 14 * time.Minute: true, 16 * time.Minute: false, 59 * time.Minute: false, 90 * time.Minute: false} {
			if l.fresh(got.Add(ahead+age)) != want {
				t.Errorf("a clock that is %v ahead: credentials of the age %v are fresh: %v", ahead, age, !want)
			}
		}
	}
	if l := (&loan{cli.Loan{}, got.Add(2 * time.Hour)}); l.fresh(got.Add(time.Minute)) {
		t.Error("the clock was set back by two hours, and credentials of unknown age are fresh")
	}
}
