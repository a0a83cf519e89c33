package highestbid

import "github.com/candor-grid/candor/messages"

// SolveDocument answers a JSON document {"nodes", "algorithm", "price", "capped"?, "reserve"?, "horizon"?, "jobs":
// [{"submit", "runtime", "value", "bid", "estimate"?}…]}. Without "reserve", the reserve price is Reserve. The answer
// is an Outcome.
func SolveDocument(data []byte) (any, error) {
	p := &Problem{Reserve: Reserve}
	if err := messages.ReadDocument(data, p); err != nil {
		return nil, err
	}
	return Run(p)
}
