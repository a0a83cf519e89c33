// Package store keeps the files of jobs: their directories, scripts and inputs, and the outputs of ended tasks. It
// bounds what an account keeps, and removes the oldest files first.
//
// The runner calls [Store.Acquire] and [Store.Release], so the package knows which jobs have running tasks. About a
// task it can only ask whether the task runs ([Config.Runs]). It ends no task.
package store
