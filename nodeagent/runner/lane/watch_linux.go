package lane

import (
	"encoding/binary"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Watcher tells readers when somebody writes to the files that they read. The zero value is ready for use. At the first
// watch, it asks the kernel for notifications.
type Watcher struct {
	mu      sync.Mutex
	file    *os.File
	fd      int                // descriptor of file; File.Fd could set blocking mode
	waiting map[int32]*watched // by the kernel's number of the file
}

type watched struct {
	changed chan struct{} // closed at the next change
	count   int           // number of goroutines that watch the file
}

// Watch returns a channel that is closed when the file is written to after this call. The caller must call stop.
func (w *Watcher) Watch(path string) (changed <-chan struct{}, stop func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		if err := w.open(); err != nil {
			return nil, nil, err
		}
	}
	n, err := unix.InotifyAddWatch(w.fd, path, unix.IN_MODIFY)
	if err != nil {
		return nil, nil, err
	}
	number := int32(n)
	f := w.waiting[number]
	if f == nil {
		f = &watched{changed: make(chan struct{})}
		w.waiting[number] = f
	}
	f.count++
	return f.changed, func() { w.leave(number, f) }, nil
}

func (w *Watcher) open() error {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	w.fd, w.file, w.waiting = fd, os.NewFile(uintptr(fd), "inotify"), map[int32]*watched{}
	go w.listen(w.file)
	return nil
}

// leave ends one watch of a file. The last watch to end also stops the notifications for the file.
func (w *Watcher) leave(number int32, f *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.count--; f.count == 0 && w.waiting[number] == f {
		w.forget(number)
	}
}

// forget stops the notifications for a file. The caller holds w.mu.
func (w *Watcher) forget(number int32) {
	delete(w.waiting, number)
	if w.file != nil {
		unix.InotifyRmWatch(w.fd, uint32(number))
	}
}

// listen reads notifications until the file is closed.
func (w *Watcher) listen(file *os.File) {
	buffer := make([]byte, 4096)
	for {
		n, err := file.Read(buffer)
		if err != nil {
			return
		}
		for b := buffer[:n]; len(b) >= unix.SizeofInotifyEvent; {
			number := int32(binary.NativeEndian.Uint32(b))
			mask, name := binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint32(b[12:])
			b = b[unix.SizeofInotifyEvent+int(name):]
			w.wake(number, mask)
		}
	}
}

// wake wakes the readers that wait for a file. If the kernel lost notifications, it wakes all readers.
func (w *Watcher) wake(number int32, mask uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, f := range w.waiting { // only a few files are watched
		if mask&unix.IN_Q_OVERFLOW != 0 || n == number && mask&unix.IN_MODIFY != 0 {
			close(f.changed)
			w.forget(n)
		}
	}
}

func (w *Watcher) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}
