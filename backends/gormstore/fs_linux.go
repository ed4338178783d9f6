package gormstore

import (
	"os"
	"syscall"
)

// networkFS names the network file system that dir is on, or "".
func networkFS(dir string) (string, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return "", os.NewSyscallError("statfs", err)
	}
	return networkName(uint32(st.Type)), nil
}

func networkName(magic uint32) string {
	switch magic { // linux/magic.h
	case 0x6969:
		return "NFS"
	case 0x517b, 0xff534d42, 0xfe534d42:
		return "SMB"
	case 0x01021997:
		return "9P"
	case 0x5346414f, 0x6b414653:
		return "AFS"
	case 0x00c36400:
		return "Ceph"
	}
	return ""
}
