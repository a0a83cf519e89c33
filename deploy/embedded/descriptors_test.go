package embedded

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/candor-grid/candor/deploy/identity"
)

// Connections of strangers must leave the process at least half of the files that it may open.
func TestAnyConnectionsLeaveFiles(t *testing.T) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	authority, err := identity.Create(filepath.Join(t.TempDir(), "keys"), "west")
	if err != nil {
		t.Fatal(err)
	}
	o, err := serverOptions(&Config{Site: "west", State: t.TempDir(), Listen: "127.0.0.1:0"}, nil, authority)
	if err != nil {
		t.Fatal(err)
	}
	if most := uint64(o.MaxConn); most == 0 || most > files.Cur/2 || most > server.DEFAULT_MAX_CONNECTIONS {
		t.Errorf("the server has up to %d connections; the process may open %d files", most, files.Cur)
	}
}
