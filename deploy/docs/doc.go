// Package docs holds the pages for users: a tutorial, how to come from Slurm or from
// Kubernetes, jobs, markets, sites, security, figures and limits. The pages for operators
// are in the runbook. A test starts a site and runs the commands of the pages that one site
// can run, and of the README's quick start, as a reader would. The test of the runbook
// checks that the commands of the other pages exist.
package docs
