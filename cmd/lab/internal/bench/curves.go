package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/messages"
)

// curve has the results of one measurement. The measurement was repeated for several sizes, for example on 1, 10 and
// 100 nodes.
type curve struct {
	Over   string  `json:"over"` // the size that grows: slots, nodes, or jobs that wait
	Points []point `json:"points"`
}

type point struct {
	Size   int                `json:"size"`
	Values map[string]float64 `json:"values"`
}

// growth describes a curve to measure: the growing quantity, the command line for a size, and the numbers to draw.
type growth struct {
	over  string
	sizes string
	run   func(size int) []string
	drawn [][2]string
}

var growths = []growth{
	{"slots", "2,8,32,128,1024", func(n int) []string {
		return []string{"processes", "--rounds=1", "--tasks=4000", fmt.Sprint("--parallel=", n)}
	},
		[][2]string{{"tasks_per_second", "processes a second"}}},
	{"nodes", "1,10,100,1000,10000", func(n int) []string {
		return []string{"scale", "--jobs=10000", "--batch=100", "--for=5s", fmt.Sprint("--agents=", n)}
	}, scaleDrawn},
	{"waiting", "100,1000,10000,100000,1000000", func(n int) []string {
		return []string{"scale", "--agents=1000", "--batch=100", "--for=5s", fmt.Sprint("--jobs=", n)}
	}, scaleDrawn},
}

var scaleDrawn = [][2]string{{"tasks_per_second", "tasks a second"}, {"submissions_per_second", "submissions a second"},
	{"task_cpu_us", "µs of the site for a task"}, {"submission_cpu_us", "µs of the site for a submission"},
	{"heap_bytes", "bytes of heap"}, {"start_p99_ms", "ms from claim to start, 99th percentile"}}

func curvesFlags(c *cobra.Command) {
	c.Flags().String("dir", "curves", "directory for curves.json and curves.svg")
	for _, g := range growths {
		c.Flags().String(g.over, g.sizes, "sizes to measure at, or none")
	}
}

type curvesResult struct {
	Points int    `json:"points"`
	JSON   string `json:"json"`
	SVG    string `json:"svg"`
}

// growthCurves runs measurements for growing sizes, each in a separate process, and draws the results.
func growthCurves(ctx context.Context, c *cobra.Command) (any, error) {
	dir, err := c.Flags().GetString("dir")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var all []curve
	r := curvesResult{JSON: filepath.Join(dir, "curves.json"), SVG: filepath.Join(dir, "curves.svg")}
	for _, g := range growths {
		sizes, err := sizesOf(c, g.over)
		if err != nil {
			return nil, err
		}
		made := curve{Over: g.over}
		for _, n := range sizes {
			values, err := measure(ctx, g.run(n))
			if err != nil {
				return nil, fmt.Errorf("%s %d: %w", g.over, n, err)
			}
			made.Points = append(made.Points, point{n, values})
		}
		r.Points += len(made.Points)
		all = append(all, made)
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, err
	}
	return r, cmp.Or(os.WriteFile(r.JSON, append(text, '\n'), 0o644), os.WriteFile(r.SVG, []byte(draw(all)), 0o644))
}

func sizesOf(c *cobra.Command, flag string) (sizes []int, err error) {
	text, err := c.Flags().GetString(flag)
	if err != nil || text == "none" {
		return nil, err
	}
	for _, field := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 1 {
			return nil, messages.Errorf(messages.Invalid, "--%s: %q is not a whole number from 1 on; write sizes like 2,8,32, or none", flag, field)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

func measure(ctx context.Context, arguments []string) (map[string]float64, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := exec.CommandContext(ctx, self, append(append([]string{"bench"}, arguments...), "--json")...)
	p.Stderr = os.Stderr
	out, err := p.Output()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	return values, json.Unmarshal(out, &values)
}
