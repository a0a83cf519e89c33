package mutz

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/candor-grid/candor/cmd/lab/internal/study"
)

type series struct {
	Name   string    `json:"name"`
	At     []float64 `json:"at"`
	Millis []float64 `json:"ms"`
}

// A measurement is the shortest time of several runs. If the runs take too long, there are fewer of them. Each run
// repeats the work often enough for the precision of the clock.
const (
	measurements  = 4
	measuredTotal = 500 * time.Millisecond
	clockTells    = 3 * time.Millisecond
)

// The method time measures some work and adds the measured time to a series. This time is processor time of this
// process, so other work on the machine does not count.
func (f *failure) time(s *series, at float64, work func() error) {
	if f.err != nil {
		return
	}
	runs, total, least := 1, time.Duration(0), time.Duration(math.MaxInt64)
	for k := 0; k < measurements && (k == 0 || total < measuredTotal); {
		began := processorTime()
		for range runs {
			if err := work(); err != nil {
				f.err = fmt.Errorf("%s at %g: %w", s.Name, at, err)
				return
			}
		}
		took := processorTime() - began
		total += took
		if took < clockTells && k == 0 {
			runs *= 2
			continue
		}
		least = min(least, took/time.Duration(runs))
		k++
	}
	s.At, s.Millis = append(s.At, at), append(s.Millis, max(least, 1).Seconds()*1000)
}

// timeAll does the same as the method `time`, for work that cannot fail.
func (f *failure) timeAll(s *series, at float64, work func()) {
	f.time(s, at, func() error { work(); return nil })
}

// processorTime returns this process's processor time, in steps of a microsecond.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err) // the call fails only for invalid arguments
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// power assumes that the time is proportional to a power of the size, and returns the exponent of the best fit. It uses
// only the sizes from the median on.
func (s *series) power() float64 {
	var x, y []float64
	for k := (len(s.At) - 1) / 2; k < len(s.At); k++ {
		x, y = append(x, math.Log(s.At[k])), append(y, math.Log(s.Millis[k]))
	}
	_, slope := stat.LinearRegression(x, y, nil, false)
	return slope
}

func (s *series) last() float64 { return s.Millis[len(s.Millis)-1] }

// at returns the time that was measured for the size x. It returns NaN if this size was not measured.
func (s *series) at(x float64) float64 {
	if k := slices.Index(s.At, x); k >= 0 {
		return s.Millis[k]
	}
	return math.NaN()
}

// timePlot draws series. If `log` is true, both axes are logarithmic. A time that grows as a power of the size is then
// a straight line.
func timePlot(name, label string, log bool, of ...*series) *study.Figure {
	p := study.NewFigure(name, label, "milliseconds")
	p.X.Log, p.Y.Log = log, log
	for k, s := range of {
		p.Line(s.Name, k, s.At, s.Millis)
	}
	return p
}

func timeTable(p *study.Page, label string, of ...*series) {
	head, rows := []string{label}, [][]string{}
	for _, s := range of {
		head = append(head, s.Name+", ms")
	}
	var points []float64 // the points of all series
	for _, s := range of {
		points = append(points, s.At...)
	}
	slices.Sort(points)
	for _, x := range slices.Compact(points) {
		row := []string{fmt.Sprintf("%g", x)}
		for _, s := range of {
			row = append(row, strings.TrimPrefix(fmt.Sprintf("%.3g", s.at(x)), "NaN"))
		}
		rows = append(rows, row)
	}
	p.Table(head, rows)
}
