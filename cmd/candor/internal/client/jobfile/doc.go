// Package jobfile turns the input of "candor submit" into a [job.JobSpec]: a YAML (or JSON) document, or a script with
// directives in its leading comments. [Options] are the options of a job, on the command line and in directives.
//
// # Documents
//
// A document has the fields of job.JobSpec under their JSON names. A job of one stage may give that stage's fields at
// the top level instead of under "stages". Unknown and repeated fields are errors; every error names the line and
// column and shows them.
//
// # Scripts
//
// Lines "#CANDOR option…" before the first command hold options of "candor submit"; an unknown option is an error.
// Lines "#SBATCH option…" in the same place are read too. There are three kinds of sbatch options. Some are mapped to
// options of Candor. Some are harmless: they are ignored and reported. The others would change when, where or whether a
// job runs, and are refused. If there are no such lines, lines of PBS (#PBS) and Grid Engine (#$) are translated to
// options of sbatch; a script that has only lines of LSF (#BSUB) is refused. Directives after the first command have no
// effect, as in sbatch. If several places set the same option, the command line wins over #CANDOR, #CANDOR over
// #SBATCH, and a later line over an earlier one.
//
// The package is pure: it reads no file, environment or clock.
package jobfile
