// Package access reads and changes the access lists (POSIX ACLs) of directories, and defines the permissions of the
// files that the runner makes. An access list lets a second user use the directory of its owner. For example, an
// account's tasks may run as a second user.
package access

import (
	"cmp"
	"encoding/binary"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// These constants describe the kernel's form of an access list. It has a version of 4 bytes, and then entries. Each
// entry has a tag, rights and a number. The entries are in the order of their tags.
const (
	aclName    = "system.posix_acl_access"
	aclDefault = "system.posix_acl_default"
	aclVersion = 2
	aclHeader  = 4 // bytes
	aclEntry   = 8 // bytes

	aclOwner  = 1
	aclUser   = 2
	aclGroup  = 4
	aclMask   = 16
	aclOthers = 32

	aclExecute = 1
	aclAll     = 7
	aclNobody  = ^uint32(0) // the number in entries that name no user or group
)

type entry struct {
	tag, rights uint16
	number      uint32
}

// Allow lets a user read, write and enter a directory and everything that is made in it later. The owner keeps all
// rights. The caller must run as the directory's owner.
func Allow(dir string, uid uint32) error {
	var info unix.Stat_t
	if err := unix.Stat(dir, &info); err != nil {
		return &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	list, err := accessList(dir, aclName)
	if err != nil {
		return err
	}
	if list == nil {
		mode := uint16(info.Mode)
		list = []entry{{aclOwner, mode >> 6 & aclAll, aclNobody}, {aclGroup, mode >> 3 & aclAll, aclNobody}, {aclOthers, mode & aclAll, aclNobody}}
	}
	if err := setAccessList(dir, aclName, with(list, uid)); err != nil {
		return err
	}
	inherited, err := accessList(dir, aclDefault)
	if err != nil {
		return err
	}
	if inherited == nil {
		inherited = slices.DeleteFunc(slices.Clone(list), func(e entry) bool { return e.tag == aclUser || e.tag == aclMask })
	}
	return setAccessList(dir, aclDefault, with(with(inherited, uid), info.Uid))
}

func with(list []entry, uid uint32) []entry {
	list = slices.DeleteFunc(slices.Clone(list), func(e entry) bool {
		return e.tag == aclMask || e.tag == aclUser && e.number == uid
	})
	list = append(list, entry{aclUser, aclAll, uid}, entry{aclMask, aclAll, aclNobody})
	slices.SortFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.tag, b.tag), cmp.Compare(a.number, b.number))
	})
	return list
}

// accessList reads an access list of a directory. It returns nil if the directory has no such list.
func accessList(dir, name string) (list []entry, err error) {
	var data [4096]byte
	n, err := unix.Getxattr(dir, name, data[:])
	switch {
	case err == unix.ENODATA || err == nil && n < aclHeader:
		return nil, nil
	case err != nil:
		return nil, &os.PathError{Op: "access list", Path: dir, Err: err}
	}
	for at := aclHeader; at+aclEntry <= n; at += aclEntry {
		e := data[at:]
		list = append(list, entry{binary.LittleEndian.Uint16(e), binary.LittleEndian.Uint16(e[2:]), binary.LittleEndian.Uint32(e[4:])})
	}
	return list, nil
}

func setAccessList(dir, name string, list []entry) error {
	data := binary.LittleEndian.AppendUint32(nil, aclVersion)
	for _, e := range list {
		data = binary.LittleEndian.AppendUint16(data, e.tag)
		data = binary.LittleEndian.AppendUint16(data, e.rights)
		data = binary.LittleEndian.AppendUint32(data, e.number)
	}
	if err := unix.Setxattr(dir, name, data, 0); err != nil {
		return &os.PathError{Op: "access list", Path: dir, Err: err}
	}
	return nil
}

// Named reports whether a directory's access list names a user by number and lets the user enter.
func Named(dir string, uid uint32) bool {
	list, _ := accessList(dir, aclName)
	return slices.ContainsFunc(list, func(e entry) bool {
		return e.tag == aclUser && e.number == uid && e.rights&aclExecute != 0
	})
}
