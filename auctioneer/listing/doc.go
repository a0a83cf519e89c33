// Package listing selects the jobs of one page from all jobs that a caller may see: it filters and
// sorts them, and continues where an earlier page ended. It is pure, and keeps at most one page of
// jobs.
package listing
