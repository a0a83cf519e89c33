package users

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
)

// Registry gives numbers to accounts, and records them in a file. Several processes may use the same file.
type Registry struct {
	path  string
	among Range

	mu    sync.Mutex
	known map[messages.Name]uint32
}

// Open returns a registry that keeps its numbers in a file. The numbers are in the range `among`. The file is made when
// the first account gets a number.
func Open(path string, among Range) *Registry {
	return &Registry{path: path, among: among, known: map[messages.Name]uint32{}}
}

// Number returns the number of an account, and gives it one if it has none.
func (r *Registry) Number(account messages.Name) (uint32, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, ok := r.known[account]; ok {
		return n, nil
	}
	if account == "" || strings.ContainsAny(account, " \t\r\n") {
		return 0, messages.Errorf(messages.Invalid, "account %q: cannot be given a user number", account)
	}
	n, err := r.give(account)
	if err != nil {
		return 0, err
	}
	r.known[account] = n
	return n, nil
}

// give returns the account's number in the file. If there is none, it adds a line with a free number.
func (r *Registry) give(account messages.Name) (uint32, error) {
	file, err := os.OpenFile(r.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return 0, messages.Errorf(messages.Unavailable, "user numbers: %v", err)
	}
	defer file.Close()
	if err := lock(file); err != nil {
		return 0, messages.Errorf(messages.Unavailable, "user numbers: %s: %v", r.path, err)
	}
	numbers, end, err := read(file)
	if err != nil {
		return 0, messages.Errorf(messages.Unavailable, "user numbers: %s: %v", r.path, err)
	}
	if n, ok := numbers[account]; ok && r.among.Contains(n) {
		return n, nil
	}
	n, err := r.free(account, numbers)
	if err != nil {
		return 0, err
	}
	_, err = file.WriteAt(line(n, account), end)
	if err = errors.Join(err, file.Sync()); err != nil {
		return 0, messages.Errorf(messages.Unavailable, "user numbers: %v", err)
	}
	return n, nil
}

func lock(file *os.File) error {
	for {
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}

// read reads the file up to its last complete line. A crash may have cut off the last line. Its number was not used
// yet, so the line can be ignored.
func read(file io.Reader) (numbers map[messages.Name]uint32, end int64, err error) {
	numbers = map[messages.Name]uint32{}
	lines := bufio.NewReader(file)
	for {
		text, err := lines.ReadString('\n')
		if err == io.EOF {
			return numbers, end, nil
		}
		if err != nil {
			return nil, 0, err
		}
		account, n, ok := parse(text)
		if !ok {
			return nil, 0, fmt.Errorf("line %q is damaged, so that another account could get the same user number; restore the file from a copy, or correct the line", text)
		}
		numbers[account] = n
		end += int64(len(text))
	}
}

// line returns an account's line, with a checksum. If the number or the name is damaged, the checksum shows it.
// Otherwise, a damaged number could give two accounts the same user.
func line(n uint32, account messages.Name) []byte {
	content := fmt.Sprintf("%d %s", n, account)
	return fmt.Appendf(nil, "%s #%08x\n", content, crc32.ChecksumIEEE([]byte(content)))
}

func parse(text string) (account messages.Name, n uint32, ok bool) {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return "", 0, false
	}
	number, err := strconv.ParseUint(fields[0], 10, 32)
	return fields[1], uint32(number), err == nil && text == string(line(uint32(number), fields[1]))
}

// free returns an unused number for a new account.
func (r *Registry) free(account messages.Name, numbers map[messages.Name]uint32) (uint32, error) {
	taken := map[uint32]bool{}
	for _, n := range numbers {
		taken[n] = true
	}
	h := fnv.New64a()
	h.Write([]byte(account))
	from := h.Sum64() % r.among.Size()
	for i := range r.among.Size() {
		if n := r.among.First + uint32((from+i)%r.among.Size()); !taken[n] {
			return n, nil
		}
	}
	return 0, messages.Errorf(messages.Exhausted, "account %s: all %d user numbers of %v belong to other accounts; widen the range tasks.user", account, r.among.Size(), r.among)
}
