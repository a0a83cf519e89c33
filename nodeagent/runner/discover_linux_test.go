package runner

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// TestNvidiaIsRead: the forms are those of nvidia-smi's page; the number of a file need not be the index.
func TestNvidiaIsRead(t *testing.T) {
	text := "0, GPU-a, NVIDIA A100-SXM4-80GB, 81920 MiB\n1, GPU-b, Tesla V100-PCIE-16GB, [N/A]\nNo devices were found\n"
	got := parseNvidia(text, func(uuid string) (int, bool) { return 3, uuid == "GPU-a" })
	want := []GPU{{Index: 0, ID: "GPU-a", Type: "a100", Memory: 80 << 30, Files: []string{"/dev/nvidia3"}}, {Index: 1, ID: "GPU-b", Type: "v100"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestDiscoverAsksTheProgram: what a program called nvidia-smi says is what the machine has; one that fails has none.
func TestDiscoverAsksTheProgram(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	file := filepath.Join(dir, "nvidia-smi")
	for body, want := range map[string]int{"echo '0, GPU-a, NVIDIA L4, 23034 MiB'; echo '1, GPU-b, NVIDIA L4, 23034 MiB'": 2, "echo '0, GPU-a, NVIDIA L4, 1 MiB'; exit 9": 0} {
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		m := Discover()
		if len(m.GPUs) != want || len(m.CPUs) == 0 || m.Memory < 1<<20 {
			t.Errorf("%s: %+v", body, m)
		}
	}
}
