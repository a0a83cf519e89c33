// Package jobfile turns the input of "candor submit" into a [job.JobSpec]: a YAML (or JSON) document, or a script with
// directives in its leading comments. [Options] are the options of a job.
//
// # Documents
//
// A document has the fields of job.JobSpec under their JSON names. A job of one stage may give that stage's fields at
// the top level. Unknown and repeated fields are errors, which show the line and column.
//
// # Scripts
//
// Lines "#CANDOR option…" before the first command hold options of "candor submit"; an unknown option is an error.
// Lines "#SBATCH option…" in the same place are read too. Some sbatch options are mapped to options of Candor. Others
// are harmless: they are ignored and reported. Options that would change when, where or whether a job runs are refused.
//
// Without such lines, lines of PBS (#PBS) and Grid Engine (#$) are translated to options of sbatch. A script with only
// lines of LSF (#BSUB) is refused. Directives after the first command have no effect, as in sbatch, except those of
// Grid Engine. The command line wins over #CANDOR, #CANDOR over #SBATCH, and a later line over an earlier one.
//
// The package is pure: it reads no file, environment or clock.
package jobfile
