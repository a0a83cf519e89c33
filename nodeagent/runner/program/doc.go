// Package program computes what all tasks of a stage share: the file to execute and its arguments, the environment, and
// the user as whom the tasks run. It also says why a program could not be executed.
//
// It writes nothing but the script of a stage, and starts no tasks.
package program
