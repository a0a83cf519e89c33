package access

// These are the permissions of the files and directories that the runner makes.
const (
	PrivateFiles = 0o600
	PrivateDirs  = 0o700
	GroupDirs    = 0o710 // only the group can pass through the directory
	ThroughDirs  = 0o711 // all users can pass through the directory, but cannot list it
)
