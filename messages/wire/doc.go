// Package wire encodes messages.
//
// A payload is one value, in msgpack with structs as arrays, or in JSON with the same field names as the json tags of
// the types; see [Marshal], [Unmarshal] and [Format]. If the first byte of a payload is '{', or its Content-Type
// header says application/json, the payload is JSON, and so is the answer. New fields are only added at the end of a
// struct. If an array is shorter than the struct, the missing fields are zero; a longer array is refused. For the
// same reason an embedded struct is one element, which is itself an array; in JSON its fields stand among the others.
// Enumerations are numbers in msgpack and names in JSON; [messages.Credits], [messages.Time] and [messages.Duration]
// are integers of microcredits, microseconds and nanoseconds in msgpack.
package wire
