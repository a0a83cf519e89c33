// Package jobfile reads what a user hands to "candor submit" and makes a
// [messages.JobSpec] of it: a YAML (or JSON) document, or a script with
// directives in its leading comments. [Options] are what can be said about a
// job on the command line and in directives alike.
//
// # Documents
//
// A document has the fields of messages.JobSpec under their JSON names. A job
// of one stage may give that stage's fields at the top level instead of under
// "stages". Unknown and repeated fields are errors; every error names the
// line and column and shows them.
//
// # Scripts
//
// Lines "#CANDOR option…" before the first command hold options of "candor
// submit"; an unknown one is an error. Lines "#SBATCH option…" there are read
// too: each option of sbatch is mapped to one of ours, or is harmless and reported, or
// changes when, whether or on what a job runs and is refused. Lines of other systems
// (#PBS, #$, #BSUB) are not read, and
// a script that has no others is refused. Directives after the first command
// are text, as for sbatch. Where several places say the same, the command
// line wins over #CANDOR, #CANDOR over #SBATCH, and a later line over an
// earlier one.
//
// The package is pure: it reads no file, environment or clock.
package jobfile
