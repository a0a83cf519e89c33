package history

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// A file of a newer form is no damage: nobody is told to remove it.
func TestFileOfANewerRelease(t *testing.T) {
	_, err := decode([]byte("candor-journal-2" + strings.Repeat("x", 64)))
	if err = damaged("1.segment", err); messages.KindOf(err) != messages.Conflict || strings.Contains(err.Error(), "emove") {
		t.Errorf("the error is %v, want a Conflict", err)
	}
}
