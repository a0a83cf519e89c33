package simulate

import "context"

// Await does something that takes long, and returns before it is done when ctx
// ends: the program is about to, and takes it along.
func Await(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
