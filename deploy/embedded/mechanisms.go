package embedded

import "github.com/candor-grid/candor/auctioneer"

// Mechanisms lists the mechanisms that a market can name.
func Mechanisms() []string { return auctioneer.Mechanisms() }
