package jobs

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
)

// logOutput takes the pieces of a task's output.
type logOutput interface {
	piece(messages.LogsReply) error
	io.Closer
}

// lockedWriter writes whole pieces of one task at a time.
type lockedWriter struct {
	mu    *sync.Mutex
	to    io.Writer
	wrote *bool // set when there is something to write
}

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*w.wrote = *w.wrote || len(b) > 0
	return w.to.Write(b)
}

// missing returns a line in place of output that was not kept.
func missing(p messages.LogsReply) string {
	return "[candor: " + terminal.Plural(int(p.Missing), "byte") + " of the output are missing here: the site keeps no more of one output]\n"
}

// rawOutput writes bytes as they are.
type rawOutput struct {
	to   io.Writer
	open bool // the last line has no end yet
}

func (o *rawOutput) piece(p messages.LogsReply) error {
	data := p.Data
	if p.Missing > 0 {
		line := missing(p)
		if o.open {
			line = "\n" + line
		}
		data = append([]byte(line), data...)
	}
	if len(data) > 0 {
		o.open = data[len(data)-1] != '\n'
	}
	_, err := o.to.Write(data)
	return err
}

// Close has nothing left to write.
func (o *rawOutput) Close() error { return nil }

// jsonOutput writes each reply of the node on a line, with the attempt that
// it belongs to.
type jsonOutput struct {
	to     io.Writer
	task   messages.TaskStatus
	stderr bool
}

func (o *jsonOutput) piece(p messages.LogsReply) error {
	if len(p.Data) == 0 && p.Missing == 0 && !p.End {
		return nil
	}
	line, err := json.Marshal(struct {
		Task    messages.TaskRef `json:"task"`
		Attempt uint32           `json:"attempt"`
		Node    messages.Name    `json:"node"`
		Stderr  bool             `json:"stderr"`
		messages.LogsReply
	}{o.task.Task, o.task.Attempt, o.task.Node, o.stderr, p})
	if err != nil {
		return err
	}
	_, err = o.to.Write(append(line, '\n'))
	return err
}

// Close has nothing left to write.
func (o *jsonOutput) Close() error { return nil }

// maxLine is the length in bytes at which a line without an end is cut.
const maxLine = 64 << 10

// lineOutput writes whole lines behind a prefix, so that lines of several
// tasks may mix but never break.
type lineOutput struct {
	to     io.Writer
	prefix string
	rest   []byte // a line that has not ended yet
}

func (o *lineOutput) piece(p messages.LogsReply) error {
	var whole bytes.Buffer
	if p.Missing > 0 {
		if len(o.rest) > 0 {
			o.flush(&whole)
		}
		o.rest = append(o.rest, missing(p)...)
		o.flush(&whole)
	}
	for line := range bytes.Lines(p.Data) {
		o.rest = append(o.rest, line...)
		if o.rest[len(o.rest)-1] == '\n' || len(o.rest) >= maxLine {
			o.flush(&whole)
		}
	}
	_, err := o.to.Write(whole.Bytes())
	return err
}

// flush writes the rest of the current line.
func (o *lineOutput) flush(b *bytes.Buffer) {
	b.WriteString(o.prefix)
	b.Write(bytes.TrimSuffix(o.rest, []byte("\n")))
	b.WriteByte('\n')
	o.rest = o.rest[:0]
}

// Close writes a last line that had no end.
func (o *lineOutput) Close() error {
	if len(o.rest) == 0 {
		return nil
	}
	var last bytes.Buffer
	o.flush(&last)
	_, err := o.to.Write(last.Bytes())
	return err
}
