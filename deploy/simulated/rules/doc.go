// Package rules reads the document that describes the market of a study: its mechanism with the mechanism's parameters,
// and the model from which bids are drawn.
//
//	name: spot
//	mechanism: highest-bid
//	price: kth           # or first, or pivot
//	bids:
//	  shading: {aggressive: 0.1, beta: 0.6}
//
// Only the mechanism is needed. Each mechanism has its own parameters, listed in Parameters. A parameter of another
// mechanism is refused like a misspelt one, with file, line and column. Decode reads YAML, and so JSON too.
package rules
