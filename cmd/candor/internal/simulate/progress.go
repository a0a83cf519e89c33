package simulate

import (
	"fmt"
	"io"
	"time"

	"github.com/candor-grid/candor/cmd/candor/internal/terminal"
)

// progress shows on a terminal how far a run is, and how long it will take; on
// anything else, nothing.
type progress struct {
	block *terminal.Block // nil: no terminal
	what  string
	began time.Time // of the step
	drawn time.Time
	width int
}

func newProgress(out io.Writer) *progress {
	if !terminal.IsTerminal(out) {
		return &progress{}
	}
	width, _ := terminal.Size(out)
	return &progress{block: &terminal.Block{Out: out}, width: width}
}

// step begins another part of the work.
func (p *progress) step(what string) {
	p.what, p.began = what, time.Now()
	p.draw(what)
}

// at says how much of the step is done.
func (p *progress) at(done, of int) {
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

func (p *progress) draw(text string) {
	if p.block == nil {
		return
	}
	p.drawn = time.Now()
	p.block.Draw(terminal.Clip(text, p.width))
}

func (p *progress) end() {
	if p.block != nil {
		p.block.Clear()
	}
}
