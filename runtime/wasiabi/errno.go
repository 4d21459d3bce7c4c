package wasiabi

import (
	"errors"
	"io/fs"
	"syscall"
)

// Errno is the result of a function.
type Errno uint16

// The errnos that are returned, with the numbers of the snapshot.
const (
	OK           Errno = 0
	EACCES       Errno = 2
	EAGAIN       Errno = 6
	EBADF        Errno = 8
	EBUSY        Errno = 10
	EDQUOT       Errno = 19
	EEXIST       Errno = 20
	EFAULT       Errno = 21
	EFBIG        Errno = 22
	EINTR        Errno = 27
	EINVAL       Errno = 28
	EIO          Errno = 29
	EISDIR       Errno = 31
	ELOOP        Errno = 32
	EMFILE       Errno = 33
	EMLINK       Errno = 34
	ENAMETOOLONG Errno = 37
	ENFILE       Errno = 41
	ENODEV       Errno = 43
	ENOENT       Errno = 44
	ENOMEM       Errno = 48
	ENOSPC       Errno = 51
	ENOSYS       Errno = 52
	ENOTDIR      Errno = 54
	ENOTEMPTY    Errno = 55
	ENOTSOCK     Errno = 57
	ENOTSUP      Errno = 58
	ENXIO        Errno = 60
	EOVERFLOW    Errno = 61
	EPERM        Errno = 63
	EROFS        Errno = 69
	ESPIPE       Errno = 70
	ESTALE       Errno = 72
	ETXTBSY      Errno = 74
	EXDEV        Errno = 75
	ENOTCAPABLE  Errno = 76
)

// errnos maps the errors of the operating system.
var errnos = map[syscall.Errno]Errno{
	syscall.EACCES:       EACCES,
	syscall.EAGAIN:       EAGAIN,
	syscall.EBADF:        EBADF,
	syscall.EBUSY:        EBUSY,
	syscall.EDQUOT:       EDQUOT,
	syscall.EEXIST:       EEXIST,
	syscall.EFBIG:        EFBIG,
	syscall.EINTR:        EINTR,
	syscall.EINVAL:       EINVAL,
	syscall.EISDIR:       EISDIR,
	syscall.ELOOP:        ELOOP,
	syscall.EMFILE:       EMFILE,
	syscall.EMLINK:       EMLINK,
	syscall.ENAMETOOLONG: ENAMETOOLONG,
	syscall.ENFILE:       ENFILE,
	syscall.ENODEV:       ENODEV,
	syscall.ENOENT:       ENOENT,
	syscall.ENOMEM:       ENOMEM,
	syscall.ENOSPC:       ENOSPC,
	syscall.ENOTDIR:      ENOTDIR,
	syscall.ENOTEMPTY:    ENOTEMPTY,
	syscall.EOPNOTSUPP:   ENOTSUP,
	syscall.ENXIO:        ENXIO,
	syscall.EOVERFLOW:    EOVERFLOW,
	syscall.EPERM:        EPERM,
	syscall.EROFS:        EROFS,
	syscall.ESPIPE:       ESPIPE,
	syscall.ESTALE:       ESTALE,
	syscall.ETXTBSY:      ETXTBSY,
	syscall.EXDEV:        EXDEV,
}

// errnoOf returns the errno of an error of package os, which has no error of
// its own for a path that leads out of a root: so what has no number is EPERM.
func errnoOf(err error) Errno {
	if err == nil {
		return OK
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		if e, known := errnos[number]; known {
			return e
		}
		return EIO
	}
	if errors.Is(err, fs.ErrClosed) {
		return EBADF
	}
	return EPERM
}
