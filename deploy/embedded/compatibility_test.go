package embedded

import (
	"bytes"
	"crypto/sha256"
	bigendian "encoding/binary"
	"encoding/json"
	"hash/crc64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/messages"
)

// stopped returns the configuration of a site of one node and one replica, which has run and was stopped. The log of
// the auctioneer and the log of the bank each have a snapshot.
func stopped(t *testing.T) Config {
	t.Helper()
	c := small(filepath.Join(t.TempDir(), "state"))
	c.Replicas, c.Nodes = 1, c.Nodes[:1]
	s, err := Start(within(t), c, Options{Log: logged(t, zap.WarnLevel), snapshotBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer closeSite(t, s)
	for _, actor := range []string{messages.Auctioneer, messages.Bank} {
		connect(t, s, "operator").await("a snapshot of the "+actor, func() bool {
			whole, _ := filepath.Glob(filepath.Join(c.State, actor, "1/snapshots/*/meta.sum"))
			return slices.ContainsFunc(whole, func(path string) bool { return !strings.HasSuffix(filepath.Dir(path), ".tmp") })
		})
	}
	return c
}

// A state directory of an earlier version must be refused with a clear error, and stay unchanged.
func TestOlderStateIsRefused(t *testing.T) {
	t.Parallel()
	c := stopped(t)
	path := filepath.Join(c.State, formatFile)
	write(t, path, []byte("1\n"))
	s, err := Start(within(t), c, Options{})
	if err == nil {
		closeSite(t, s)
		t.Fatal("it starts")
	}
	if text := err.Error(); !strings.Contains(text, "has format 1, and this build reads only format 3, because an earlier version wrote it") {
		t.Errorf("the error is %q", text)
	}
	if text := read(t, path); string(text) != "1\n" {
		t.Errorf("the directory is marked %q", text)
	}
}

// Files of a later version must be refused with a clear error, and stay unchanged.
func TestNewerStateIsRefused(t *testing.T) {
	t.Parallel()
	for what, forge := range map[string]func(t *testing.T, state string){
		"state directory": func(t *testing.T, state string) {
			write(t, filepath.Join(state, formatFile), []byte("4\n"))
		},
		"the log in": func(t *testing.T, state string) { // the file of promises of the log
			path := filepath.Join(state, "bank/1/promises")
			write(t, path, rewritePromises(t, read(t, path)))
		},
		"the auctioneer's image": func(t *testing.T, state string) {
			forgeSnapshot(t, filepath.Join(state, "auctioneer/1"), func(image []byte) { image[0]++ })
		},
		"the ledger's image": func(t *testing.T, state string) {
			forgeSnapshot(t, filepath.Join(state, "bank/1"), func(image []byte) {
				at := bytes.Index(image, []byte("candor-ledger-"))
				image[at+len("candor-ledger-")] = '9'
			})
		},
		"the image of the bank's settlements": func(t *testing.T, state string) {
			forgeSnapshot(t, filepath.Join(state, "bank/1"), func(image []byte) { image[len("candor-clearing-")] = '9' })
		},
		"the snapshot": func(t *testing.T, state string) {
			forgeSnapshot(t, filepath.Join(state, "bank/1"), nil)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := stopped(t)
			forge(t, c.State)
			s, err := Start(within(t), c, Options{})
			if err == nil {
				closeSite(t, s)
				t.Fatal("it starts")
			}
			if text := err.Error(); !strings.Contains(text, what) || !strings.Contains(text, "a newer release wrote it; start the newer release") {
				t.Errorf("the error is %q", text)
			}
			if aside, _ := filepath.Glob(filepath.Join(c.State, "*/1/damaged-*")); aside != nil {
				t.Errorf("it was taken for damage: %v", aside)
			}
		})
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// forgeSnapshot changes the image or the header in each snapshot, and corrects the checksums.
func forgeSnapshot(t *testing.T, replica string, forge func(image []byte)) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(replica, "snapshots", "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatal(dirs, err)
	}
	for _, dir := range dirs {
		forgeOne(t, dir, forge)
	}
}

func forgeOne(t *testing.T, dir string, forge func(image []byte)) {
	t.Helper()
	const header = "candor mailbox 3\n"
	state := read(t, filepath.Join(dir, "state.bin"))
	if forge == nil {
		state[len(header)-2] = '9'
	} else {
		forge(state[len(header)+8+2+sha256.Size:])
	}
	write(t, filepath.Join(dir, "state.bin"), state)
	var meta map[string]any
	decoder := json.NewDecoder(bytes.NewReader(read(t, filepath.Join(dir, "meta.json"))))
	decoder.UseNumber()
	if err := decoder.Decode(&meta); err != nil {
		t.Fatal(err)
	}
	sum := crc64.New(crc64.MakeTable(crc64.ECMA))
	_, _ = sum.Write(state)
	meta["CRC"] = sum.Sum(nil)
	text, err := json.Marshal(meta)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "meta.json"), text)
	if err := os.Remove(filepath.Join(dir, "meta.sum")); err != nil {
		t.Fatal(err)
	}
}

// rewritePromises increases the version in both records of a file of promises.
func rewritePromises(t *testing.T, file []byte) []byte {
	t.Helper()
	const slot, lengthAt, sumAt, bodyAt = 16 << 10, 8, 12, 12 + sha256.Size
	for at := 0; at < 2*slot; at += slot {
		record := file[at : at+slot]
		body := record[bodyAt : bodyAt+bigendian.BigEndian.Uint32(record[lengthAt:])]
		raised := bytes.Replace(body, []byte(`"Format":1`), []byte(`"Format":2`), 1)
		copy(body, raised)
		sum := sha256.Sum256(append(bytes.Clone(record[:sumAt]), body...))
		copy(record[sumAt:], sum[:])
	}
	return file
}
