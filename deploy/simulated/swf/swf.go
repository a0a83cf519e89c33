// Package swf reads job logs in the Standard Workload Format, version 2. The Parallel Workloads Archive uses this
// format. A log begins with header lines, which begin with ';'. Then it has a line of 18 numbers for each job. A log
// may be gzipped; its unpacked size is bounded. It has at most 10,000,000 jobs.
//
// Unknown fields are −1 in a log, and also in a Job. The headers of logs are often wrong, so they are kept as text.
package swf

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/candor-grid/candor/messages/spelling"
)

const (
	fields     = 18
	maxLine    = 1 << 16
	mostJobs   = 10_000_000
	mostHeader = 10_000 // largest number of header lines
)

// A gzipped log may unpack to at most 16 MiB or 32 times its compressed size, whichever is larger. The logs of the
// Parallel Workloads Archive unpack to 6 to 13 times their compressed size.
const (
	unpackedFloor = 16 << 20
	unpackedTimes = 32
)

var errUnpacked = fmt.Errorf("the gzipped log unpacks to more than %d times its size and more than %d MiB: if you trust the log, unpack the log first", unpackedTimes, unpackedFloor>>20)

// unpacking reads the content of a gzipped log, up to its limit.
type unpacking struct {
	packed   *counting
	text     io.Reader
	unpacked int64
}

func (u *unpacking) Read(p []byte) (int, error) {
	n, err := u.text.Read(p)
	if u.unpacked += int64(n); u.unpacked > max(unpackedFloor, unpackedTimes*u.packed.bytes) {
		return 0, errUnpacked
	}
	return n, err
}

type counting struct {
	r     io.Reader
	bytes int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.bytes += int64(n)
	return n, err
}

// Job is a line of a log, without the fields that no study reads. Durations are in seconds. Times are in seconds from
// the log's beginning. −1 means unknown.
type Job struct {
	Line       int // line of the file, from 1
	Number     int64
	Submit     int64
	Wait       int64
	Run        int64
	Processors int64 // allocated processors
	AskedFor   int64 // requested processors
	Limit      int64 // requested run time
	Memory     int64 // requested memory for each processor, in KiB
	User       int64
	Group      int64
	Queue      int64
}

// Width returns the number of allocated processors. If it is unknown, Width returns the number of requested processors.
// If both are unknown, the result is not positive.
func (j *Job) Width() int64 {
	if j.Processors > 0 {
		return j.Processors
	}
	return j.AskedFor
}

// Log is a whole log, with its jobs in the order of the file.
type Log struct {
	Header []string // header lines without ';' and spaces around them
	Jobs   []Job
	Bad    Bad // lines that ReadSkipping left out
}

// Bad counts the lines of a log that were skipped.
type Bad struct {
	Lines int
	First error // error of the first skipped line; nil: no line was skipped
	Cut   bool  // the file ends in the middle of a line or of its compressed data; the rest is lost
}

func (b *Bad) add(err error) {
	if b.Lines++; b.First == nil {
		b.First = err
	}
}

// Value returns the value of a key in the header, such as MaxProcs.
func (l *Log) Value(key string) (string, bool) {
	for _, line := range l.Header {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v), true
		}
	}
	return "", false
}

// Number returns the whole number at the beginning of a header's value, such as 1664 in "1664 (72, 1368, 224)".
func (l *Log) Number(key string) (int64, bool) {
	text, _ := l.Value(key)
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(text[:end], 10, 64)
	return n, err == nil
}

// Read reads a log, gzipped or not. An error names the line.
func Read(r io.Reader) (*Log, error) { return open(r, false) }

// ReadSkipping reads a log as Read does, but leaves out lines with errors and counts them. A log without any good line
// is still an error.
func ReadSkipping(r io.Reader) (*Log, error) { return open(r, true) }

func open(r io.Reader, skip bool) (*Log, error) {
	packed := &counting{r: r}
	b := bufio.NewReaderSize(packed, 1<<16)
	if magic, err := b.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("the log is not a valid gzip file: %w", err)
		}
		b = bufio.NewReaderSize(&unpacking{packed: packed, text: z}, 1<<16)
		if magic, err := b.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
			return nil, errors.New("the log is gzipped twice: unpack it once")
		}
	}
	if err := plain(b); err != nil {
		return nil, err
	}
	return read(b, skip)
}

// plain checks that a text is not in UTF-16, and skips a byte order mark at its beginning.
func plain(b *bufio.Reader) error {
	head, _ := b.Peek(3)
	switch {
	case bytes.Equal(head, []byte("\xef\xbb\xbf")):
		_, err := b.Discard(3)
		return err
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")),
		len(head) > 1 && (head[0] == 0 && printed(head[1]) || head[1] == 0 && printed(head[0])):
		return errors.New("line 1: the log is text in UTF-16: convert it to ASCII or UTF-8")
	}
	return nil
}

func printed(c byte) bool { return c >= ' ' && c <= '~' }

func read(r io.Reader, skip bool) (*Log, error) {
	log := &Log{}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 1<<12), maxLine)
	number := 0
	for lines.Scan() {
		number++
		line := bytes.TrimSpace(lines.Bytes())
		switch {
		case len(line) == 0:
		case line[0] == ';' && bytes.IndexByte(line, '\r') < 0:
			if len(log.Header) == mostHeader {
				return nil, fmt.Errorf("line %d: the log has more than %d header lines", number, mostHeader)
			}
			log.Header = append(log.Header, string(bytes.TrimSpace(line[1:])))
		default:
			if len(log.Jobs) == mostJobs {
				return nil, fmt.Errorf("line %d: the log has more than %d jobs", number, mostJobs)
			}
			j := Job{Line: number}
			if err := j.parse(line); err != nil {
				err = fmt.Errorf("line %d: %w", number, err)
				if !skip {
					if !lines.Scan() && lines.Err() != nil { // the last line is incomplete
						return log.end(lines.Err(), number-1, false)
					}
					return nil, err
				}
				log.Bad.add(err)
				continue
			}
			log.Jobs = append(log.Jobs, j)
		}
	}
	return log.end(lines.Err(), number, skip)
}

// end completes a Log after a number of lines. err is the error with which the reading ended.
func (l *Log) end(err error, lines int, skip bool) (*Log, error) {
	if err != nil {
		switch {
		case errors.Is(err, errUnpacked):
			return nil, fmt.Errorf("after line %d: %w", lines, err)
		case errors.Is(err, io.ErrUnexpectedEOF):
			err = errors.New("the file is cut off: its gzip stream has no end")
		case errors.Is(err, bufio.ErrTooLong):
			err = fmt.Errorf("the next line is longer than %d bytes", maxLine)
		}
		err = fmt.Errorf("after line %d: %w", lines, err)
		if !skip {
			return nil, err
		}
		l.Bad.add(err)
		l.Bad.Cut = true
	}
	if len(l.Jobs) == 0 {
		err := fmt.Errorf("the log has no jobs in its %s", spelling.Number(lines, "line", "lines"))
		if l.Bad.First != nil {
			err = fmt.Errorf("%w; %w", err, l.Bad.First)
		}
		return nil, err
	}
	return l, nil
}

// parse reads a job line. Every field but the CPU time is a whole number.
func (j *Job) parse(line []byte) error {
	var unread int64
	whole := [...]*int64{&j.Number, &j.Submit, &j.Wait, &j.Run, &j.Processors, nil, &unread, &j.AskedFor, &j.Limit,
		&j.Memory, &unread, &j.User, &j.Group, &unread, &j.Queue, &unread, &unread, &unread}
	if bytes.IndexByte(line, '\r') >= 0 {
		return errors.New("the line has a carriage return in its middle: lines must end with a newline")
	}
	n := 0
	for rest := line; len(rest) > 0; n++ {
		var field []byte
		field, rest = cut(rest)
		if n >= fields {
			continue
		}
		var err error
		if whole[n] == nil {
			var cpu float64
			if cpu, err = strconv.ParseFloat(string(field), 64); cpu != cpu {
				err = strconv.ErrSyntax
			}
		} else {
			*whole[n], err = strconv.ParseInt(string(field), 10, 64)
		}
		if err != nil {
			what := "a number"
			if x, bad := strconv.ParseFloat(string(field), 64); bad == nil && x == x && whole[n] != nil {
				what = "a whole number of 64 bits"
			}
			return fmt.Errorf("field %d is not %s: %.40q", n+1, what, field)
		}
	}
	if n != fields {
		return fmt.Errorf("the line has %d fields, not %d", n, fields)
	}
	return nil
}

func cut(line []byte) (field, rest []byte) {
	i := bytes.IndexAny(line, " \t")
	if i < 0 {
		return line, nil
	}
	return line[:i], bytes.TrimLeft(line[i:], " \t")
}
