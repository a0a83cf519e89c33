// Package document reads the JSON documents of `candor solve` strictly: a
// document that is not exactly what a mechanism expects is refused with a
// *messages.Error of kind Invalid that names the place, like jobs[3].budget,
// and says what to do. Nothing is guessed, defaulted or silently dropped.
//
// The expected shape is a Go value: structs with `json:"key"` tags, slices,
// pointers, float64, the integer kinds, string and bool. A key is required unless
// its tag says omitempty; null is taken only by pointers and slices. Keys are
// matched exactly, letter case included.
package document
