package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/mailbox"
)

// Wire must keep the kind of an error, because callers decide what to do by the kind.
func TestWireKeepsKinds(t *testing.T) {
	for want, err := range map[messages.Kind]error{
		messages.TooLarge:  fmt.Errorf("propose: %w", messages.Errorf(messages.TooLarge, "9 bytes of 8")),
		messages.NotLeader: fmt.Errorf("propose: %w", mailbox.ErrNotLeader),
		messages.Exhausted: mailbox.ErrNoSpace,
		messages.Unknown:   context.DeadlineExceeded,
		messages.Internal:  errors.New("the disk is on fire"),
	} {
		if got := messages.KindOf(mailbox.Wire("bank", err)); got != want {
			t.Errorf("%v is told as %v, want %v", err, got, want)
		}
	}
}
