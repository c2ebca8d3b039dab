/* Latency of collectives by size of the whole message: the median over some calls of the slowest rank's time.
 *
 *     mpicc -O2 -o sweep sweep.c
 *     mpirun -np 8 ./sweep 1024 16777216 50
 *
 * Arguments: least and most bytes of the whole message (all shares together), and calls per row. Sizes double. It is a
 * program of MPI alone: run it with and without plans, and compare. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 8 };

static const char *const names[KINDS] = {"allreduce", "allgather", "reduce-scatter", "broadcast",
                                         "reduce",    "all-to-all", "gather",        "scatter"};

static void call(int kind, char *in, char *out, int bytes, int ranks) {
    int all = bytes / 4, share = bytes / ranks;
    switch (kind) {
    case 0: MPI_Allreduce(in, out, all, MPI_INT, MPI_SUM, MPI_COMM_WORLD); break;
    case 1: MPI_Allgather(in, share, MPI_BYTE, out, share, MPI_BYTE, MPI_COMM_WORLD); break;
    case 2: MPI_Reduce_scatter_block(in, out, share / 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD); break;
    case 3: MPI_Bcast(in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); break;
    case 4: MPI_Reduce(in, out, all, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD); break;
    case 5: MPI_Alltoall(in, share, MPI_BYTE, out, share, MPI_BYTE, MPI_COMM_WORLD); break;
    case 6: MPI_Gather(in, share, MPI_BYTE, out, share, MPI_BYTE, 0, MPI_COMM_WORLD); break;
    case 7: MPI_Scatter(in, share, MPI_BYTE, out, share, MPI_BYTE, 0, MPI_COMM_WORLD); break;
    }
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    long least = argc > 1 ? atol(argv[1]) : 1024, most = argc > 2 ? atol(argv[2]) : 16 << 20;
    int calls = argc > 3 ? atoi(argv[3]) : 50;
    if (least < 4L * ranks || most < least || most > 1L << 30 || calls < 1) {
        if (!rank) fprintf(stderr, "usage: sweep LEAST MOST CALLS, with %d <= LEAST <= MOST <= 1073741824\n", 4 * ranks);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    char *in = malloc(most), *out = malloc(most);
    double *times = malloc(sizeof(double) * calls);
    if (!in || !out || !times) MPI_Abort(MPI_COMM_WORLD, 1);
    memset(in, 1, most), memset(out, 0, most);
    if (!rank) printf("%-15s %12s %12s\n", "collective", "bytes", "us");
    for (int kind = 0; kind < KINDS; kind++)
        for (long bytes = least; bytes <= most; bytes *= 2) {
            /* Not counted: connections, and the script of a plan. */
            for (int warm = 0; warm < 3; warm++) call(kind, in, out, bytes, ranks);
            for (int turn = 0; turn < calls; turn++) {
                MPI_Barrier(MPI_COMM_WORLD);
                double start = MPI_Wtime();
                call(kind, in, out, bytes, ranks);
                double own = MPI_Wtime() - start;
                /* By messages, so that no collective of the sweep is in the report. */
                times[turn] = own;
                if (rank) MPI_Send(&own, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
                for (int from = 1; !rank && from < ranks; from++) {
                    MPI_Recv(&own, 1, MPI_DOUBLE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                    if (own > times[turn]) times[turn] = own;
                }
            }
            qsort(times, calls, sizeof *times, by_size);
            if (!rank) printf("%-15s %12ld %12.2f\n", names[kind], bytes, times[calls / 2] * 1e6), fflush(stdout);
        }
    MPI_Finalize();
    return 0;
}
