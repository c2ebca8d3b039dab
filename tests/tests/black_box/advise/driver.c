/*
 * Says which of Open MPI's algorithms run for calls: `collective bytes name` for each line of the file that is named.
 *
 * It stands in front of the functions of the algorithms, which coll_tuned calls by name. No header of MPI is needed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char ompi_mpi_comm_world[], ompi_mpi_byte[], ompi_mpi_op_bor[];
int MPI_Init(void *, void *);
int MPI_Finalize(void);
int MPI_Comm_rank(void *, int *);
int MPI_Comm_size(void *, int *);
int MPI_Allreduce(void *, void *, int, void *, void *, void *);
int MPI_Allgather(void *, int, void *, void *, int, void *, void *);
int MPI_Alltoall(void *, int, void *, void *, int, void *, void *);
int MPI_Bcast(void *, int, void *, int, void *);
int MPI_Reduce(void *, void *, int, void *, void *, int, void *);
int MPI_Reduce_scatter(void *, void *, int *, void *, void *, void *);
int MPI_Gather(void *, int, void *, void *, int, void *, int, void *);
int MPI_Scatter(void *, int, void *, void *, int, void *, int, void *);

/* The first that a call ran: some run others. */
static const char *ran;

typedef int (*function)(long, long, long, long, long, long, long, long, long, long, long, long);

#define WATCH(name)                                                                                          \
    int ompi_coll_base_##name(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, \
                              long k, long l) {                                                              \
        static function real;                                                                                \
        if (real == NULL) {                                                                                  \
            real = (function)dlsym(RTLD_NEXT, "ompi_coll_base_" #name);                                      \
        }                                                                                                    \
        if (ran == NULL) {                                                                                   \
            ran = #name;                                                                                     \
        }                                                                                                    \
        return real(a, b, c, d, e, f, g, h, i, j, k, l);                                                     \
    }

WATCH(allgather_intra_bruck)
WATCH(allgather_intra_neighborexchange)
WATCH(allgather_intra_recursivedoubling)
WATCH(allgather_intra_ring)
WATCH(allreduce_intra_recursivedoubling)
WATCH(allreduce_intra_redscat_allgather)
WATCH(allreduce_intra_ring)
WATCH(alltoall_intra_basic_linear)
WATCH(alltoall_intra_bruck)
WATCH(alltoall_intra_pairwise)
WATCH(bcast_intra_binomial)
WATCH(bcast_intra_pipeline)
WATCH(bcast_intra_scatter_allgather)
WATCH(bcast_intra_scatter_allgather_ring)
WATCH(gather_intra_basic_linear)
WATCH(gather_intra_binomial)
WATCH(reduce_intra_binomial)
WATCH(reduce_intra_pipeline)
WATCH(reduce_intra_redscat_gather)
WATCH(reduce_scatter_intra_basic_recursivehalving)
WATCH(reduce_scatter_intra_ring)
WATCH(scatter_intra_basic_linear)
WATCH(scatter_intra_binomial)

static void call(const char *word, int bytes, int size, void *in, void *out) {
    void *byte = ompi_mpi_byte, *all = ompi_mpi_comm_world, *or = ompi_mpi_op_bor;
    int block = bytes / size, *counts = malloc((size_t)size * sizeof *counts);
    for (int i = 0; i < size; i++) {
        counts[i] = block;
    }
    if (strcmp(word, "allgather") == 0) {
        MPI_Allgather(in, block, byte, out, block, byte, all);
    } else if (strcmp(word, "allreduce") == 0) {
        MPI_Allreduce(in, out, bytes, byte, or, all);
    } else if (strcmp(word, "all-to-all") == 0) {
        MPI_Alltoall(in, block, byte, out, block, byte, all);
    } else if (strcmp(word, "broadcast") == 0) {
        MPI_Bcast(in, bytes, byte, 0, all);
    } else if (strcmp(word, "gather") == 0) {
        MPI_Gather(in, block, byte, out, block, byte, 0, all);
    } else if (strcmp(word, "reduce") == 0) {
        MPI_Reduce(in, out, bytes, byte, or, 0, all);
    } else if (strcmp(word, "reduce-scatter") == 0) {
        MPI_Reduce_scatter(in, out, counts, byte, or, all);
    } else if (strcmp(word, "scatter") == 0) {
        MPI_Scatter(in, block, byte, out, block, byte, 0, all);
    }
    free(counts);
}

int main(int argc, char **argv) {
    int rank, size, bytes;
    char word[32];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(ompi_mpi_comm_world, &rank);
    MPI_Comm_size(ompi_mpi_comm_world, &size);
    FILE *calls = fopen(argv[1], "r");
    while (fscanf(calls, "%31s %d", word, &bytes) == 2) {
        void *in = calloc((size_t)bytes + 1, 1), *out = calloc((size_t)bytes + 1, 1);
        ran = NULL;
        call(word, bytes, size, in, out);
        if (rank == 0) {
            printf("%s %d %s\n", word, bytes, ran == NULL ? "none" : ran);
        }
        free(in);
        free(out);
    }
    MPI_Finalize();
    return 0;
}
