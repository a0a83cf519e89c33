package examples_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candor-grid/candor/deploy/examples"
)

// The log must have the hash in ATTRIBUTION.md and a complete header. Every copy must contain both the log and
// ATTRIBUTION.md.
func TestNoticeComesWithTheData(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "copy")
	if err := examples.Unpack(examples.TraceAnalysis(), dir); err != nil {
		t.Fatal(err)
	}
	notice, err := os.ReadFile(filepath.Join(dir, "ATTRIBUTION.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := unzip(t, filepath.Join(dir, "sdsc-sp2-1999.swf.gz"))
	sum := sha256.Sum256(text)
	if !strings.Contains(string(notice), hex.EncodeToString(sum[:])) {
		t.Errorf("the text's sha256, %x, is not the notice's", sum)
	}
	for _, words := range []string{"Copyright 2000 The Regents of the University of", "provided that this copyright notice is preserved in all copies"} {
		if !strings.Contains(string(text), words) || !strings.Contains(string(notice), words) {
			t.Errorf("%q is missing from the log or the notice", words)
		}
	}
}

func unzip(t *testing.T, name string) []byte {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zipped)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestUnpackOverwritesNothing(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "map.sh")
	if err := os.WriteFile(name, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := examples.Unpack(examples.TraceAnalysis(), dir); err == nil {
		t.Error("a file that was there is no error")
	}
	if text, _ := os.ReadFile(name); string(text) != "mine" {
		t.Error("a file that was there was overwritten")
	}
}
