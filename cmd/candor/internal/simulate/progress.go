package simulate

import (
	"fmt"
	"io"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
)

// Progress shows on a terminal how far a run is, and how long it will take; on
// anything else, nothing.
type Progress struct {
	block *terminal.Block // nil: no terminal
	what  string
	began time.Time // of the step
	drawn time.Time
	width int
}

// NewProgress shows it on out, if that is a terminal.
func NewProgress(out io.Writer) *Progress {
	if !terminal.IsTerminal(out) {
		return &Progress{}
	}
	width, _ := terminal.Size(out)
	return &Progress{block: &terminal.Block{Out: out}, width: width}
}

// Step begins another part of the work.
func (p *Progress) Step(what string) {
	p.what, p.began = what, time.Now()
	p.draw(what)
}

// At says how much of the step is done.
func (p *Progress) At(done, of int) {
	const often = 100 * time.Millisecond
	if p.block == nil || time.Since(p.drawn) < often || of == 0 {
		return
	}
	p.draw(line(p.what, float64(done)/float64(of), time.Since(p.began)))
}

// line is a bar with the time left, at the pace so far.
func line(what string, part float64, took time.Duration) string {
	left := ""
	if part > 0 && part < 1 {
		left = terminal.Span(time.Duration(float64(took)*(1-part)/part)) + " left"
	}
	return fmt.Sprintf("%s %s %s  %s", terminal.Bar(part, 24), terminal.Percent(part), left, what)
}

func (p *Progress) draw(text string) {
	if p.block == nil {
		return
	}
	p.drawn = time.Now()
	p.block.Draw(terminal.Clip(text, p.width))
}

// End removes what was shown.
func (p *Progress) End() {
	if p.block != nil {
		p.block.Clear()
	}
}
