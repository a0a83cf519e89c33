package site_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/candor-grid/candor/cmd/candor/internal/client/cli"
)

// If the site has no console, the command must say what to do.
func TestConsoleAddress(t *testing.T) {
	s, dir := newSite(t), t.TempDir()
	s.Run("console", "--state", dir).Expect(t, cli.CodeUnavailable, "", "start a site with `candor up --console")
	text := `{"site": "west", "server": "nats://127.0.0.1:1", "console": "http://127.0.0.1:8470", "websocket": "ws://127.0.0.1:8471"}`
	if err := os.WriteFile(filepath.Join(dir, "site.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Run("console", "--state", dir).Expect(t, cli.CodeOK, "Site west has its console at http://127.0.0.1:8470", "")
	s.Run("console", "--state", dir, "--websocket", "http://x").Expect(t, cli.CodeUsage, "", "no URL of a WebSocket listener")
	s.Run("console", "--state", dir, "--websocket", "wss://x:1", "--listen", "0.0.0.0:1").Expect(t, cli.CodeUsage, "", "must be an address on loopback")
}
