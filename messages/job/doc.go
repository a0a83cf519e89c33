// Package job is the vocabulary of jobs: their description ([JobSpec], [Stage], [Resources], [Valuation]), the requests
// of users about jobs, and what a site answers. Validate checks what can be checked without knowing the site.
package job
