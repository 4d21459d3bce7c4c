package postgres

import "syscall"

// free returns how many bytes are free where a folder is; 0 = there is none.
func free(folder string) int64 {
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil {
		return 0
	}
	return int64(s.Bavail) * s.Bsize
}
