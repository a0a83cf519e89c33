package mailbox

import (
	"context"
	"errors"

	"github.com/candor-grid/candor/messages"
)

// ProposeAs does the same as Propose, for an actor whose machine answers the command with a value of type T. It returns
// errors for the actor's callers; see [Wire].
func ProposeAs[T any](ctx context.Context, box Mailbox, actor string, command []byte) (result T, err error) {
	answer, err := box.Propose(ctx, command)
	if err != nil {
		return result, Wire(actor, err)
	}
	result, ok := answer.(T)
	if !ok {
		return result, messages.Errorf(messages.Internal, "the mailbox answered with a %T", answer)
	}
	return result, nil
}

// Wire converts an error of Propose or Verify into the error that the callers of the actor get. If the error already
// has a kind, such as TooLarge, Wire does not change it.
func Wire(actor string, err error) error {
	var known *messages.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, ErrNotLeader), errors.Is(err, ErrClosed):
		return messages.Errorf(messages.NotLeader, "this replica of the %s does not lead; ask again", actor)
	case errors.Is(err, ErrNoSpace):
		return messages.Errorf(messages.Exhausted, "no replica of the %[1]s has room for its log on its disk: nothing was done. An operator must free space; the %[1]s goes on within a second after that, so ask again then", actor)
	case errors.Is(err, ErrUnknown), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return messages.Errorf(messages.Unknown, "the outcome is not known; ask again with the same identifiers")
	}
	return messages.Errorf(messages.Internal, "the %s's log failed: %v", actor, err)
}
