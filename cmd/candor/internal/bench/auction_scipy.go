package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// scipyScript reads a matrix of doubles, and prints the least time of some runs
// of a matching of the largest weight, which is its first argument wide.
const scipyScript = `
import sys, time
import numpy
from scipy.optimize import linear_sum_assignment
m, runs = int(sys.argv[1]), int(sys.argv[2])
weights = numpy.frombuffer(sys.stdin.buffer.read(), dtype="<f8").reshape(m, m)
least = float("inf")
for _ in range(runs):
    began = time.perf_counter()
    linear_sum_assignment(weights, maximize=True)
    least = min(least, time.perf_counter() - began)
print(repr(least))
`

// scipyLimit bounds how long scipy may take for all runs of a matrix.
const scipyLimit = 90 * time.Second

// scipySeconds is how long scipy takes for the same matching, without prices; 0
// where python3 or scipy is not installed, or takes too long.
func scipySeconds(m, runs int, weights []float64) float64 {
	var matrix bytes.Buffer
	if err := binary.Write(&matrix, binary.LittleEndian, weights); err != nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), scipyLimit)
	defer cancel()
	// The first python3 of a path need not be the system's, which packages are for.
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		c := exec.CommandContext(ctx, python, "-c", scipyScript, strconv.Itoa(m), strconv.Itoa(runs))
		c.Stdin = bytes.NewReader(matrix.Bytes())
		out, err := c.Output()
		if err != nil {
			continue
		}
		if seconds, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64); err == nil {
			return seconds
		}
	}
	return 0
}
