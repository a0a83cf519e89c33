package simulate

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
)

// Progress shows how much of a run is done, and the time left. On a terminal it changes one line. Elsewhere it writes a
// line after ten seconds, then one each minute.
type Progress struct {
	out   io.Writer
	block *terminal.Block // nil means the output is no terminal
	width int
	ended chan struct{} // closed by End

	mu       sync.Mutex
	what     string
	done, of int       // number of finished parts, and number of all parts (0 if unknown)
	began    time.Time // start of the step, or of its current round
	at       time.Time // time at which done was last set
	due      time.Time // time at which the next line is due
}

// These are the times from one printed line of progress to the next, or from the start to the first line.
const (
	redrawn   = 100 * time.Millisecond // on a terminal, if done has changed
	kept      = time.Second            // on a terminal, if done has not changed
	firstLine = 10 * time.Second       // elsewhere, before the first line
	furtherOn = time.Minute
)

// NewProgress starts to show the progress on out. It stops at End.
func NewProgress(out io.Writer) *Progress {
	p := newProgress(out, terminal.IsTerminal(out), time.Now())
	go func() {
		tick := time.NewTicker(kept)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				p.show(now)
			case <-p.ended:
				return
			}
		}
	}()
	return p
}

func newProgress(out io.Writer, isTerminal bool, now time.Time) *Progress {
	p := &Progress{out: out, ended: make(chan struct{}), began: now, due: now.Add(firstLine)}
	if isTerminal {
		p.block, p.due = &terminal.Block{Out: out}, now
		p.width, _ = terminal.Size(out)
	}
	return p
}

// Step begins the next step of the work.
func (p *Progress) Step(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.what, p.done, p.of, p.began, p.at = what, 0, 0, now, now
	if p.block != nil {
		p.draw(now)
	}
}

// At sets the progress of the step. The arguments are the numbers of finished parts and of all parts. If fewer are
// finished than before, a new round begins.
func (p *Progress) At(done, of int) { p.set(done, of, time.Now()) }

func (p *Progress) set(done, of int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if done < p.done {
		p.began = p.at
	}
	if p.done, p.of, p.at = done, of, now; p.block != nil && !now.Before(p.due) {
		p.draw(now)
	}
}

// show writes a line if the time for the next line has come. It does so even if no work was finished since the last
// line.
func (p *Progress) show(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !now.Before(p.due) {
		p.draw(now)
	}
}

// draw writes the line of progress. The caller holds p.mu.
func (p *Progress) draw(now time.Time) {
	select {
	case <-p.ended:
		return
	default:
	}
	text := p.what
	switch took := now.Sub(p.began); {
	case p.of > 0:
		text = line(p.what, float64(p.done)/float64(p.of), took)
	case took >= kept:
		text += ", " + terminal.Span(took) + " so far"
	}
	if p.block == nil {
		p.due = now.Add(furtherOn)
		fmt.Fprintln(p.out, text)
		return
	}
	p.due = now.Add(redrawn)
	p.block.Draw(terminal.Clip(text, p.width))
}

// line returns a line about the progress: a bar, the part that is done, and the estimated time left. If nothing is done
// yet, the line has the time that has passed instead.
func line(what string, part float64, took time.Duration) string {
	left := ""
	switch {
	case part <= 0 && took >= kept:
		left = terminal.Span(took) + " so far"
	case part > 0 && part < 1:
		left = terminal.Span(time.Duration(float64(took)*(1-part)/part)) + " left"
	}
	return fmt.Sprintf("%s %s %s  %s", terminal.Bar(part, 24), terminal.Percent(part), left, what)
}

// End removes the line of progress from a terminal. No other method may be called after End.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.block != nil {
		p.block.Clear()
	}
	close(p.ended)
}
