// Package program computes what all tasks of a stage share: the file to execute and its arguments, the environment, and
// the user of the tasks. It also says why a program could not be executed.
//
// The package starts no tasks.
package program
