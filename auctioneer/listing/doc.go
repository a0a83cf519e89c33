// Package listing picks the jobs of one answer out of all that a caller may see: those
// that fit a request, in its order, from where an earlier answer ended. It is pure, and
// keeps no more jobs than the answer has, whatever it is shown.
package listing
