package serve

import "context"

// ended is how a command that runs until it is interrupted comes out. An error of
// closing would else be taken for the interruption.
func ended(closing error) error {
	if closing == nil {
		return nil
	}
	return disorder{closing}
}

// unstarted is how it comes out if it did not even start: well, if that was
// because it was interrupted.
func unstarted(ctx context.Context, err error) error {
	switch ctx.Err() {
	case nil:
		return err
	case err:
		return nil
	}
	return ended(err)
}

// disorder is what went wrong at the end, all of it.
type disorder struct{ closing error }

func (d disorder) Error() string { return "could not end in order: " + d.closing.Error() }

// ExitCode is that of a failure, not of an interruption: the command was interrupted,
// but could not end in order.
func (disorder) ExitCode() int { return 1 }
