// Loaded before the C library (LD_PRELOAD): counts calls that change files below FAULT_DIR, and ends the process or fails at one of them.
//
// FAULT_DIR    the directory; calls elsewhere pass
// FAULT_AT     the call at which it happens, from 1; 0 or absent: none
// FAULT_KIND   kill, ENOSPC or EIO
// FAULT_COUNT  a file that the number of calls is written to when the process ends by itself
// FAULT_HIT    a file that is made when the fault happens: a run may have fewer calls than the one that was counted
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define MAX_FD 4096

static char watched[MAX_FD];
static long calls;

static int below(const char *path) {
    const char *dir = getenv("FAULT_DIR");
    return dir && path && strncmp(path, dir, strlen(dir)) == 0;
}

// Counts a call; 1 where it must fail, with errno set.
static int fault(void) {
    const char *at = getenv("FAULT_AT"), *kind = getenv("FAULT_KIND");
    long call = __sync_add_and_fetch(&calls, 1);
    if (!at || call != atol(at)) return 0;
    const char *hit = getenv("FAULT_HIT");
    if (hit) REAL(close)(REAL(open)(hit, O_CREAT | O_WRONLY, 0600));
    if (!kind || strcmp(kind, "kill") == 0) kill(getpid(), SIGKILL);
    errno = kind && strcmp(kind, "ENOSPC") == 0 ? ENOSPC : EIO;
    return 1;
}

__attribute__((destructor)) static void report(void) {
    const char *path = getenv("FAULT_COUNT");
    if (!path) return;
    FILE *file = fopen(path, "w");
    if (file) { fprintf(file, "%ld\n", calls); fclose(file); }
}

static int opened(int fd, const char *path) {
    if (fd >= 0 && fd < MAX_FD) watched[fd] = below(path);
    return fd;
}

static int fd_is_watched(int fd) { return fd >= 0 && fd < MAX_FD && watched[fd]; }

#define OPEN(name)                                                              \
    int name(const char *path, int flags, ...) {                                \
        mode_t mode = 0;                                                        \
        if (flags & (O_CREAT | O_TMPFILE)) {                                    \
            va_list list; va_start(list, flags); mode = va_arg(list, mode_t); va_end(list); \
        }                                                                       \
        int writes = flags & (O_WRONLY | O_RDWR | O_CREAT);                     \
        if (writes && below(path) && fault()) return -1;                        \
        return opened(REAL(name)(path, flags, mode), path);                     \
    }
OPEN(open)
OPEN(open64)

int close(int fd) {
    if (fd >= 0 && fd < MAX_FD) watched[fd] = 0;
    return REAL(close)(fd);
}
ssize_t write(int fd, const void *bytes, size_t n) {
    if (fd_is_watched(fd) && fault()) {
        // A full disk takes what still fits.
        if (errno == ENOSPC && n > 1) { REAL(write)(fd, bytes, n / 2); errno = ENOSPC; }
        return -1;
    }
    return REAL(write)(fd, bytes, n);
}
ssize_t writev(int fd, const struct iovec *parts, int n) {
    return fd_is_watched(fd) && fault() ? -1 : REAL(writev)(fd, parts, n);
}
int fsync(int fd) { return fd_is_watched(fd) && fault() ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return fd_is_watched(fd) && fault() ? -1 : REAL(fdatasync)(fd); }
int ftruncate(int fd, off_t n) { return fd_is_watched(fd) && fault() ? -1 : REAL(ftruncate)(fd, n); }
int ftruncate64(int fd, off64_t n) { return fd_is_watched(fd) && fault() ? -1 : REAL(ftruncate64)(fd, n); }
int rename(const char *from, const char *to) { return below(to) && fault() ? -1 : REAL(rename)(from, to); }
int mkdir(const char *path, mode_t mode) { return below(path) && fault() ? -1 : REAL(mkdir)(path, mode); }
int rmdir(const char *path) { return below(path) && fault() ? -1 : REAL(rmdir)(path); }
int unlink(const char *path) { return below(path) && fault() ? -1 : REAL(unlink)(path); }
// Directories are removed by descriptors, whose paths are not known: every such removal counts.
int unlinkat(int dir, const char *path, int flags) { return getenv("FAULT_DIR") && fault() ? -1 : REAL(unlinkat)(dir, path, flags); }
