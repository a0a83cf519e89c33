package launch

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// refusedCalls are system calls for administrators, or for programs that look into other programs. Tasks do not need
// these calls, and kernels had security holes in them. Without the filter, a task could make its own user namespace,
// and use many of these calls there.
var refusedCalls = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_ACCT, unix.SYS_REBOOT, unix.SYS_SYSLOG,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_SETNS,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}

// ownThreadCalls are exceptions from the refused calls. The threads that start tasks need them to enter the namespaces
// and the root of the next task. A task gains nothing from these calls, because it has no capabilities.
var ownThreadCalls = map[uint32]bool{unix.SYS_SETNS: true, unix.SYS_CHROOT: true}

// The filter refuses some calls. Container runtimes make some of these calls inside their own namespaces.
// namespaceCalls lists them. A task that may make namespaces may also make these calls. Outside its own namespaces the
// task has no capabilities, so there the kernel refuses the calls.
var namespaceCalls = map[uint32]bool{
	unix.SYS_MOUNT: true, unix.SYS_UMOUNT2: true, unix.SYS_PIVOT_ROOT: true, unix.SYS_OPEN_TREE: true, unix.SYS_MOVE_MOUNT: true,
	unix.SYS_MOUNT_SETATTR: true, unix.SYS_SETHOSTNAME: true, unix.SYS_SETDOMAINNAME: true,
}

// refusedFamilies are kinds of sockets that tasks do not need. One reaches the hypervisor of a virtual machine, which
// trusts every process of the machine. The other reaches the kernel's ciphers, which had security holes.
var refusedFamilies = []uint32{unix.AF_VSOCK, unix.AF_ALG}

// These are the offsets, in bytes, of the fields of the structure seccomp_data, which a seccomp filter reads.
const (
	offsetNumber   = 0
	offsetArch     = 4
	offsetFirstArg = 16 // low half, on a little-endian machine
)

// Rules are the calls that the filter of a thread must allow.
type Rules struct {
	// Clones is true if tasks are started by the call clone3. The filter must then allow clone3 with all flags, because
	// it cannot read them: they are in memory and not in a register.
	Clones bool
	// Namespaces is true if tasks may make user namespaces. A task then also gets the filter [noClone3].
	Namespaces bool
}

// refusedSpaces returns the flags of clone and unshare that are refused.
func (may Rules) refusedSpaces() uint32 {
	if may.Namespaces { // unbounded namespaces, or namespaces that reach large parts of the kernel
		return unix.CLONE_NEWNET | unix.CLONE_NEWIPC
	}
	return unix.CLONE_NEWUSER
}

// knownArch returns the number that the kernel uses in filters for this kind of processor.
func knownArch() (arch uint32, ok bool) {
	arch, ok = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	return arch, ok
}

// noClone3 is a filter that answers clone3 with "no such call". C libraries then use clone, whose flags a filter can
// see.
var noClone3 = sync.OnceValue(func() *unix.SockFprog {
	arch, ok := knownArch()
	if !ok {
		return nil
	}
	const answer, equal, load = unix.BPF_RET | unix.BPF_K, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	program := []unix.SockFilter{
		{Code: load, K: offsetArch}, {Code: equal, Jf: 3, K: arch},
		{Code: load, K: offsetNumber}, {Code: equal, Jf: 1, K: unix.SYS_CLONE3},
		{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}, {Code: answer, K: unix.SECCOMP_RET_ALLOW},
	}
	return &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
})

// callFilter returns a filter that refuses some system calls, by the site's rules `may`. It returns nil if there is no
// filter for this kind of processor. The filter also refuses 32-bit programs, because they could use calls of other
// architectures and bypass the filter.
func callFilter(may Rules) []unix.SockFilter {
	arch, ok := knownArch()
	if !ok {
		return nil
	}
	const refused = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	const unknown = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	// equal makes an instruction of the filter. The instruction compares two values: the value that was loaded last,
	// and k. If they are equal, the filter continues with the next instruction. Otherwise it skips `skip` instructions.
	equal := func(k uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: skip, K: k}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }

	program := []unix.SockFilter{
		load(offsetArch), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: arch}, answer(unknown),
		load(offsetNumber),
	}
	if runtime.GOARCH == "amd64" { // the numbers of x32 calls begin at 0x40000000
		program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jf: 1, K: 0x40000000}, answer(unknown))
	}
	for _, call := range refusedCalls {
		if !ownThreadCalls[call] && !(may.Namespaces && namespaceCalls[call]) {
			program = append(program, equal(call, 1), answer(refused))
		}
	}
	if !may.Clones { // without clone3, libraries use clone
		program = append(program, equal(unix.SYS_CLONE3, 1), answer(unknown))
	}
	program = append(program, equal(unix.SYS_SOCKET, uint8(2*len(refusedFamilies)+2)), load(offsetFirstArg))
	for _, family := range refusedFamilies {
		program = append(program, equal(family, 1), answer(refused))
	}
	program = append(program, answer(unix.SECCOMP_RET_ALLOW))
	for _, call := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		program = append(program, equal(call, 4), load(offsetFirstArg),
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jf: 1, K: may.refusedSpaces()},
			answer(refused), answer(unix.SECCOMP_RET_ALLOW))
	}
	return append(program, answer(unix.SECCOMP_RET_ALLOW))
}
