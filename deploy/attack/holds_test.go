package attack

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The programs in this file run in several tasks that together try to use more than one task may, or try to leave
// something behind.

// passing is the name of a socket. Through it, a task passes something to another task of its account.
const passing = "@candor-attack-passing"

// pass passes file descriptors to another task, and returns when that task has them.
func pass(fds ...int) error {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: passing, Net: "unix"})
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, _, err = conn.WriteMsgUnix([]byte("x"), unix.UnixRights(fds...), nil); err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	return err
}

// receive listens on a socket and prints "begun". Tasks connect to the socket and pass file descriptors. When a task
// has closed its connection, receive calls f with the descriptors of this task.
func receive(f func(fds []int)) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: passing, Net: "unix"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("begun")
	for {
		conn, err := listener.AcceptUnix()
		if err != nil {
			return
		}
		rights := make([]byte, 4096)
		_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), rights)
		if err != nil {
			continue
		}
		var fds []int
		if all, err := unix.ParseSocketControlMessage(rights[:n]); err == nil && len(all) > 0 {
			fds, _ = unix.ParseUnixRights(&all[0])
		}
		_, _ = conn.Write([]byte("x"))
		_, _ = conn.Read(make([]byte, 1)) // returns when the other side closes the connection
		_ = conn.Close()
		f(fds)
	}
}

func keep() { receive(func([]int) {}) }

// writeOn gets two descriptors from another task: a log and a directory. It writes as much as it can to both, up to a
// limit. It prints how much it wrote.
func writeOn() {
	receive(func(fds []int) {
		wrote := [2]int{}
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
			file, err := unix.Openat(fds[1], "more"+strconv.FormatInt(time.Now().UnixNano(), 10), unix.O_CREAT|unix.O_WRONLY, 0o600)
			for range 32 {
				n, more := unix.Write(file, make([]byte, 1<<20))
				wrote[1] += max(n, 0)
				n, _ = unix.Write(fds[0], make([]byte, 1<<20))
				if wrote[0] += max(n, 0); err != nil || more != nil {
					time.Sleep(10 * time.Millisecond)
				}
			}
			_ = unix.Close(file)
			fmt.Println("wrote", wrote[0]>>20, wrote[1]>>20, err)
		}
	})
}

func passDir() {
	dir, err := unix.Open(".", unix.O_RDONLY, 0)
	if err == nil {
		err = pass(1, dir)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func passMemory() {
	fd, err := unix.MemfdCreate("left", 0)
	for range mostMiB * 3 / 4 {
		if err == nil {
			_, err = unix.Write(fd, make([]byte, 1<<20))
		}
	}
	if err == nil {
		err = pass(fd)
	}
	fmt.Println("begun", err)
}

func leaveSegment() {
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, mostMiB*3/4<<20, unix.IPC_CREAT|0o600)
	if err == nil {
		var data []byte
		if data, err = unix.SysvShmAttach(id, 0, 0); err == nil {
			for i := 0; i < len(data); i += 4096 {
				data[i] = 1
			}
		}
	}
	left := 0
	table, _ := os.ReadFile("/proc/sysvipc/shm")
	for _, row := range strings.Split(string(table), "\n")[1:] {
		if f := strings.Fields(row); len(f) > 14 {
			bytes, _ := strconv.Atoi(f[14]) // resident memory in bytes
			left += bytes
		}
	}
	fmt.Println("begun", left>>20, err)
}

// fillBuffers sends data from the task to the task itself, over as many connections as it can open. The data fills
// buffers of the kernel. fillBuffers stops when the kernel accepts no more, or after some time.
func fillBuffers(mib int, then func(fds []int)) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	sent, piece := 0, make([]byte, 1<<20)
	var fds []int
	for end := time.Now().Add(5 * time.Second); sent < mib<<20 && time.Now().Before(end); {
		c, err := net.DialTimeout("tcp4", listener.Addr().String(), time.Second)
		if err != nil {
			break
		}
		other, err := listener.Accept()
		if err != nil {
			break
		}
		for _, one := range []net.Conn{c, other} {
			file, err := one.(*net.TCPConn).File()
			if err != nil {
				return
			}
			_ = one.Close()
			fds = append(fds, int(file.Fd()))
			opened = append(opened, file)
		}
		_ = unix.SetNonblock(fds[len(fds)-2], true)
		for {
			n, err := unix.Write(fds[len(fds)-2], piece)
			if err != nil {
				break
			}
			sent += n
		}
	}
	then(fds)
	fmt.Println("begun", sent>>20)
}

// opened has the files that this process keeps open.
var opened []*os.File

// multiply calls the function `one`, which makes a process or some threads. It repeats the call until a call fails, or
// until it has made `most` calls. Then it sleeps for a minute.
func multiply(most int, one func() error) {
	n := 0
	for ; n < most && one() == nil; n++ {
	}
	fmt.Println("begun", n)
	time.Sleep(time.Minute)
}

// threads makes 500 threads in a separate process, because the Go runtime ends a process that cannot make another
// thread.
func threads() error {
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), holdEnv+"=thread500")
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err == nil {
		_, err = io.ReadFull(out, make([]byte, 1))
	}
	return err
}

func thread500() {
	for range 500 {
		begun := make(chan bool)
		go func() {
			runtime.LockOSThread()
			begun <- true
			_, _, _ = syscall.Syscall6(syscall.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}()
		<-begun
	}
	fmt.Println("x")
	time.Sleep(time.Minute)
}

// zombie makes a process that ends and whose exit code nobody reads.
func zombie() error {
	_, err := syscall.ForkExec("/bin/true", []string{"true"}, nil)
	return err
}

// daemonEnv marks a process that must outlive its task.
const daemonEnv = "CANDOR_DAEMON"

// daemons leaves processes behind. They are children of no process of the task, have separate sessions and ignore
// signals.
func daemons() {
	for range 4 {
		c := exec.Command("/bin/sh", "-c", `trap "" HUP INT TERM; (setsid sh -c "trap \"\" HUP INT TERM; (while :; do sleep 1; done) &" &) &`)
		c.Env = append(os.Environ(), daemonEnv+"="+os.Getenv("CANDOR_JOB"))
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		_ = c.Run()
	}
	fmt.Println("begun", os.Getenv("CANDOR_JOB"))
}

func makeEmpty() {
	for i := 0; ; i++ {
		dir := "d" + strconv.Itoa(i)
		err := os.Mkdir(dir, 0o700)
		for k := 0; k < 1000 && err == nil; k++ {
			var fd int
			if fd, err = unix.Open(dir+"/"+strconv.Itoa(k), unix.O_CREAT|unix.O_WRONLY, 0o600); err == nil {
				_ = unix.Close(fd)
			}
		}
		if i == 0 {
			fmt.Println("begun", err)
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
}
