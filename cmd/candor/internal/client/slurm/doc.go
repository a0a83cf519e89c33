// Package slurm implements Slurm's commands for programs that call them, such as workflow engines. "candor slurm link
// DIR" makes links with Slurm's names to the binary. If the binary is started by such a name, this package runs.
//
// A command reads the options of the Slurm command and asks the site as a client. Its output has the form of the Slurm
// command's output. If Candor has nothing similar to an option, the command refuses it with one line on standard error
// and exit code 1, as Slurm does.
//
// Slurm's words mean this in Candor: a partition is a market, an account is the project that pays, a node is a node,
// and a cluster is a site. An element of an array has the job's number followed by the index (33_4). It also has a
// number of its own: the job's number plus its position in the array.
package slurm
