/* Every collective with every type, operator and some sizes; prints a digest of all bytes that all ranks end with.
 * A program of MPI alone: it knows nothing of plans. Values are integers, so no order of operations changes a bit. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY 50021

static int rank, size, is_few;
static unsigned char *in, *out;

static uint64_t mix(uint64_t x) {
    x ^= x >> 33, x *= 0xff51afd7ed558ccdULL, x ^= x >> 33, x *= 0xc4ceb9fe1a85ec53ULL;
    return x ^ x >> 33;
}

static uint64_t hash(const unsigned char *bytes, size_t count) {
    uint64_t h = 0xcbf29ce484222325ULL;
    for (size_t i = 0; i < count; i++) h = (h ^ bytes[i]) * 0x100000001b3ULL;
    return h;
}

enum { INTEGER, FLOAT, LOGICAL, COMPLEX, BYTE };

static const struct { MPI_Datatype type; const char *name; int class, real; } types[] = {
    {MPI_INT, "int", INTEGER, 0}, {MPI_SIGNED_CHAR, "schar", INTEGER, 0}, {MPI_UNSIGNED_CHAR, "uchar", INTEGER, 0},
    {MPI_SHORT, "short", INTEGER, 0}, {MPI_UNSIGNED_SHORT, "ushort", INTEGER, 0}, {MPI_UNSIGNED, "uint", INTEGER, 0},
    {MPI_LONG, "long", INTEGER, 0}, {MPI_UNSIGNED_LONG, "ulong", INTEGER, 0}, {MPI_LONG_LONG, "llong", INTEGER, 0},
    {MPI_UINT64_T, "uint64", INTEGER, 0}, {MPI_INT8_T, "int8", INTEGER, 0},
    {MPI_FLOAT, "float", FLOAT, 4}, {MPI_DOUBLE, "double", FLOAT, 8}, {MPI_LONG_DOUBLE, "ldouble", FLOAT, 16},
    {MPI_C_BOOL, "bool", LOGICAL, 0}, {MPI_C_FLOAT_COMPLEX, "cfloat", COMPLEX, 4},
    {MPI_C_DOUBLE_COMPLEX, "cdouble", COMPLEX, 8}, {MPI_BYTE, "byte", BYTE, 0},
};

static const struct { MPI_Op op; const char *name; int classes; } ops[] = {
    {MPI_SUM, "sum", 1 << INTEGER | 1 << FLOAT | 1 << COMPLEX}, {MPI_PROD, "prod", 1 << INTEGER | 1 << FLOAT | 1 << COMPLEX},
    {MPI_MIN, "min", 1 << INTEGER | 1 << FLOAT}, {MPI_MAX, "max", 1 << INTEGER | 1 << FLOAT},
    {MPI_LAND, "land", 1 << INTEGER | 1 << LOGICAL}, {MPI_LOR, "lor", 1 << INTEGER | 1 << LOGICAL},
    {MPI_LXOR, "lxor", 1 << INTEGER | 1 << LOGICAL}, {MPI_BAND, "band", 1 << INTEGER | 1 << BYTE},
    {MPI_BOR, "bor", 1 << INTEGER | 1 << BYTE}, {MPI_BXOR, "bxor", 1 << INTEGER | 1 << BYTE},
};

enum { ANY, SUM, PRODUCT };

/* Elements of `width` bytes, whose real part or integer is small enough that no order of sums or products rounds, leaves
 * the range of the type (Open MPI's 8-bit sums saturate in some places) or makes a zero negative. */
static void fill(unsigned char *bytes, size_t count, int class, int width, int real, int what, uint64_t seed) {
    uint64_t own = mix(seed * 64 + rank + 1);
    if (!real && what == ANY) {
        for (size_t i = 0; i < count; i++) bytes[i] = class == LOGICAL ? mix(own + i) & 1 : mix(own + i);
        return;
    }
    memset(bytes, 0, count);
    for (size_t i = 0; i < count / width; i++) {
        int value = what == PRODUCT ? 1 + ((i + seed + rank) % 4 == 0) : (int)(mix(own + i) % 15);
        unsigned char *at = bytes + i * width;
        if (real == 4) *(float *)at = value;
        if (real == 8) *(double *)at = value;
        if (real == 16) *(long double *)at = value;
        if (!real) *at = value;
    }
}

/* Rank 0 prints the digests of all ranks, brought to it by messages. */
static void show(MPI_Comm comm, const char *what, const char *type, const char *op, int count, size_t bytes) {
    uint64_t own = hash(out, bytes), all = 0;
    int me, n;
    MPI_Comm_rank(comm, &me), MPI_Comm_size(comm, &n);
    if (me) {
        MPI_Send(&own, 1, MPI_UINT64_T, 0, 7, comm);
        return;
    }
    for (int from = 0; from < n; from++) {
        if (from) MPI_Recv(&own, 1, MPI_UINT64_T, from, 7, comm, MPI_STATUS_IGNORE);
        all = mix(all ^ own);
    }
    printf("%s %s %s %d %016llx\n", what, type, op, count, (unsigned long long)all);
}

static int is_left_out(int type) {
    MPI_Datatype kept[] = {MPI_INT, MPI_FLOAT, MPI_C_BOOL, MPI_C_DOUBLE_COMPLEX};
    for (int k = 0; k < 4; k++)
        if (types[type].type == kept[k]) return 0;
    return is_few;
}

static void reductions(MPI_Comm comm, const int *counts, int n) {
    int me, ranks, at = 0;
    MPI_Comm_rank(comm, &me), MPI_Comm_size(comm, &ranks);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
            for (int c = 0; c < n; c++) {
                if (!(ops[o].classes >> types[t].class & 1) || is_left_out(t)) continue;
                MPI_Datatype type = types[t].type;
                MPI_Op op = ops[o].op;
                int count = counts[c], width;
                MPI_Type_size(type, &width);
                size_t bytes = (size_t)count * width;
                if (bytes > 8 * MANY && o) continue;
                int what = op == MPI_SUM ? SUM : op == MPI_PROD ? PRODUCT : ANY;
#define FILL(b, k) fill(b, k, types[t].class, width, types[t].real, what, ++at)
#define SHOW(what, k) show(comm, what, types[t].name, ops[o].name, count, k)
                FILL(in, bytes), memset(out, 0x5a, bytes);
                MPI_Allreduce(in, out, count, type, op, comm), SHOW("allreduce", bytes);
                FILL(out, bytes);
                MPI_Allreduce(MPI_IN_PLACE, out, count, type, op, comm), SHOW("allreduce-in-place", bytes);
                FILL(in, bytes), memset(out, 0x5a, bytes);
                MPI_Reduce(in, out, count, type, op, 0, comm), SHOW("reduce", bytes);
                FILL(in, bytes), memcpy(out, in, bytes);
                MPI_Reduce(me ? in : MPI_IN_PLACE, me ? 0 : out, count, type, op, 0, comm), SHOW("reduce-in-place", bytes);
                FILL(in, bytes * ranks), memset(out, 0x5a, bytes);
                MPI_Reduce_scatter_block(in, out, count, type, op, comm), SHOW("reduce-scatter", bytes);
                FILL(out, bytes * ranks);
                MPI_Reduce_scatter_block(MPI_IN_PLACE, out, count, type, op, comm), SHOW("reduce-scatter-in-place", bytes);
            }
}

static void moves(MPI_Comm comm, const int *counts, int n) {
    int me, ranks, at = 1 << 20;
    MPI_Comm_rank(comm, &me), MPI_Comm_size(comm, &ranks);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int c = 0; c < n; c++) {
            if (is_left_out(t)) continue;
            MPI_Datatype type = types[t].type;
            int count = counts[c], width;
            MPI_Type_size(type, &width);
            size_t bytes = (size_t)count * width, all = bytes * ranks;
            size_t own = bytes * me;
#undef FILL
#undef SHOW
#define FILL(b, k) fill(b, k, INTEGER, 1, 0, ANY, ++at), memset(b == in ? out : in, 0x5a, all)
#define SHOW(what, k) show(comm, what, types[t].name, "-", count, k)
            FILL(in, bytes);
            MPI_Allgather(in, count, type, out, count, type, comm), SHOW("allgather", all);
            FILL(out, all);
            MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, count, type, comm), SHOW("allgather-in-place", all);
            FILL(out, bytes);
            MPI_Bcast(out, count, type, 0, comm), SHOW("bcast", bytes);
            FILL(out, bytes);
            MPI_Bcast(out, count, type, ranks - 1, comm), SHOW("bcast-last", bytes);
            FILL(in, all);
            MPI_Alltoall(in, count, type, out, count, type, comm), SHOW("alltoall", all);
            FILL(out, all);
            MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, count, type, comm), SHOW("alltoall-in-place", all);
            FILL(in, bytes);
            MPI_Gather(in, count, type, out, count, type, 0, comm), SHOW("gather", all);
            FILL(out, all), memcpy(in, out + own, bytes);
            MPI_Gather(me ? in : MPI_IN_PLACE, count, type, out, count, type, 0, comm), SHOW("gather-in-place", all);
            FILL(in, all);
            MPI_Scatter(in, count, type, out, count, type, 0, comm), SHOW("scatter", bytes);
            FILL(in, all);
            MPI_Scatter(in, count, type, me ? out : MPI_IN_PLACE, count, type, 0, comm), SHOW("scatter-in-place", bytes);
        }
}

/* `every`, `every few` for some types and counts, `every few large` for long messages of these, too. */
int main(int argc, char **argv) {
    int counts[] = {0, 1, 13, 1009, 2, 7}, large = MANY;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
    size_t room = (size_t)MANY * 32 * size;
    in = malloc(room), out = malloc(room);
    memset(in, 0, room), memset(out, 0, room);
    is_few = argc > 1;
    reductions(MPI_COMM_WORLD, counts, is_few ? 4 : 6), moves(MPI_COMM_WORLD, counts, is_few ? 4 : 6);
    if (argc > 2) reductions(MPI_COMM_WORLD, &large, 1), moves(MPI_COMM_WORLD, &large, 1);
    MPI_Finalize();
    return 0;
}
