/* Two threads, each with collectives on a communicator of its own at the same time. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

static int rank, size, wrong[2];
static MPI_Comm comms[2];

static void *work(void *which) {
    int me = *(int *)which;
    enum { COUNT = 3001 };
    static long in[2][COUNT], out[2][COUNT];
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < COUNT; i++) in[me][i] = rank * 7 + i * (me + 1) + round;
        MPI_Allreduce(in[me], out[me], COUNT, MPI_LONG, MPI_SUM, comms[me]);
        for (int i = 0; i < COUNT; i++)
            wrong[me] += out[me][i] != 7L * size * (size - 1) / 2 + (long)size * (i * (me + 1) + round);
        MPI_Bcast(out[me], COUNT, MPI_LONG, 0, comms[me]);
    }
    return 0;
}

int main(int argc, char **argv) {
    int provided, names[2] = {0, 1}, sum = 0, all = -1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]), MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    if (provided == MPI_THREAD_MULTIPLE) {
        pthread_t threads[2];
        for (int t = 0; t < 2; t++) pthread_create(&threads[t], 0, work, &names[t]);
        for (int t = 0; t < 2; t++) pthread_join(threads[t], 0);
    }
    sum = wrong[0] + wrong[1];
    MPI_Reduce(&sum, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (!rank) printf("threads %s, wrong %d\n", provided == MPI_THREAD_MULTIPLE ? "at once" : "not available", all);
    /* One communicator is left to MPI_Finalize. */
    MPI_Comm_free(&comms[0]);
    MPI_Finalize();
    return 0;
}
