package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/candor-grid/candor/messages"
)

// memoryResult has the memory of the site after each quarter of the jobs.
type memoryResult struct {
	Begin  memoryUse `json:"begin"`
	First  memoryUse `json:"first"`
	Second memoryUse `json:"second"`
	Third  memoryUse `json:"third"`
	Fourth memoryUse `json:"fourth"`

	// StopSeconds is how long the site takes to stop after the last job. StartSeconds is how long the stopped site
	// takes to start again, until it accepts jobs.
	StopSeconds  float64 `json:"stop_seconds"`
	StartSeconds float64 `json:"start_seconds"`
}

type memoryUse struct {
	Jobs     int    `json:"jobs"`
	HeapMiB  uint64 `json:"heap_mib"` // after a garbage collection
	InUseMiB string `json:"in_use"`   // memory of the process, as the kernel counts it
	DiskMiB  int64  `json:"disk_mib"` // size of the site's state
}

func memoryFlags(c *cobra.Command) {
	c.Flags().Int("jobs", 200_000, "jobs to run, of one task each")
	c.Flags().String("heapprofiles", "", "write a heap profile after each quarter to this directory")
}

// memory runs jobs of one task each. It measures the process's memory after each quarter of the jobs, and a restart at
// the end.
func memory(ctx context.Context, c *cobra.Command) (any, error) {
	n, err := positive(c, "jobs")
	if err != nil {
		return nil, err
	}
	profiles, err := c.Flags().GetString("heapprofiles")
	if err != nil {
		return nil, err
	}
	g, err := open(ctx, 8, 32, instantRunner)
	if err != nil {
		return nil, err
	}
	defer g.stop()
	var r memoryResult
	if r.Begin, err = g.memory(0, profiles); err != nil {
		return nil, err
	}
	ran := 0
	for i, use := range []*memoryUse{&r.First, &r.Second, &r.Third, &r.Fourth} {
		upTo := n[0] * (i + 1) / 4
		err := inParallel(ctx, upTo-ran, 64, func(number int) error {
			for {
				id, err := g.submitKey(ctx, fmt.Sprint(ran+number), 1, "/bin/true", fmt.Sprint(number))
				if err == nil {
					err = g.done(ctx, id)
				}
				if ctx.Err() != nil || !messages.KindOf(err).Retriable() {
					return err
				}
			}
		})
		if err != nil {
			return nil, err
		}
		ran = upTo
		if *use, err = g.memory(ran, profiles); err != nil {
			return nil, err
		}
	}
	return r, g.restart(&r)
}

func (g *grid) restart(r *memoryResult) error {
	began := time.Now()
	if err := errors.Join(g.bus.Close(), g.Site.Close()); err != nil {
		return err
	}
	stopped := time.Now()
	site, err := g.again()
	if err != nil {
		return err
	}
	r.StopSeconds, r.StartSeconds = stopped.Sub(began).Seconds(), time.Since(stopped).Seconds()
	g.Site = site
	g.bus, err = site.Connect(g.user)
	return err
}

func (g *grid) memory(jobs int, profiles string) (use memoryUse, err error) {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	use = memoryUse{Jobs: jobs, HeapMiB: m.HeapAlloc >> 20, InUseMiB: "unknown"}
	status, _ := os.ReadFile("/proc/self/status") // the file exists only on Linux
	for line := range strings.Lines(string(status)) {
		if size, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			use.InUseMiB = strings.TrimSpace(size)
		}
	}
	err = filepath.Walk(g.dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			use.DiskMiB += info.Size()
		}
		return nil // a file may be removed meanwhile
	})
	use.DiskMiB >>= 20
	if err != nil || profiles == "" {
		return use, err
	}
	f, err := os.Create(filepath.Join(profiles, fmt.Sprintf("heap-%d", jobs)))
	if err != nil {
		return use, err
	}
	if err := pprof.Lookup("heap").WriteTo(f, 0); err != nil {
		return use, err
	}
	return use, f.Close()
}
