package messages

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"sync"
)

// Level is the level of this release. If a release stores or sends something that the release before it cannot read, it
// has a new level. The replicas of a group agree on one level: the lowest level of their releases. A release works with
// two levels: its own level, and the level before it. So a site can be upgraded, and downgraded, host by host.
//
// A new field of a struct has a tag with the level, as in `since:"2"`; see package wire.
const Level = 2

// Release is the name of a release and its level, see [Level]. The file deploy/packages/releases has the same releases
// with their commits.
type Release struct {
	Name  string
	Level int
}

// Releases are the releases up to this one, in their order. The first one has level 1.
var Releases = []Release{{"v0.9.0", 1}}

// ReleaseOf returns a phrase that names the release of a level, such as "release v0.9.0".
func ReleaseOf(level int) string {
	for _, r := range Releases {
		if r.Level == level {
			return "release " + r.Name
		}
	}
	return fmt.Sprintf("a release of level %d", level)
}

// CheckAgreed returns an error if a release of the level `own` cannot be a replica of a group whose replicas agreed on
// `level`.
func CheckAgreed(level, own int) error {
	switch {
	case level > own:
		return Errorf(Conflict, "the replicas of this group agreed on level %d, and this release works with level %d at most; start %s here", level, own, ReleaseOf(level))
	case level < own-1:
		return Errorf(Conflict, "the replicas of this group agreed on level %d, and this release works with the levels %d and %d; first upgrade all hosts to %s", level, own-1, own, ReleaseOf(own-1))
	}
	return nil
}

// CheckLevels returns an error if two processes cannot work together, because their levels `theirs` and `ours` are too
// different. The arguments `them` and `us` name the two processes in the error, for example "the agent of node1". Level
// 0 means a process from before the first release.
func CheckLevels(them string, theirs int, us string, ours int) error {
	theirs, ours = max(theirs, 1), max(ours, 1)
	if theirs-ours <= 1 && ours-theirs <= 1 {
		return nil
	}
	low := min(theirs, ours)
	return Errorf(Conflict, "%s has level %d, and %s has level %d: a release works only with its own level, the level below and the level above; first upgrade to %s", them, theirs, us, ours, ReleaseOf(low+1))
}

// version is the version of the program. The build of a release sets this variable with -ldflags "-X
// …/messages.version=v1.2.3".
var version string

// ThisRelease returns the version of this build, as the build or the Go tool recorded it.
func ThisRelease() string { return thisRelease() }

var thisRelease = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return cmp.Or(version, info.Main.Version, "(devel)")
	}
	return cmp.Or(version, "(devel)")
})
