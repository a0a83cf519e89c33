package cell

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// device is a device in the list for tasks, such as "c 195:0". The field `allowed` says whether a task may open it.
type device struct {
	kind, number string
	allowed      bool
}

// devicesOf reads a list of devices in the form of [Limits].
func devicesOf(list string) (all []device) {
	for words := strings.Fields(list); len(words) >= 3; words = words[3:] {
		all = append(all, device{words[0], words[1], words[2] == "+"})
	}
	return all
}

// instruction is an instruction of an eBPF program (kernel's Documentation/bpf/standardization/instruction-set.rst).
type instruction struct {
	code      uint8
	registers uint8 // destination in the low four bits, source in the high four bits, on little-endian machines
	skip      int16 // number of instructions that a jump skips, or the offset of a read
	value     int32
}

// filterOf returns a program that refuses the devices that the list marks as not allowed, and allows all others. Each
// device takes five instructions.
func filterOf(list string) ([]instruction, error) {
	// The filter program gets three numbers about a device from the kernel. The first number has the kind of the device
	// in its low 16 bits. The second is the major number. The third is the minor number.
	read := func(to, at uint8) instruction {
		return instruction{unix.BPF_LDX | unix.BPF_MEM | unix.BPF_W, 1<<4 | to, int16(at), 0}
	}
	differs := func(register uint8, from uint64, skip int16) instruction {
		return instruction{unix.BPF_JMP | unix.BPF_JNE | unix.BPF_K, register, skip, int32(from)}
	}
	const set, exit = unix.BPF_ALU64 | unix.BPF_MOV | unix.BPF_K, unix.BPF_JMP | unix.BPF_EXIT
	program := []instruction{read(2, 0), {unix.BPF_ALU64 | unix.BPF_AND | unix.BPF_K, 2, 0, 0xffff}, read(3, 4), read(4, 8)}
	for _, d := range devicesOf(list) {
		if d.allowed {
			continue
		}
		first, second, _ := strings.Cut(d.number, ":")
		major, err := strconv.ParseUint(first, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("device %q: %w", d.number, err)
		}
		minor, err := strconv.ParseUint(second, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("device %q: %w", d.number, err)
		}
		kind := uint64(unix.BPF_DEVCG_DEV_CHAR)
		if d.kind == "b" {
			kind = unix.BPF_DEVCG_DEV_BLOCK
		}
		program = append(program, differs(2, kind, 4), differs(3, major, 3), differs(4, minor, 2), instruction{set, 0, 0, 0}, instruction{exit, 0, 0, 0})
	}
	return append(program, instruction{set, 0, 0, 1}, instruction{exit, 0, 0, 0}), nil
}

// filter is a program in the kernel that decides which devices the processes of a control group may open.
type filter int

// noFilter is the value for a group that has no filter.
const noFilter filter = -1

// newFilter loads a BPF program into the kernel. The program refuses the devices of the list that a task may not use.
func newFilter(list string) (filter, error) {
	program, err := filterOf(list)
	if err != nil {
		return noFilter, err
	}
	license := []byte("Apache-2.0\x00")
	load := struct {
		kind, count      uint32
		program, license uint64
		unused           [4]uint64
	}{kind: unix.BPF_PROG_TYPE_CGROUP_DEVICE, count: uint32(len(program)),
		program: uint64(uintptr(unsafe.Pointer(&program[0]))), license: uint64(uintptr(unsafe.Pointer(&license[0])))}
	fd, _, failed := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&load)), unsafe.Sizeof(load))
	runtime.KeepAlive(program)
	runtime.KeepAlive(license)
	if failed != 0 {
		return noFilter, fmt.Errorf("a filter of devices: %w", failed)
	}
	return filter(fd), nil
}

// attach makes the filter apply to a control group. The filters of the groups above this group still apply too.
func (f filter) attach(group *os.File) error {
	return f.call(unix.BPF_PROG_ATTACH, group, unix.BPF_F_ALLOW_MULTI)
}

// detach takes the filter off a group, and removes the filter.
func (f filter) detach(group *os.File) error {
	if f == noFilter {
		return nil
	}
	err := f.call(unix.BPF_PROG_DETACH, group, 0)
	f.close()
	return err
}

// close closes this process's descriptor of the filter. An attached filter exists as long as its group.
func (f filter) close() {
	if f != noFilter {
		_ = unix.Close(int(f))
	}
}

func (f filter) call(what uintptr, group *os.File, flags uint32) error {
	at := struct{ group, program, kind, flags uint32 }{uint32(group.Fd()), uint32(f), unix.BPF_CGROUP_DEVICE, flags}
	if _, _, failed := unix.Syscall(unix.SYS_BPF, what, uintptr(unsafe.Pointer(&at)), unsafe.Sizeof(at)); failed != 0 {
		return fmt.Errorf("a filter of devices: %w", failed)
	}
	return nil
}

func canFilter(dir string) bool {
	group, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer group.Close()
	f, err := newFilter("")
	if err != nil {
		return false
	}
	if err := f.attach(group); err != nil {
		f.close()
		return false
	}
	return f.detach(group) == nil
}
