package agent

import (
	"strings"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// StreamSubject returns the subject of an account's requests to a node's agent for streams.
func StreamSubject(site, node, account messages.Name) string {
	return strings.Join([]string{"candor", site, messages.NodeAgent, messages.VerbStream, node, account}, ".")
}

// DefaultLinger is how long a task waits for a lost client.
const DefaultLinger = messages.Duration(5 * time.Minute)

// MaxStreamPiece is the largest number of bytes of one request or reply, and of the buffer for each direction.
const MaxStreamPiece = 256 << 10

// StreamBegin is what a client starts next to a running task: a command in the task's cell, or a connection to a port
// in the task's network.
type StreamBegin struct {
	Command     []string        `json:"command,omitempty"`
	Port        int             `json:"port,omitempty"`
	Interactive job.Interactive `json:"interactive"`
	Term        string          `json:"term,omitempty"` // the kind of terminal, for the variable TERM of the command
}

// StreamRequest is one exchange between a client and a stream. Each direction is a sequence of bytes with positions
// from 0 on, so a repeated request has no further effect. A node buffers at most [MaxStreamPiece] bytes that the reader
// has not taken, so a slow reader slows the writer down.
type StreamRequest struct {
	Attempt messages.Attempt `json:"attempt"`
	// Stream names the stream that Begin starts; "" means the task's own stream.
	Stream string       `json:"stream,omitempty"`
	Begin  *StreamBegin `json:"begin,omitempty"`
	// Client identifies the client that sends the request. If the field Take is true, this client replaces the previous
	// client, and later requests of the previous client are refused. If the field Client is empty, the request can only
	// send a signal.
	Client string `json:"client,omitempty"`
	Take   bool   `json:"take,omitempty"`
	// Input has bytes of the process's input. The first of them has the position InputAt in the whole input. InputEnd
	// says that the input ends after these bytes.
	Input    []byte `json:"input,omitempty"`
	InputAt  int64  `json:"input_at,omitempty"`
	InputEnd bool   `json:"input_end,omitempty"`
	// Poll asks for output and errors. The output begins at the position OutputAt, and the errors begin at the position
	// ErrorsAt. The client has received everything before these positions.
	Poll     bool  `json:"poll,omitempty"`
	OutputAt int64 `json:"output_at,omitempty"`
	ErrorsAt int64 `json:"errors_at,omitempty"`
	// Wait is how long to wait for output, or for room for the input; at most 1 s.
	Wait messages.Duration `json:"wait,omitempty"`
	// Signal is a name such as INT. The signal goes to the processes of the task, or to the command of a stream.
	// SignalNumber numbers the signals of a client. A second signal of a client with the same number (above 0) is
	// ignored.
	Signal       string `json:"signal,omitempty"`
	SignalNumber uint64 `json:"signal_number,omitempty"`
	SignalFirst  bool   `json:"signal_first,omitempty"` // only to the task's first process, the script
	SignalRest   bool   `json:"signal_rest,omitempty"`  // only to processes that srun has started
	Rows         int    `json:"rows,omitempty"`         // the new size of the terminal
	Columns      int    `json:"columns,omitempty"`
	// Close is true if the client no longer needs the stream. A process that Begin started is then ended.
	Close bool `json:"close,omitempty"`
}

// StreamReply is what a node sends to the client of a stream.
type StreamReply struct {
	InputNext int64  `json:"input_next"` // the position of the first byte of input that was not taken
	Output    []byte `json:"output,omitempty"`
	OutputAt  int64  `json:"output_at"` // position of the first byte of Output
	Errors    []byte `json:"errors,omitempty"`
	ErrorsAt  int64  `json:"errors_at"`
	// Ended is true if the process has ended, and no output will follow the bytes in Output and Errors.
	Ended    bool `json:"ended,omitempty"`
	ExitCode int  `json:"exit_code"`
}

// Validate checks the fields of a request.
func (r *StreamRequest) Validate() error {
	if b := r.Begin; b != nil {
		switch {
		case r.Stream == "":
			return messages.Errorf(messages.Invalid, "stream: is missing; name the stream that begins")
		case (len(b.Command) == 0) == (b.Port == 0):
			return messages.Errorf(messages.Invalid, "begin: needs either a command or a port")
		case b.Port < 0 || b.Port > 65535:
			return messages.Errorf(messages.Invalid, "begin.port: %d is no port; give one from 1 to 65535", b.Port)
		case len(b.Command) > job.MaxArguments:
			return messages.Errorf(messages.TooLarge, "begin.command: %d words are more than the limit of %d", len(b.Command), job.MaxArguments)
		}
		if err := b.Interactive.Validate("begin.interactive"); err != nil {
			return err
		}
	}
	window := job.Interactive{Rows: r.Rows, Columns: r.Columns}
	switch {
	case r.Client == "" && r.Signal == "":
		return messages.Errorf(messages.Invalid, "client: is missing; choose a random name for each client")
	case len(r.Stream) > messages.MaxKey || len(r.Client) > messages.MaxKey:
		return messages.Errorf(messages.TooLarge, "stream: the stream's name and the client's name may each have at most %d bytes", messages.MaxKey)
	case len(r.Input) > MaxStreamPiece:
		return messages.Errorf(messages.TooLarge, "input: %d bytes are more than the limit of %d for one request", len(r.Input), MaxStreamPiece)
	case r.InputAt < 0 || r.OutputAt < 0 || r.ErrorsAt < 0:
		return messages.Errorf(messages.Invalid, "positions must not be negative")
	}
	if r.Signal != "" {
		if err := job.CheckSignal("signal", r.Signal); err != nil {
			return err
		}
	}
	return window.Validate("window")
}

// Signals reports whether a request only sends a signal, and reads or starts nothing.
func (r *StreamRequest) Signals() bool {
	return r.Signal != "" && r.Client == "" && r.Stream == "" && r.Begin == nil && !r.Poll && !r.Take
}
