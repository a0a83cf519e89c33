package highestbid

import "github.com/candor-grid/candor/messages/wire"

// SolveDocument answers a JSON document {"nodes", "algorithm", "price", "capped"?, "reserve"?, "horizon"?, "jobs":
// [{"submit", "runtime", "value", "bid", "estimate"?}…]} with an Outcome. Without "reserve", the reserve price is
// Reserve.
func SolveDocument(data []byte) (any, error) {
	p := &Problem{Reserve: Reserve}
	if err := wire.ReadDocument(data, p); err != nil {
		return nil, err
	}
	return Run(p)
}
