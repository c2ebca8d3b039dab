/* Ranks of MPI spin while they wait. Preloaded, this lets a rank that yields sleep for 0.1 ms, so that many share a core. */
#include <time.h>

int sched_yield(void) {
    struct timespec pause = {0, 100000};
    nanosleep(&pause, 0);
    return 0;
}
