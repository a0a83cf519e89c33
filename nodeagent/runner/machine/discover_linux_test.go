package machine

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestNvidiaIsRead reads the formats that the manual of nvidia-smi shows. The number in the name of a device file may
// differ from the GPU's index.
func TestNvidiaIsRead(t *testing.T) {
	text := "0, GPU-a, NVIDIA A100-SXM4-80GB, 81920 MiB\n1, GPU-b, Tesla V100-PCIE-16GB, [N/A]\nNo devices were found\n"
	got := parseNvidia(text, func(uuid string) (int, bool) { return 3, uuid == "GPU-a" })
	want := []GPU{{Index: 0, ID: "GPU-a", Type: "a100", Memory: 80 << 30, Files: []string{"/dev/nvidia3"}}, {Index: 1, ID: "GPU-b", Type: "v100"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestAMDIsRead reads the output of two versions of rocm-smi.
func TestAMDIsRead(t *testing.T) {
	got := parseAMD([]byte(`{"card1": {"Unique ID": "0x62ff", "Card series": "AMD Instinct MI250X"}, "card0": {"Unique ID": "N/A", "Card Series": "Radeon Pro VII"}, "system": {"Driver version": "6.1"}}`))
	want := []GPU{{Index: 0, Type: "pro", AMD: true}, {Index: 1, ID: "GPU-62ff", Type: "mi250x", AMD: true}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func scriptFile(t *testing.T, body string) string {
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestAProgramOfTheSiteSaysWhichGPUsThereAre reads GPUs from a site's program, and checks that wrong output gives a
// clear error.
func TestAProgramOfTheSiteSaysWhichGPUsThereAre(t *testing.T) {
	m, err := Discover(scriptFile(t, `echo '[{"index": 3, "uuid": "GPU-a", "type": "a100", "files": ["/dev/nvidia3"]}, {"index": 4, "amd": true}]'`))
	want := []GPU{{Index: 3, ID: "GPU-a", Type: "a100", Files: []string{"/dev/nvidia3"}}, {Index: 4, AMD: true}}
	if err != nil || !reflect.DeepEqual(m.GPUs, want) {
		t.Errorf("%+v, %v; want %+v", m.GPUs, err, want)
	}
	for body, says := range map[string]string{
		"exit 3":                                          "exit status 3; run the program by hand",
		"echo no":                                         "the program must print a JSON list such as",
		`echo '[{"index": 0, "uid": "x"}]'`:               `unknown field "uid"`,
		`echo '[{"index": 0}, {"index": 0}]'`:             "index 0: each GPU needs a number of its own",
		`echo '[{"index": 0, "type": "a 100"}]'`:          `type "a 100": must be a name`,
		`echo '[{"index": 0, "files": ["/etc/shadow"]}]'`: `file "/etc/shadow": must be below /dev`,
	} {
		if _, err := Discover(scriptFile(t, body)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want: %s", body, err, says)
		}
	}
	if _, err := Discover("/nowhere/gpus"); err == nil || !strings.Contains(err.Error(), "gpus.program: /nowhere/gpus: ") {
		t.Error(err)
	}
}

func TestAHealthProgramSaysWhatIsWrong(t *testing.T) {
	g := GPU{Index: 2, ID: "GPU-b"}
	for body, want := range map[string]string{"exit 0": "", "echo $1 $2 is hot; echo more; exit 1": "2 GPU-b is hot", "exit 1": "exit status 1"} {
		if got := g.Check(scriptFile(t, body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// TestDiscoverAsksTheProgram runs a script named nvidia-smi. Discover must return the GPUs that the script prints, and
// none if the script fails.
func TestDiscoverAsksTheProgram(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	file := filepath.Join(dir, "nvidia-smi")
	for body, want := range map[string]int{"echo '0, GPU-a, NVIDIA L4, 23034 MiB'; echo '1, GPU-b, NVIDIA L4, 23034 MiB'": 2, "echo '0, GPU-a, NVIDIA L4, 1 MiB'; exit 9": 0} {
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		m, _ := Discover("")
		if len(m.GPUs) != want || len(m.CPUs) == 0 || m.Memory < 1<<20 {
			t.Errorf("%s: %+v", body, m)
		}
	}
}
