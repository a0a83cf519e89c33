// Package wire encodes messages.
//
// A payload is one value, in msgpack with structs as arrays, or in JSON with the same field names as the json tags of
// the types; see [Marshal], [Unmarshal] and [Format]. If the first byte of a payload is '{', or its Content-Type
// header says application/json, the payload is JSON, and so is the answer. Enumerations are numbers in msgpack and
// names in JSON; [messages.Credits], [messages.Time] and [messages.Duration] are integers of microcredits, microseconds
// and nanoseconds in msgpack.
//
// New fields are only added at the end of a struct. For this reason an embedded struct is one element, which is itself
// an array; in JSON its fields stand among the others. If an array is shorter than the struct, the missing fields are
// zero. A longer array is refused, except in replies ([UnmarshalReply]): a request with an unknown field asks for
// something that would not be done.
//
// A field that came after the first release has a tag with the level of its release, as in `since:"2"`. While it and
// the fields after it are empty, they are not written. So releases that know the field, and releases that do not, read
// and write the same bytes as long as nobody uses the field. [UnmarshalLevel] tells whether a payload uses such fields.
package wire
