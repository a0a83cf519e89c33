package market

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/candor-grid/candor/messages"
)

// VerbWindow adds or removes a maintenance window: WindowRequest → Window; operators.
const VerbWindow = "window"

// Window is a period in which nodes are kept free for maintenance. A task that would still run when the window begins,
// by its time limit, does not start on these nodes. During the window, these nodes take no tasks.
type Window struct {
	ID    uint32          `json:"id"`
	Nodes []messages.Name `json:"nodes"`
	From  messages.Time   `json:"from"`
	To    messages.Time   `json:"to"`
	// Notice is how long tasks may continue after the window has begun. If it is left out, they run until they end.
	Notice *messages.Duration `json:"notice,omitempty"`
	Reason string             `json:"reason,omitempty"` // shown to everybody
}

// WindowRequest adds a window, or removes the window with this number.
type WindowRequest struct {
	Add    *Window `json:"add,omitempty"`
	Remove uint32  `json:"remove,omitempty"`
}

// These are bounds on the number of maintenance windows, and on the nodes of one window.
const (
	MaxWindows     = 100
	MaxWindowNodes = 10_000
	// WindowAhead is the longest time from now to the end of a window. A later end is most likely a mistyped year.
	WindowAhead = messages.Duration(366 * 24 * time.Hour)
)

// Validate returns an error for the first fault of a request.
func (r *WindowRequest) Validate() error {
	w := r.Add
	switch {
	case (w == nil) == (r.Remove == 0):
		return messages.Errorf(messages.Invalid, "add: a request must either add a window, or give the number of a window to remove")
	case w == nil:
		return nil
	case len(w.Nodes) == 0 || len(w.Nodes) > MaxWindowNodes:
		return messages.Errorf(messages.Invalid, "nodes: a window is for 1 to %d nodes, not %d", MaxWindowNodes, len(w.Nodes))
	case w.To <= w.From:
		return messages.Errorf(messages.Invalid, "to: %v is not after the beginning, %v", w.To, w.From)
	case w.Notice != nil && *w.Notice < 0:
		return messages.Errorf(messages.Invalid, "notice: %v must not be negative", *w.Notice)
	case len(w.Reason) > MaxDrainReason || !utf8.ValidString(w.Reason):
		return messages.Errorf(messages.Invalid, "reason: must be at most %d bytes of text", MaxDrainReason)
	}
	if i := slices.IndexFunc(w.Nodes, func(n messages.Name) bool { return !messages.ValidName(n) }); i >= 0 {
		return messages.BadName("nodes", w.Nodes[i])
	}
	return nil
}
