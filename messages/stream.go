package messages

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// VerbStream is the verb of a node's agent for streams: StreamRequest → StreamReply.
const VerbStream = "stream"

// StreamSubject returns the subject of an account's requests to a node's agent for streams.
func StreamSubject(site, node, account Name) string {
	return strings.Join([]string{"candor", site, NodeAgent, VerbStream, node, account}, ".")
}

// Interactive streams the standard input and output of a task to and from its owner. Without it, the input is empty
// and the output is a log.
type Interactive struct {
	Terminal bool `json:"terminal,omitempty"` // the streams are a terminal
	Rows     int  `json:"rows,omitempty"`     // rows of the terminal
	Columns  int  `json:"columns,omitempty"`
	// Linger is how long the process goes on after its client's last request; 0: 5 minutes.
	Linger Duration `json:"linger,omitempty"`
	// Idle is how long the process goes on without input or output; 0: no limit.
	Idle Duration `json:"idle,omitempty"`
}

// DefaultLinger is how long a task waits for a lost client.
const DefaultLinger = Duration(5 * time.Minute)

// MaxStreamPiece is the largest number of bytes of one request or reply, and of the buffer for each direction.
const MaxStreamPiece = 256 << 10

// MaxWindow is the largest number of rows or columns of a terminal.
const MaxWindow = 10_000

// validate checks the fields of i; nil is valid.
func (i *Interactive) validate(path string) error {
	switch {
	case i == nil:
		return nil
	case i.Rows < 0 || i.Columns < 0 || i.Rows > MaxWindow || i.Columns > MaxWindow:
		return Errorf(Invalid, "%s: %d rows and %d columns must be from 0 to %d", path, i.Rows, i.Columns, MaxWindow)
	case i.Linger < 0 || i.Idle < 0:
		return Errorf(Invalid, "%s: linger and idle must not be negative; leave them out for the default", path)
	}
	return nil
}

// StreamBegin is a process or connection that a client starts next to a running task: a command in
// the task's cell, or a connection to a port in the task's network.
type StreamBegin struct {
	Command     []string    `json:"command,omitempty"`
	Port        int         `json:"port,omitempty"`
	Interactive Interactive `json:"interactive"`
	Term        string      `json:"term,omitempty"` // the kind of terminal, for the variable TERM of the command
}

// StreamRequest is one exchange between a client and a stream. Each direction is a sequence of bytes with positions
// from 0 on, so a repeated request has no further effect. A node buffers at most [MaxStreamPiece] bytes that the
// reader has not taken yet. So a slow reader slows the writer down.
type StreamRequest struct {
	Attempt Attempt `json:"attempt"`
	// Stream names the stream that Begin starts; "": the task's own stream.
	Stream string       `json:"stream,omitempty"`
	Begin  *StreamBegin `json:"begin,omitempty"`
	// Client identifies the client. With Take, the client replaces the previous one, whose later requests are
	// refused. Without Client, the request can only send a signal.
	Client string `json:"client,omitempty"`
	Take   bool   `json:"take,omitempty"`
	// Input is the bytes of the input from position InputAt on. InputEnd says that the input ends after these bytes.
	Input    []byte `json:"input,omitempty"`
	InputAt  int64  `json:"input_at,omitempty"`
	InputEnd bool   `json:"input_end,omitempty"`
	// Poll asks for output and errors from these positions on. The client has received everything before them.
	Poll     bool  `json:"poll,omitempty"`
	OutputAt int64 `json:"output_at,omitempty"`
	ErrorsAt int64 `json:"errors_at,omitempty"`
	// Wait is how long to wait for output, or for room for the input; at most 1 s.
	Wait Duration `json:"wait,omitempty"`
	// Signal is a name such as INT. The signal goes to the processes of the task, or to the command of a stream. If a
	// client sends two signals with the same number (above 0), the second is ignored.
	Signal       string `json:"signal,omitempty"`
	SignalNumber uint64 `json:"signal_number,omitempty"`
	SignalFirst  bool   `json:"signal_first,omitempty"` // only to the task's first process, the script
	SignalRest   bool   `json:"signal_rest,omitempty"`  // only to ranks that srun has started
	Rows         int    `json:"rows,omitempty"`         // the new size of the terminal
	Columns      int    `json:"columns,omitempty"`
	// Close says that the client no longer needs the stream. The process that Begin started is then ended.
	Close bool `json:"close,omitempty"`
}

// StreamReply is what a node sends to the client of a stream.
type StreamReply struct {
	InputNext int64  `json:"input_next"` // the position of the first byte of input that was not taken
	Output    []byte `json:"output,omitempty"`
	OutputAt  int64  `json:"output_at"` // position of the first byte of Output
	Errors    []byte `json:"errors,omitempty"`
	ErrorsAt  int64  `json:"errors_at"`
	// Ended says that the process has ended, and that nothing follows Output and Errors.
	Ended    bool `json:"ended,omitempty"`
	ExitCode int  `json:"exit_code"`
}

// Validate checks the fields of a request.
func (r *StreamRequest) Validate() error {
	if b := r.Begin; b != nil {
		switch {
		case r.Stream == "":
			return Errorf(Invalid, "stream: is missing; name the stream that begins")
		case (len(b.Command) == 0) == (b.Port == 0):
			return Errorf(Invalid, "begin: needs either a command or a port")
		case b.Port < 0 || b.Port > 65535:
			return Errorf(Invalid, "begin.port: %d is no port; give one from 1 to 65535", b.Port)
		case len(b.Command) > MaxArguments:
			return Errorf(TooLarge, "begin.command: %d words are more than the limit of %d", len(b.Command), MaxArguments)
		}
		if err := b.Interactive.validate("begin.interactive"); err != nil {
			return err
		}
	}
	window := Interactive{Rows: r.Rows, Columns: r.Columns}
	switch {
	case r.Client == "" && r.Signal == "":
		return Errorf(Invalid, "client: is missing; choose a random name for each client")
	case len(r.Stream) > MaxKey || len(r.Client) > MaxKey:
		return Errorf(TooLarge, "stream: its name and the client's name have at most %d bytes", MaxKey)
	case len(r.Input) > MaxStreamPiece:
		return Errorf(TooLarge, "input: %d bytes are more than the limit of %d for one request", len(r.Input), MaxStreamPiece)
	case r.InputAt < 0 || r.OutputAt < 0 || r.ErrorsAt < 0:
		return Errorf(Invalid, "positions must not be negative")
	}
	if r.Signal != "" {
		if err := checkSignal("signal", r.Signal); err != nil {
			return err
		}
	}
	return window.validate("window")
}

// signals are the names of the signals that users may send to tasks.
var signals = []string{"HUP", "INT", "QUIT", "ABRT", "KILL", "USR1", "USR2", "ALRM", "TERM", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "WINCH"}

// checkSignal returns an error unless a name is one of signals.
func checkSignal(path, name string) error {
	if !slices.Contains(signals, name) {
		return Errorf(Invalid, "%s: %q is not one of %s", path, clip(name), strings.Join(signals, ", "))
	}
	return nil
}

// ParseSignal reads a signal that users may send: "USR1", "SIGUSR1", "usr1" or "10". It returns the name.
func ParseSignal(text string) (string, error) {
	name := strings.TrimPrefix(strings.ToUpper(text), "SIG")
	if number, err := strconv.Atoi(name); err == nil {
		name = signalNumbers[number]
	}
	if !slices.Contains(signals, name) {
		return "", Errorf(Invalid, "signal %s: is not one of %s", clip(text), strings.Join(signals, ", "))
	}
	return name, nil
}

// signalNumbers are the names of signals by their Linux numbers, which users may write.
var signalNumbers = map[int]string{1: "HUP", 2: "INT", 3: "QUIT", 6: "ABRT", 9: "KILL", 10: "USR1", 12: "USR2", 14: "ALRM", 15: "TERM",
	18: "CONT", 19: "STOP", 20: "TSTP", 21: "TTIN", 22: "TTOU", 23: "URG", 24: "XCPU", 28: "WINCH"}

// Signals reports whether a request only sends a signal, and reads or starts nothing.
func (r *StreamRequest) Signals() bool {
	return r.Signal != "" && r.Client == "" && r.Stream == "" && r.Begin == nil && !r.Poll && !r.Take
}
