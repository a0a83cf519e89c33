package history

import (
	"bytes"
	"errors"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/money"
)

func signed(t *testing.T, n int) (list []money.Checkpoint) {
	t.Helper()
	key, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		c, err := Sign(key, money.Checkpoint{Site: "west", Records: uint64(i + 1), Head: "00"})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

// keeps checks that a replica that starts with these files reads exactly the checkpoints with the record numbers in
// `want`.
func keeps(t *testing.T, what string, files Files, want ...uint64) *Checkpoints {
	t.Helper()
	c, err := ReadCheckpoints(files)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	list, _ := c.After(0, 100)
	if len(list) != len(want) {
		t.Fatalf("%s: %d checkpoints, want %v", what, len(list), want)
	}
	for i := range list {
		if list[i].Records != want[i] || Verify(&list[i]) != nil {
			t.Fatalf("%s: checkpoint %d is of %d records, or has no signature", what, i, list[i].Records)
		}
	}
	return c
}

func add(t *testing.T, c *Checkpoints, one money.Checkpoint) {
	t.Helper()
	if err := c.Add(one); err != nil {
		t.Fatal(err)
	}
}

// TestCutCheckpoints cuts the last line at every byte. Later starts must read all other checkpoints.
func TestCutCheckpoints(t *testing.T) {
	list := signed(t, 4)
	files := NewVolatile()
	first := keeps(t, "nothing", files)
	add(t, first, list[0])
	from := len(files.Content(CheckpointsFile))
	add(t, first, list[1])
	text := files.Content(CheckpointsFile)
	for cut := from; cut <= len(text); cut++ {
		files.Damage(CheckpointsFile, text[:cut:cut])
		have := []uint64{1}
		if cut >= len(text)-1 { // only the end of the line is missing
			have = append(have, 2)
		}
		add(t, keeps(t, "the first start", files, have...), list[2])
		have = append(have, 3)
		add(t, keeps(t, "the second start", files, have...), list[3])
		keeps(t, "the third start", files, append(have, 4)...)
	}
}

// TestJoinedCheckpoints reads a file that an earlier version has written. In this file, one checkpoint was cut off, and
// the next checkpoint follows on the same line. A line without a complete checkpoint must count as damage.
func TestJoinedCheckpoints(t *testing.T) {
	list := signed(t, 4)
	files := NewVolatile()
	c := keeps(t, "nothing", files)
	var text []byte
	for i, one := range list {
		before := len(files.Content(CheckpointsFile))
		add(t, c, one)
		line := files.Content(CheckpointsFile)[before:]
		switch i {
		case 1:
			line = line[:40] // the line is cut off, and the next line follows without a line end
		case 2:
			line = line[:len(line)-1] // only the end of the line is missing
		}
		text = append(text, line...)
	}
	files.Damage(CheckpointsFile, text)
	keeps(t, "joined", files, 1, 3, 4)
	files.Damage(CheckpointsFile, append([]byte("no checkpoint\n"), text...))
	if c := keeps(t, "a line is none", files, 1, 3, 4); messages.KindOf(c.Damaged()) != messages.Internal {
		t.Errorf("a file that is damaged: %v", c.Damaged())
	}
}

// full is a set of files on a disk that has room for only half of an append.
type full struct {
	*Volatile
	full bool
}

var errFull = errors.New("no space left on device")

func (f *full) Append(name string, data []byte) error {
	if !f.full {
		return f.Volatile.Append(name, data)
	}
	return errors.Join(errFull, f.Volatile.Append(name, data[:len(data)/2]))
}

func (f *full) Write(name string, parts ...[]byte) error {
	if f.full {
		return errFull
	}
	return f.Volatile.Write(name, parts...)
}

// TestCheckpointsOnAFullDisk: a checkpoint that does not fit on the disk must not be in the list, and must not damage
// later ones.
func TestCheckpointsOnAFullDisk(t *testing.T) {
	list := signed(t, 4)
	files := &full{Volatile: NewVolatile()}
	c := keeps(t, "nothing", files)
	add(t, c, list[0])
	files.full = true
	for range 3 {
		if err := c.Add(list[1]); !errors.Is(err, errFull) {
			t.Fatalf("on a full disk: %v", err)
		}
	}
	keeps(t, "full", files, 1)
	files.full = false
	add(t, c, list[2])
	add(t, keeps(t, "room again", files, 1, 3), list[3])
	keeps(t, "the second start", files, 1, 3, 4)
}

// TestDamagedCheckpoints flips each byte of a file. The damaged checkpoint must not count, and the error must name
// its line.
func TestDamagedCheckpoints(t *testing.T) {
	list := signed(t, 3)
	files := NewVolatile()
	c := keeps(t, "nothing", files)
	for _, one := range list {
		add(t, c, one)
	}
	text := files.Content(CheckpointsFile)
	for i := range text[:len(text)-1] {
		damaged := bytes.Clone(text)
		damaged[i] ^= 1 << (i % 7)
		files.Damage(CheckpointsFile, damaged)
		c, err := ReadCheckpoints(files)
		if err != nil {
			t.Fatal(err)
		}
		have, _ := c.After(0, 100)
		for _, one := range have {
			if Verify(&one) != nil {
				t.Fatalf("byte %d: a checkpoint that nobody signed counts", i)
			}
		}
		cut := text[i] == '\n' || bytes.LastIndexByte(text[:len(text)-1], '\n') < i // the same as after a crash
		if len(have) < 3 && c.Damaged() == nil && !cut {
			t.Fatalf("byte %d: %d checkpoints, and nothing is said", i, len(have))
		}
	}
}

// In TestCoveredCheckpointsGo, there are more checkpoints than must be kept. Each checkpoint covers all earlier ones,
// so earlier checkpoints must be removed. In each block of 10,000 records, the last checkpoint must stay.
func TestCoveredCheckpointsGo(t *testing.T) {
	list := signed(t, 1)
	files := NewVolatile()
	c := keeps(t, "nothing", files)
	key, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	add(t, c, list[0])
	const step = 50 // number of records between two checkpoints
	for n := uint64(step); n <= step*2*mostCovered; n += step {
		one, err := Sign(key, money.Checkpoint{Site: "west", Records: n, Head: "00"})
		if err != nil {
			t.Fatal(err)
		}
		add(t, c, one)
		if last, has := c.Last(); !has || last.Records != n {
			t.Fatalf("the last is of %d records, want %d", last.Records, n)
		}
	}
	again, err := ReadCheckpoints(files)
	if err != nil {
		t.Fatal(err)
	}
	inMemory, _ := c.After(0, 10_000)
	inFile, _ := again.After(0, 10_000)
	if len(inMemory) > mostCovered+20 || len(inFile) != len(inMemory) {
		t.Fatalf("%d in memory, %d in the file", len(inMemory), len(inFile))
	}
	for block := range uint64(4) {
		if at, _ := again.After((block+1)*blockRecords-step-1, 1); len(at) != 1 || at[0].Records != (block+1)*blockRecords-step {
			t.Errorf("the last checkpoint of block %d is gone: %+v", block, at)
		}
	}
}
