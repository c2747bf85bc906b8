/* A preloaded library that adds the seconds in a shared file to the time of day.
 * Other clocks are unchanged, and child programs have the machine's own clocks. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *set_by;

__attribute__((constructor)) static void begin(void) {
    int file = open(getenv("WALL_CLOCK"), O_RDONLY | O_CLOEXEC);
    void *shared = mmap(NULL, sizeof *set_by, PROT_READ, MAP_SHARED, file, 0);
    if (file < 0 || shared == MAP_FAILED) abort();
    close(file);
    set_by = shared;
    unsetenv("LD_PRELOAD");
    unsetenv("WALL_CLOCK");
}

static int64_t seconds(void) { return set_by ? *set_by : 0; }

int clock_gettime(clockid_t clock, struct timespec *now) {
    int done = (int)syscall(SYS_clock_gettime, clock, now);
    if (done == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += seconds();
    return done;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec read;
    int done = clock_gettime(CLOCK_REALTIME, &read);
    now->tv_sec = read.tv_sec;
    now->tv_usec = read.tv_nsec / 1000;
    return done;
}

time_t time(time_t *to) {
    struct timespec read;
    clock_gettime(CLOCK_REALTIME, &read);
    if (to) *to = read.tv_sec;
    return read.tv_sec;
}
