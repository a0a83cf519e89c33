// Package machine describes the part of a computer that the tasks of a node divide: processors, memory and GPUs. It
// discovers what the computer has, and gives each task a portion that no other task has.
//
// It starts no tasks and makes no control groups.
package machine
