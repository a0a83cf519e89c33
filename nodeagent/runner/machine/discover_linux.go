package machine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
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

// Discover finds what this machine has: the processors and the memory that this process may use, and the GPUs. The site
// can have its own program that prints the GPUs; its path is `program`. If `program` is empty, nvidia-smi and rocm-smi
// list the GPUs.
func Discover(program string) (m Machine, err error) {
	m = Machine{CPUs: Processors(), Memory: Memory()}
	if program != "" {
		m.GPUs, err = printedGPUs(program)
		return m, err
	}
	m.GPUs = append(nvidiaGPUs(), amdGPUs()...)
	return m, nil
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

// answersWithin bounds the run time of a program that lists GPUs.
const answersWithin = 30 * time.Second

// output runs a program and returns what it prints. The program is killed after answersWithin.
func output(program string, arguments ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answersWithin)
	defer cancel()
	c := exec.CommandContext(ctx, program, arguments...)
	c.WaitDelay = time.Second // children of the program may keep the pipe open
	text, err := c.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("the program did not end within %v", answersWithin)
	}
	return text, err
}

// printedGPUs returns the GPUs that a program of the site prints as JSON.
func printedGPUs(program string) (list []GPU, err error) {
	wrong := func(format string, args ...any) error {
		return messages.Errorf(messages.Invalid, "gpus.program: %s: "+format, append([]any{program}, args...)...)
	}
	text, err := output(program)
	if err != nil {
		return nil, wrong("%v; run the program by hand on this machine", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		return nil, wrong("%v: the program must print a JSON list such as [{\"index\": 0, \"uuid\": \"GPU-1f2e\", \"type\": \"a100\", \"files\": [\"/dev/nvidia0\"]}], or []", err)
	}
	seen := map[int]bool{}
	for _, g := range list {
		switch {
		case g.Index < 0 || seen[g.Index]:
			return nil, wrong("index %d: each GPU needs a number of its own, from 0", g.Index)
		case g.Type != "" && !messages.ValidFreeName(g.Type):
			return nil, wrong("GPU %d: type %q: must be a name of letters, digits, '.', '-' and '_'", g.Index, g.Type)
		}
		for _, file := range g.Files {
			if !strings.HasPrefix(file, "/dev/") {
				return nil, wrong("GPU %d: file %q: must be below /dev", g.Index, file)
			}
		}
		seen[g.Index] = true
	}
	return list, nil
}

// amdGPUs asks rocm-smi for the GPUs; it returns none if rocm-smi is not installed or fails.
func amdGPUs() []GPU {
	path, err := exec.LookPath("rocm-smi")
	if err != nil {
		return nil
	}
	text, err := output(path, "--showproductname", "--showuniqueid", "--json")
	if err != nil {
		return nil
	}
	return parseAMD(text)
}

// parseAMD reads an object such as {"card0": {"Unique ID": "0x62ff1f5f9ba6a8fb", "Card Series": "Instinct MI250X"}}.
// Versions of rocm-smi write the names of fields in different cases.
func parseAMD(text []byte) (list []GPU) {
	var cards map[string]map[string]string
	if json.Unmarshal(text, &cards) != nil {
		return nil
	}
	for card, fields := range cards {
		index, err := strconv.Atoi(strings.TrimPrefix(card, "card"))
		if err != nil {
			continue
		}
		g := GPU{Index: index, AMD: true}
		for name, value := range fields {
			switch strings.ToLower(name) {
			case "unique id":
				if id, ok := strings.CutPrefix(value, "0x"); ok {
					g.ID = "GPU-" + id // the form that ROCR_VISIBLE_DEVICES uses
				}
			case "card series":
				g.Type = typeOf(value)
			}
		}
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b GPU) int { return cmp.Compare(a.Index, b.Index) })
	return list
}

// Check runs a program of the site that tests the GPU, with the GPU's index and UUID as arguments. It returns the
// program's first line about a fault, or "".
func (g *GPU) Check(program string) string {
	text, err := output(program, strconv.Itoa(g.Index), g.ID)
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return cmp.Or(line, err.Error())
}

// nvidiaGPUs asks nvidia-smi for the GPUs; it returns none if nvidia-smi is not installed or fails.
func nvidiaGPUs() []GPU {
	path, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nil
	}
	text, err := output(path, "--query-gpu=index,uuid,name,memory.total", "--format=csv,noheader")
	if err != nil {
		return nil
	}
	return parseNvidia(string(text), minorOf)
}

// parseNvidia reads lines such as "0, GPU-1f2e, NVIDIA A100-SXM4-80GB, 81920 MiB". The function `minor` gets the UUID
// of a GPU and returns the number of its device file. This number may differ from the index.
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

// typeOf derives the short type that people ask for from the name of a GPU: "a100" for "NVIDIA A100-SXM4-80GB".
func typeOf(name string) messages.Name {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == ' ' || r == '-' })
	for _, w := range words {
		if w != "nvidia" && w != "amd" && w != "instinct" && w != "radeon" && w != "tesla" && w != "quadro" && w != "geforce" && messages.ValidFreeName(w) {
			return w
		}
	}
	return ""
}

// Processors returns the numbers of the processors that this process may use, sorted by memory node, package and core.
// Neighbours in the list are close to one another in the machine.
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

// placeOf returns the memory node, the package and the core of a processor. If the kernel does not tell these numbers,
// the result has zeros.
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
