package embedded

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	bigendian "encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candor-grid/candor/messages"
)

// unpack makes the state directory of an archive in testdata: of a site of one node and one
// replica, in which alice ran a job that left a file, and bob was granted 5 credits.
func unpack(t *testing.T, archive string) Config {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	c := small(filepath.Join(t.TempDir(), "state"))
	c.Replicas, c.Nodes = 1, c.Nodes[:1]
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return c
		}
		if err == nil {
			err = unpackOne(filepath.Join(c.State, filepath.FromSlash(h.Name)), h, r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func unpackOne(path string, h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeDir {
		return os.MkdirAll(path, 0o700)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// A state directory of each format that was released starts, and goes on. When the format
// changes, add an archive that the release before made, and leave the others.
func TestOlderStateStarts(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("testdata/state-*.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatal("no archives", err)
	}
	for _, archive := range archives {
		t.Run(filepath.Base(archive), func(t *testing.T) {
			s := start(t, unpack(t, archive))
			defer closeSite(t, s)
			alice, bob, operator := connect(t, s, "alice"), connect(t, s, "bob"), connect(t, s, "operator")
			if job := alice.final(1); job.State != messages.Completed || job.Name != "stdin" {
				t.Errorf("job 1 is %v, %q; want it Completed", job.State, job.Name)
			}
			if left := alice.left(1)[0]["kept.txt"]; left != "kept\n" {
				t.Errorf("job 1 left %q in kept.txt", left)
			}
			if got := bob.account().Available; got != 1005*messages.Credit {
				t.Errorf("bob has %v", got)
			}
			if job := alice.final(alice.submit("new", work())); job.State != messages.Completed || job.Job != 2 {
				t.Errorf("a new job %d is %v", job.Job, job.State)
			}
			if books := request[messages.BooksReply](operator, messages.Bank, messages.VerbBooks, messages.BooksRequest{Full: true}); !books.Balanced {
				t.Errorf("books: %+v", books)
			}
			if text, err := os.ReadFile(filepath.Join(s.config.State, formatFile)); err != nil || string(text) != fmt.Sprintln(stateFormat) {
				t.Errorf("the directory is marked %q, %v", text, err)
			}
		})
	}
}

// State that a newer release wrote is refused in a sentence, wherever the higher version
// shows, and is left as it is.
func TestNewerStateIsRefused(t *testing.T) {
	t.Parallel()
	for what, forge := range map[string]func(t *testing.T, state string){
		"state directory": func(t *testing.T, state string) {
			write(t, filepath.Join(state, formatFile), []byte("2\n"))
		},
		"the log in": func(t *testing.T, state string) { // the promises
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
			c := unpack(t, "testdata/state-1.tar.gz")
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

// forgeSnapshot changes the image in a snapshot, or its header, and makes its checksums right.
func forgeSnapshot(t *testing.T, replica string, forge func(image []byte)) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(replica, "snapshots", "*"))
	if err != nil || len(dirs) != 1 {
		t.Fatal(dirs, err)
	}
	const header = "candor mailbox 1\n"
	state := read(t, filepath.Join(dirs[0], "state.bin"))
	if forge == nil {
		state[len(header)-2] = '9'
	} else {
		forge(state[len(header)+8:])
	}
	write(t, filepath.Join(dirs[0], "state.bin"), state)
	var meta map[string]any
	decoder := json.NewDecoder(bytes.NewReader(read(t, filepath.Join(dirs[0], "meta.json"))))
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
	write(t, filepath.Join(dirs[0], "meta.json"), text)
	if err := os.Remove(filepath.Join(dirs[0], "meta.sum")); err != nil {
		t.Fatal(err)
	}
}

// rewritePromises raises the format in both records of a file of promises.
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
