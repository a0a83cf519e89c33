package embedded

// Mechanisms lists the mechanisms that a market can name.
func Mechanisms() []string { return []string{"proportional"} }
