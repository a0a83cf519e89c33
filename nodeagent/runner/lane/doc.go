// Package lane keeps the files of running tasks: outputs, working directories, and lease files (see package lease). A
// lane is a place for one running task. Tasks use it one after the other as long as they write nothing there.
//
// [Files] are the files of one attempt. The package also bounds and reads outputs, and tells when they grow. It knows
// neither jobs nor processes.
package lane
