package history

import (
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// TestFileOfANewerRelease: a file in a newer format must not count as damaged.
func TestFileOfANewerRelease(t *testing.T) {
	_, err := decode([]byte("candor-journal-2" + strings.Repeat("x", 64)))
	if err = damaged("1.segment", err); messages.KindOf(err) != messages.Conflict || strings.Contains(err.Error(), "emove") {
		t.Errorf("the error is %v, want a Conflict", err)
	}
}
