package casefile

// Or is the value of a key that may be left out, or what holds then.
func Or[T any](given *T, otherwise T) T {
	if given == nil {
		return otherwise
	}
	return *given
}
