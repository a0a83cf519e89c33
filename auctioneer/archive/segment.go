package archive

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/wire"
)

// magic is the first line of a segment's file.
const magic = "candor-jobs-1\n"

// A record has four parts: a mark, the length of its payload, the CRC-32C of length and payload, and the payload. The
// payload has the job's number, the length of its summary, the summary, and the body.
const (
	headerLen = 12
	mark      = "\xcajob"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// mostRecord is the maximum size of a payload, in bytes. Without it, a damaged length could use up the memory.
const mostRecord = 1 << 30

func encode(r *Record) ([]byte, error) {
	summary, err := wire.Marshal(&r.Summary, wire.Msgpack)
	if err != nil {
		return nil, err
	}
	b := append(make([]byte, 0, headerLen+12+len(summary)+len(r.Body)), mark...)
	n := 8 + 4 + len(summary) + len(r.Body)
	if n > mostRecord {
		return nil, fmt.Errorf("a record of %d bytes is above the limit of %d", n, mostRecord)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	b = append(b, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Summary.Job))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(summary)))
	b = append(append(b, summary...), r.Body...)
	binary.LittleEndian.PutUint32(b[8:], checksum(b))
	return b, nil
}

func checksum(record []byte) uint32 {
	return crc32.Update(crc32.Checksum(record[4:8], castagnoli), castagnoli, record[headerLen:])
}

// at returns the complete record at a position of a file, or nil.
func at(file []byte, from int) []byte {
	if len(file)-from < headerLen+12 || string(file[from:from+4]) != mark {
		return nil
	}
	n := int(binary.LittleEndian.Uint32(file[from+4:]))
	if n < 12 || n > len(file)-from-headerLen {
		return nil
	}
	record := file[from : from+headerLen+n]
	if checksum(record) != binary.LittleEndian.Uint32(record[8:]) || int(binary.LittleEndian.Uint32(record[headerLen+8:])) > n-12 {
		return nil
	}
	return record
}

func jobOf(record []byte) messages.JobID {
	return messages.JobID(binary.LittleEndian.Uint64(record[headerLen:]))
}

func split(record []byte) (summary, body []byte) {
	rest := record[headerLen+12:]
	n := binary.LittleEndian.Uint32(record[headerLen+8:])
	return rest[:n], rest[n:]
}

func decode(record []byte) (r Record, err error) {
	summary, body := split(record)
	r.Body = body
	return r, wire.Unmarshal(summary, wire.Msgpack, &r.Summary)
}

// each calls yield for each complete record of a file, with its position. It returns the end of the last record, and
// the positions of damaged parts.
func each(file []byte, yield func(from int, record []byte)) (end int, damage []int, err error) {
	if bytes.HasPrefix(file, []byte(magic)) {
		end = len(magic)
	} else if err := messages.CheckFormat("it", string(file[:min(len(file), len(magic))]), magic); err != nil {
		return 0, nil, err
	}
	for from := end; from < len(file); {
		if record := at(file, from); record != nil {
			if from > end {
				damage = append(damage, end)
			}
			yield(from, record)
			from += len(record)
			end = from
			continue
		}
		next := bytes.Index(file[from+1:], []byte(mark))
		if next < 0 {
			break
		}
		from += 1 + next
	}
	return end, damage, nil
}

// segment is what the archive knows about one file of records.
type segment struct {
	Number  uint64 // the file's number, also in its name
	Bytes   int64
	Records int
	// Spans are the numbers of the file's jobs, as intervals [first, last].
	Spans [][2]messages.JobID
	// Submitted is the earliest time at which a job of the file was submitted. Ended is the earliest time at which a
	// job of the file ended, and Last is the latest such time.
	Submitted, Ended, Last messages.Time
	Damage                 int // number of known positions without a record
}

// IsSegment reports whether a file of this name is a file of records.
func IsSegment(name string) bool { return strings.HasSuffix(name, suffix) }

const suffix = ".jobs"

func (s *segment) has(id messages.JobID) bool {
	i := s.spanOf(id)
	return i < len(s.Spans) && s.Spans[i][0] <= id
}

// A segment has the numbers of its jobs as spans (first and last number), in ascending order. spanOf returns the index
// of the first span that ends at `id` or later.
func (s *segment) spanOf(id messages.JobID) int {
	i, _ := slices.BinarySearchFunc(s.Spans, id, func(span [2]messages.JobID, id messages.JobID) int {
		if span[1] < id {
			return -1
		}
		return 1
	})
	return i
}

// note adds a job to the numbers and times of the file.
func (s *segment) note(j *job.JobSummary, size int) {
	if s.Records == 0 {
		s.Submitted, s.Ended, s.Last = j.Submitted, j.Ended, j.Ended
	}
	s.Submitted, s.Ended, s.Last = min(s.Submitted, j.Submitted), min(s.Ended, j.Ended), max(s.Last, j.Ended)
	s.Records, s.Bytes = s.Records+1, s.Bytes+int64(size)
	s.span(j.Job)
}

func (s *segment) span(id messages.JobID) {
	i := s.spanOf(id)
	before := i > 0 && s.Spans[i-1][1]+1 == id
	after := i < len(s.Spans) && id+1 == s.Spans[i][0]
	switch {
	case i < len(s.Spans) && s.Spans[i][0] <= id:
	case before && after:
		s.Spans[i-1][1] = s.Spans[i][1]
		s.Spans = slices.Delete(s.Spans, i, i+1)
	case before:
		s.Spans[i-1][1] = id
	case after:
		s.Spans[i][0] = id
	default:
		s.Spans = slices.Insert(s.Spans, i, [2]messages.JobID{id, id})
	}
}

func (s *segment) lose(id messages.JobID) {
	if !s.has(id) {
		return
	}
	i := s.spanOf(id)
	span := s.Spans[i]
	var rest [][2]messages.JobID
	if span[0] < id {
		rest = append(rest, [2]messages.JobID{span[0], id - 1})
	}
	if id < span[1] {
		rest = append(rest, [2]messages.JobID{id + 1, span[1]})
	}
	s.Spans = slices.Replace(s.Spans, i, i+1, rest...)
}

func (s *segment) newest() messages.JobID {
	if len(s.Spans) == 0 {
		return 0
	}
	return s.Spans[len(s.Spans)-1][1]
}

func (s *segment) oldest() messages.JobID {
	if len(s.Spans) == 0 {
		return 0
	}
	return s.Spans[0][0]
}

func survey(number uint64, file []byte) (s *segment, damage []int, err error) {
	s = &segment{Number: number, Bytes: int64(len(magic))}
	end, damage, err := each(file, func(_ int, record []byte) {
		if r, err := decode(record); err == nil {
			s.note(&r.Summary, 0)
		}
	})
	s.Bytes, s.Damage = int64(end), len(damage)
	return s, damage, err
}
