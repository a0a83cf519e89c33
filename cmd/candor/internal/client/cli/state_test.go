package cli

import (
	"os/user"
	"path/filepath"
	"testing"
)

// Without the variable HOME, the state directory must be in the home directory that the system has for the user. It
// must never be at a place where another user could have made it.
func TestStateIsNobodyElses(t *testing.T) {
	u, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	for _, c := range []struct{ home, xdg, want string }{
		{"/home/ann", "", "/home/ann/.local/state/candor"},
		{"/home/ann", "/var/x", "/var/x/candor"},
		{"", "", filepath.Join("/", u.HomeDir, ".local/state/candor")},
	} {
		env := map[string]string{"HOME": c.home, "XDG_STATE_HOME": c.xdg}
		if got := DefaultState(func(name string) string { return env[name] }); got != c.want {
			t.Errorf("HOME=%q XDG_STATE_HOME=%q: %s, want %s", c.home, c.xdg, got, c.want)
		}
	}
}
