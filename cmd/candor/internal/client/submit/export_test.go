package submit

import "time"

// EndWithin sets how long a command waits for the end of its job. The result sets it back.
func EndWithin(d time.Duration) (back func()) {
	before := endWithin
	endWithin = d
	return func() { endWithin = before }
}
