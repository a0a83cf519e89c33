package jobs

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
)

type logOutput interface {
	piece(agent.LogsReply) error
	io.Closer
}

// lockedWriter writes to an output that several tasks share. It writes each piece whole, so the pieces of two tasks do
// not mix.
type lockedWriter struct {
	mu    *sync.Mutex
	to    io.Writer
	wrote *bool // becomes true when something is written
}

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*w.wrote = *w.wrote || len(b) > 0
	return w.to.Write(b)
}

// missing returns a line that is printed in place of output that the node did not keep.
func missing(p agent.LogsReply) string {
	return "[candor: " + terminal.Plural(int(p.Missing), "byte") + " of the output are missing here: the site limits the size of an output]\n"
}

type rawOutput struct {
	to   io.Writer
	open bool // the last line has no line end yet
}

func (o *rawOutput) piece(p agent.LogsReply) error {
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

// Close does nothing: everything is written already.
func (o *rawOutput) Close() error { return nil }

// jsonOutput writes each reply of the node as one line of JSON, with the attempt.
type jsonOutput struct {
	to     io.Writer
	task   job.TaskStatus
	stderr bool
}

func (o *jsonOutput) piece(p agent.LogsReply) error {
	if len(p.Data) == 0 && p.Missing == 0 && !p.End {
		return nil
	}
	line, err := json.Marshal(struct {
		Task    messages.TaskRef `json:"task"`
		Attempt uint32           `json:"attempt"`
		Node    messages.Name    `json:"node"`
		Stderr  bool             `json:"stderr"`
		agent.LogsReply
	}{o.task.Task, o.task.Attempt, o.task.Node, o.stderr, p})
	if err != nil {
		return err
	}
	_, err = o.to.Write(append(line, '\n'))
	return err
}

// Close does nothing: everything is written already.
func (o *jsonOutput) Close() error { return nil }

// maxLine is the largest length of a line in bytes. A longer line is cut.
const maxLine = 64 << 10

// lineOutput writes whole lines with a prefix. Lines of several tasks may mix.
type lineOutput struct {
	to     io.Writer
	prefix string
	rest   []byte // the beginning of a line that has not ended yet
}

func (o *lineOutput) piece(p agent.LogsReply) error {
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

func (o *lineOutput) flush(b *bytes.Buffer) {
	b.WriteString(o.prefix)
	b.Write(bytes.TrimSuffix(o.rest, []byte("\n")))
	b.WriteByte('\n')
	o.rest = o.rest[:0]
}

// Close writes the last line of the output if this line does not end with a newline.
func (o *lineOutput) Close() error {
	if len(o.rest) == 0 {
		return nil
	}
	var last bytes.Buffer
	o.flush(&last)
	_, err := o.to.Write(last.Bytes())
	return err
}
