package room

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/candor-grid/candor/messages/await"
)

// TestRoomsThatNobodyUsesGoFirst fills the temporary directories of rooms. A room without tasks must be removed if its
// directories hold much. All other rooms must stay.
func TestRoomsThatNobodyUsesGoFirst(t *testing.T) {
	gone := make(chan struct{})
	close(gone)
	r := &Rooms{open: map[string]*Room{}}
	for key, c := range map[string]struct{ bytes, users int }{"full": {4 << 20, 0}, "used": {4 << 20, 1}, "small": {1 << 10, 0}} {
		one := &Room{key: key, Temp: filepath.Join(t.TempDir(), key), over: gone, users: c.users}
		if err := os.Mkdir(one.Temp, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(one.Temp, "file"), make([]byte, c.bytes), 0o600); err != nil {
			t.Fatal(err)
		}
		r.open[key] = one
	}
	full := r.open["full"].Temp
	if !r.RetireFull(1<<20) || len(r.open) != 2 || r.open["full"] != nil {
		t.Errorf("there are still %v", r.open)
	}
	await.Until(t, "its temporary directories are gone", func() bool {
		_, err := os.Stat(full)
		return os.IsNotExist(err)
	})
	if r.RetireFull(1 << 20) {
		t.Error("another one went")
	}
}
