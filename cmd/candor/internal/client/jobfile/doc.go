// Package jobfile turns the input of "candor submit" into a [messages.JobSpec]: a YAML (or JSON)
// document, or a script with directives in its leading comments. [Options] are the options of a
// job, on the command line and in directives.
//
// # Documents
//
// A document has the fields of messages.JobSpec under their JSON names. A job of one stage may give
// that stage's fields at the top level instead of under "stages". Unknown and repeated fields are
// errors; every error names the line and column and shows them.
//
// # Scripts
//
// Lines "#CANDOR option…" before the first command hold options of "candor submit"; an unknown one
// is an error. Lines "#SBATCH option…" there are read too. An option of sbatch is either mapped to
// one of ours; or it is harmless, and only reported; or it changes when, whether or on what a job
// runs, and is refused. If there are no such lines, those of PBS (#PBS) and Grid Engine (#$) are
// translated to options of sbatch; a script that has only lines of LSF (#BSUB) is refused. Directives after the first command are text, as for sbatch. If
// several places set the same option, the command line wins over #CANDOR, #CANDOR over #SBATCH, and
// a later line over an earlier one.
//
// The package is pure: it reads no file, environment or clock.
package jobfile
