// Package job is the vocabulary of jobs: their description ([JobSpec], [Stage], [Resources], [Valuation]), the requests
// of users about jobs, and what a site answers. Validate checks what does not depend on the site.
package job
