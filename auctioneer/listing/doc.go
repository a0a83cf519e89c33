// Package listing selects the jobs of one answer from all that a caller may see: those that
// match a request, in its order, beginning where an earlier answer ended. It is pure, and never
// keeps more jobs than the answer has.
package listing
