// Package schema writes the JSON schemas (draft 2020-12) of Candor's requests
// and replies. They are derived from the Go types of package messages and so
// cannot lag behind them: a field is required unless its tag says omitempty,
// and no other fields are allowed, as the decoder refuses them.
package schema
