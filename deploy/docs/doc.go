// Package docs holds the pages for users: a tutorial, how to move from Slurm or from Kubernetes, jobs, markets, sites,
// security, figures and limits. The pages for operators are in the runbook. A test types every command of every page
// and of the README, as a reader would.
package docs
