/* Times one collective of an MPI library and checks every word of its result.
 *
 * collective NAME BYTES REPEATS: BYTES are the vector of all ranks (allgather, allreduce), or what one rank has for all (alltoall).
 * Prints, for each repeat, the bytes, the seconds from a barrier to the end of the last rank, and the number of wrong words. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t value(uint64_t index) { return (uint32_t)((index * 0x9e3779b97f4a7c15u) >> 32); }

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const char *name = argv[1];
    int is_sum = strcmp(name, "allreduce") == 0, is_gather = strcmp(name, "allgather") == 0;
    uint64_t share = strtoull(argv[2], NULL, 10) / 4 / (uint64_t)ranks, words = share * (uint64_t)ranks;
    uint32_t *in = malloc(words * 4 + 4), *out = malloc(words * 4 + 4);
    if (in == NULL || out == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    uint64_t first = is_sum ? 0 : is_gather ? (uint64_t)rank * share : (uint64_t)rank * words;
    uint64_t own = is_gather ? share : words;
    uint32_t times = is_sum ? (uint32_t)rank + 1 : 1, sum = is_sum ? (uint32_t)(ranks * (ranks + 1) / 2) : 1;
    for (int repeat = 0; repeat < atoi(argv[3]); repeat++) {
        memset(out, 0, words * 4);
        for (uint64_t i = 0; i < own; i++) {
            in[i] = value(first + i) * times;
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        if (is_sum) {
            MPI_Allreduce(in, out, (int)words, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
        } else if (is_gather) {
            MPI_Allgather(in, (int)share, MPI_UINT32_T, out, (int)share, MPI_UINT32_T, MPI_COMM_WORLD);
        } else {
            MPI_Alltoall(in, (int)share, MPI_UINT32_T, out, (int)share, MPI_UINT32_T, MPI_COMM_WORLD);
        }
        double took = MPI_Wtime() - start, longest;
        uint64_t wrong = 0, all_wrong;
        for (uint64_t i = 0; i < words; i++) {
            uint64_t block = share ? i / share : 0;
            uint64_t index = is_sum || is_gather ? i : block * words + (uint64_t)rank * share + i % share;
            wrong += out[i] != value(index) * sum;
        }
        MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        MPI_Reduce(&wrong, &all_wrong, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            printf("took %llu %.9f %llu\n", (unsigned long long)(words * 4), longest, (unsigned long long)all_wrong);
            fflush(stdout);
        }
    }
    MPI_Finalize();
    return 0;
}
