/* A disk that fails: preloaded (LD_PRELOAD) before the C library, it counts what a program does to the files below
   FAULTY_ROOT, Python and C code alike, and lets the operation go wrong that the plan names.

   The plan is a file, FAULTY_PLAN, of seven long integers that all processes share:
       counts   operations so far, of each of three kinds: 0, all that changes something on the disk; 1, opening, also
                for reading; 2, writing bytes
       kind     of the operation that goes wrong
       at       its number, from 1 on; 0: all goes well
       error    what it fails with; 0: the write is short, as the system is allowed to do
       lasting  1: from then on everything that takes room on the disk fails too */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CHANGE, OPEN, BYTES };
enum { FINE, FAIL, SHORT };

struct plan { long counts[3], kind, at, error, lasting; };
static struct plan *plan;
static const char *root;
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
    root = getenv("FAULTY_ROOT");
    const char *path = getenv("FAULTY_PLAN");
    int file = path ? REAL(open)(path, O_RDWR) : -1;
    if (file < 0 || !root) return;
    void *place = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (place != MAP_FAILED) plan = place;
    close(file);
}

static int below(const char *path) { return root && path && !strncmp(path, root, strlen(root)); }

static int below_fd(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return below(path);
}

static int below_at(int fd, const char *path) { return path && path[0] == '/' ? below(path) : below_fd(fd); }

/* `takes`: does it take room on the disk? */
static int fault(int kind, int here, int takes) {
    if (!plan || !here) return FINE;
    long number = kind == CHANGE ? 0 : __sync_add_and_fetch(&plan->counts[kind], 1);
    long change = kind == OPEN && !takes ? 0 : __sync_add_and_fetch(&plan->counts[CHANGE], 1);
    if (plan->kind == CHANGE) number = change;
    else if (plan->kind != kind) return FINE;
    if (!plan->at || !number || number < plan->at) return FINE;
    if (number > plan->at && !(plan->lasting && takes)) return FINE;
    if (!plan->error || (plan->lasting && number == plan->at && kind == BYTES)) return SHORT;
    errno = (int)plan->error;
    return FAIL;
}

#define TAKES(flags) (((flags) & (O_CREAT | O_TRUNC)) != 0)
#define OPENING(name, here, call, ...)                                          \
    int name(__VA_ARGS__) {                                                     \
        mode_t mode = 0;                                                        \
        va_list more;                                                           \
        va_start(more, flags);                                                  \
        if (flags & (O_CREAT | O_TMPFILE)) mode = va_arg(more, mode_t);         \
        va_end(more);                                                           \
        if (fault(OPEN, here, TAKES(flags)) == FAIL) return -1;                 \
        return call;                                                            \
    }
OPENING(open, below(path), REAL(open)(path, flags, mode), const char *path, int flags, ...)
OPENING(open64, below(path), REAL(open64)(path, flags, mode), const char *path, int flags, ...)
OPENING(openat, below_at(fd, path), REAL(openat)(fd, path, flags, mode), int fd, const char *path, int flags, ...)
OPENING(openat64, below_at(fd, path), REAL(openat64)(fd, path, flags, mode), int fd, const char *path, int flags, ...)

#define WRITING(name, size, call, half, ...)                                    \
    ssize_t name(__VA_ARGS__) {                                                 \
        int what = fault(BYTES, below_fd(fd), 1);                               \
        if (what == FAIL) return -1;                                            \
        return what == SHORT && (size) > 1 ? half : call;                       \
    }
WRITING(write, n, REAL(write)(fd, bytes, n), REAL(write)(fd, bytes, n / 2), int fd, const void *bytes, size_t n)
WRITING(pwrite, n, REAL(pwrite)(fd, bytes, n, at), REAL(pwrite)(fd, bytes, n / 2, at), int fd, const void *bytes,
        size_t n, off_t at)
WRITING(pwrite64, n, REAL(pwrite64)(fd, bytes, n, at), REAL(pwrite64)(fd, bytes, n / 2, at), int fd, const void *bytes,
        size_t n, off64_t at)
WRITING(writev, n, REAL(writev)(fd, parts, n), REAL(writev)(fd, parts, n / 2), int fd, const struct iovec *parts, int n)

size_t fwrite(const void *bytes, size_t size, size_t n, FILE *file) {
    int what = file == stdout || file == stderr ? FINE : fault(BYTES, below_fd(fileno(file)), 1);
    if (what == FAIL) return 0;
    return REAL(fwrite)(bytes, size, what == SHORT && n > 1 && plan->error ? n / 2 : n, file);
}

#define CHANGING(name, here, takes, call, ...)                                  \
    int name(__VA_ARGS__) { return fault(CHANGE, here, takes) == FAIL ? -1 : call; }
CHANGING(fsync, below_fd(fd), 0, REAL(fsync)(fd), int fd)
CHANGING(fdatasync, below_fd(fd), 0, REAL(fdatasync)(fd), int fd)
CHANGING(rename, below(to), 0, REAL(rename)(from, to), const char *from, const char *to)
CHANGING(renameat, below(to), 0, REAL(renameat)(a, from, b, to), int a, const char *from, int b, const char *to)
CHANGING(mkdir, below(path), 1, REAL(mkdir)(path, mode), const char *path, mode_t mode)
CHANGING(mkdirat, below_at(fd, path), 1, REAL(mkdirat)(fd, path, mode), int fd, const char *path, mode_t mode)
CHANGING(unlink, below(path), 0, REAL(unlink)(path), const char *path)
CHANGING(unlinkat, below_at(fd, path), 0, REAL(unlinkat)(fd, path, flags), int fd, const char *path, int flags)
CHANGING(rmdir, below(path), 0, REAL(rmdir)(path), const char *path)
CHANGING(ftruncate, below_fd(fd), 0, REAL(ftruncate)(fd, size), int fd, off_t size)
CHANGING(ftruncate64, below_fd(fd), 0, REAL(ftruncate64)(fd, size), int fd, off64_t size)
