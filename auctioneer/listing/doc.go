// Package listing selects the jobs of one page: it filters and sorts them, and continues where an earlier page ended.
// It is pure, and keeps at most one page of jobs.
package listing
