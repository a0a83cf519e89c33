// Package docs holds the pages for users: a tutorial, and how to come from Slurm or from
// Kubernetes. The pages for operators are in the runbook. A test starts a site and runs
// every command of these pages, and of the README's quick start, as a reader would.
package docs
