// Package messages is the vocabulary that Candor's actors share: quantities,
// identifiers, the description of a job, the requests and replies of every
// actor, the subjects they travel on, and the kinds of error. Actors import
// this package and never one another.
//
// # Wire
//
// A payload is one value, in msgpack with structs as arrays, or in JSON with
// the same field names as the json tags here; see [Marshal], [Unmarshal] and
// [Format]. A payload whose first byte is '{', or whose Content-Type header
// says application/json, is JSON, and is answered in JSON. Fields are only
// ever added at the end of a struct: an array that is shorter than the struct
// leaves the missing fields zero, one that is longer is refused. For the same
// reason an embedded struct is one element, an array of its own; in JSON its
// fields stand among the others. Enumerations are numbers in msgpack and names
// in JSON; [Credits], [Time] and [Duration] are integers of microcredits,
// microseconds and nanoseconds in msgpack.
//
// # Identity
//
// The account on whose behalf a request is made is the last token of its
// subject, bound to the connection by NATS permissions; no field of a payload
// is ever trusted to say who speaks.
package messages
