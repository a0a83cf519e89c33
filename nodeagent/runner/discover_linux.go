package runner

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candor-grid/candor/messages"
)

// Discover finds what this machine has: the processors and the memory that this process may use,
// and the GPUs that nvidia-smi lists, if it is installed.
func Discover() Machine {
	m := Machine{CPUs: Processors(), Memory: Memory()}
	if path, err := exec.LookPath("nvidia-smi"); err == nil {
		m.GPUs = nvidiaGPUs(path)
	}
	return m
}

// Memory returns the memory of the machine, or the smaller limit of a control group, in bytes.
func Memory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	most := int64(info.Totalram) * int64(info.Unit)
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, _ := os.ReadFile(file)
		if bound, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && bound > 0 {
			most = min(most, bound)
		}
	}
	return most
}

// answersWithin is how long a program that tells of GPUs may take.
const answersWithin = 30 * time.Second

// nvidiaGPUs asks nvidia-smi for the GPUs; none if it fails.
func nvidiaGPUs(path string) []GPU {
	ctx, cancel := context.WithTimeout(context.Background(), answersWithin)
	defer cancel()
	text, err := exec.CommandContext(ctx, path, "--query-gpu=index,uuid,name,memory.total", "--format=csv,noheader").Output()
	if err != nil {
		return nil
	}
	return parseNvidia(string(text), minorOf)
}

// parseNvidia reads lines such as "0, GPU-1f2e, NVIDIA A100-SXM4-80GB, 81920 MiB". minor is the number of the file of a
// GPU with a UUID, which need not be its index.
func parseNvidia(text string, minor func(uuid string) (int, bool)) (list []GPU) {
	for line := range strings.Lines(text) {
		fields := strings.Split(line, ",")
		if len(fields) < 4 {
			continue
		}
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		index, err := strconv.Atoi(fields[0])
		if err != nil {
			continue
		}
		g := GPU{Index: index, ID: fields[1], Type: typeOf(fields[2])}
		if mebibytes, err := strconv.ParseInt(strings.TrimSuffix(fields[3], " MiB"), 10, 64); err == nil {
			g.Memory = mebibytes << 20
		}
		if n, ok := minor(g.ID); ok {
			g.Files = []string{"/dev/nvidia" + strconv.Itoa(n)}
		}
		list = append(list, g)
	}
	return list
}

// minorOf finds the device number of a GPU in the driver's files.
func minorOf(uuid string) (int, bool) {
	files, _ := filepath.Glob("/proc/driver/nvidia/gpus/*/information")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		if !strings.Contains(string(text), uuid) {
			continue
		}
		_, rest, ok := strings.Cut(string(text), "Device Minor:")
		line, _, _ := strings.Cut(rest, "\n")
		n, err := strconv.Atoi(strings.TrimSpace(line))
		return n, ok && err == nil
	}
	return 0, false
}

// typeOf derives from the name of a GPU the short type that people ask for: "a100" for "NVIDIA A100-SXM4-80GB".
func typeOf(name string) messages.Name {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == ' ' || r == '-' })
	for _, w := range words {
		if w != "nvidia" && w != "tesla" && w != "quadro" && w != "geforce" && messages.ValidFreeName(w) {
			return w
		}
	}
	return ""
}

// Processors returns the numbers of the processors that this process may use. They are sorted by
// memory node, package and core, so that neighbours share these.
func Processors() (list []int) {
	var mask unix.CPUSet
	if unix.SchedGetaffinity(0, &mask) != nil {
		return nil
	}
	place := map[int][3]int{}
	for c := range len(mask) * 64 {
		if mask.IsSet(c) {
			list = append(list, c)
			place[c] = placeOf(c)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int {
		p, q := place[a], place[b]
		return cmp.Or(slices.Compare(p[:], q[:]), cmp.Compare(a, b))
	})
	return list
}

// placeOf returns the memory node, the package and the core of a processor; zeros if the kernel
// does not tell.
func placeOf(c int) (place [3]int) {
	dir := "/sys/devices/system/cpu/cpu" + strconv.Itoa(c)
	nodes, _ := filepath.Glob(dir + "/node[0-9]*")
	if len(nodes) > 0 {
		place[0], _ = strconv.Atoi(strings.TrimPrefix(filepath.Base(nodes[0]), "node"))
	}
	for i, file := range []string{"physical_package_id", "core_id"} {
		text, _ := os.ReadFile(filepath.Join(dir, "topology", file))
		place[i+1], _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	return place
}
