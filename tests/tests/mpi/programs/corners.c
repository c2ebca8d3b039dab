/* Calls at the edges: derived types on some ranks only, operators of the user, communicators of parts, duplicates,
 * nonblocking calls, pairs. A program of MPI alone. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static void show(const char *what, const void *bytes, size_t count) {
    unsigned long long h = 1469598103934665603ULL, all = 0;
    for (size_t i = 0; i < count; i++) h = (h ^ ((const unsigned char *)bytes)[i]) * 1099511628211ULL;
    if (rank) {
        MPI_Send(&h, 1, MPI_UNSIGNED_LONG_LONG, 0, 3, MPI_COMM_WORLD);
        return;
    }
    for (int from = 0; from < size; from++) {
        if (from) MPI_Recv(&h, 1, MPI_UNSIGNED_LONG_LONG, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        all = all * 31 + h;
    }
    printf("%s %016llx\n", what, all);
}

static void twice_plus(void *in, void *inout, int *length, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *length; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static int copies, deletes;

static int copied(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag) {
    (void)c, (void)key, (void)extra;
    copies++, *(void **)out = in, *flag = 1;
    return MPI_SUCCESS;
}

static int deleted(MPI_Comm c, int key, void *value, void *extra) {
    (void)c, (void)key, (void)extra, (void)value;
    deletes++;
    return MPI_SUCCESS;
}

/* A column of a matrix at one rank is a row of plain numbers at another: only some ranks pass a derived type. */
static void columns(void) {
    enum { ROWS = 37 };
    int n = size, *matrix = malloc(sizeof(int) * ROWS * n), row[ROWS];
    MPI_Datatype column, one;
    MPI_Type_vector(ROWS, 1, n, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, sizeof(int), &one);
    MPI_Type_commit(&one);
    for (int i = 0; i < ROWS * n; i++) matrix[i] = rank * 1000 + i;
    memset(row, 0, sizeof row);
    MPI_Scatter(matrix, 1, one, row, ROWS, MPI_INT, 0, MPI_COMM_WORLD), show("scatter-columns", row, sizeof row);
    for (int i = 0; i < ROWS; i++) row[i] += rank;
    MPI_Gather(row, ROWS, MPI_INT, matrix, 1, one, 0, MPI_COMM_WORLD), show("gather-columns", matrix, sizeof(int) * ROWS * n);
    MPI_Bcast(matrix, rank % 2 ? 1 : ROWS, rank % 2 ? one : MPI_INT, 0, MPI_COMM_WORLD);
    show("bcast-columns", matrix, sizeof(int) * ROWS * n);
    MPI_Allgather(row, ROWS, MPI_INT, matrix, 1, one, MPI_COMM_WORLD), show("allgather-columns", matrix, sizeof(int) * ROWS * n);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, matrix, 1, one, MPI_COMM_WORLD), show("alltoall-columns", matrix, sizeof(int) * ROWS * n);
    /* The same data by another type: bytes backwards in memory. */
    MPI_Datatype backwards;
    int lengths[2] = {1, 1}, places[2] = {1, 0};
    MPI_Type_indexed(2, lengths, places, MPI_INT, &backwards);
    MPI_Type_commit(&backwards);
    int pair[2] = {rank, rank + 100}, *pairs = malloc(2 * sizeof(int) * n);
    memset(pairs, 0, 2 * sizeof(int) * n);
    MPI_Allgather(pair, 1, backwards, pairs, 2, MPI_INT, MPI_COMM_WORLD), show("allgather-backwards", pairs, 2 * sizeof(int) * n);
    MPI_Bcast(pair, 1, backwards, 0, MPI_COMM_WORLD), show("bcast-backwards", pair, sizeof pair);
    MPI_Type_free(&backwards), MPI_Type_free(&one), MPI_Type_free(&column);
    free(matrix), free(pairs);
}

static void operators(void) {
    int values[100], sums[100];
    MPI_Op op;
    MPI_Op_create(twice_plus, 1, &op);
    for (int i = 0; i < 100; i++) values[i] = rank * i;
    MPI_Allreduce(values, sums, 100, MPI_INT, op, MPI_COMM_WORLD), show("user-operator", sums, sizeof sums);
    MPI_Op_free(&op);
    struct { double value; int at; } own, best;
    memset(&own, 0, sizeof own), memset(&best, 0, sizeof best);
    own.value = (rank * 5) % size, own.at = rank;
    MPI_Allreduce(&own, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    show("maxloc", &best.value, sizeof best.value), show("maxloc-at", &best.at, sizeof best.at);
}

static void parts(void) {
    MPI_Comm half, twin;
    int key, values[1000], sums[1000];
    MPI_Comm_create_keyval(copied, deleted, &key, 0);
    for (int i = 0; i < 1000; i++) values[i] = rank + i;
    for (int round = 0; round < 3; round++) {
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
        MPI_Comm_set_attr(half, key, values);
        memset(sums, 0, sizeof sums);
        MPI_Allreduce(values, sums, 1000, MPI_INT, MPI_SUM, half), show("half", sums, sizeof sums);
        MPI_Comm_dup(half, &twin);
        MPI_Allreduce(MPI_IN_PLACE, sums, 1000, MPI_INT, MPI_SUM, twin), show("twin", sums, sizeof sums);
        MPI_Comm_free(&half);
        MPI_Bcast(sums, 1000, MPI_INT, 0, twin), show("twin-bcast", sums, sizeof sums);
        MPI_Comm_free(&twin);
    }
    int seen[2] = {copies, deletes};
    show("attributes", seen, sizeof seen);
    int alone = rank;
    MPI_Allreduce(MPI_IN_PLACE, &alone, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF), show("self", &alone, sizeof alone);
    MPI_Comm local, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &inter);
    int other = 0;
    MPI_Allreduce(&rank, &other, 1, MPI_INT, MPI_SUM, inter), show("inter", &other, sizeof other);
    MPI_Comm_free(&inter), MPI_Comm_free(&local), MPI_Comm_free_keyval(&key);
}

static void nonblocking(void) {
    int values[500], sums[500], others[500];
    MPI_Request requests[2];
    for (int i = 0; i < 500; i++) values[i] = rank ^ i, others[i] = rank * i;
    MPI_Iallreduce(values, sums, 500, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    MPI_Ibcast(others, 500, MPI_INT, 1, MPI_COMM_WORLD, &requests[1]);
    /* Messages of the caller with any tag from anyone, while a collective is under way. */
    int token = rank, got = -1;
    MPI_Request receive;
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &receive);
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
    MPI_Wait(&receive, MPI_STATUS_IGNORE), MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    show("iallreduce", sums, sizeof sums), show("ibcast", others, sizeof others), show("ring", &got, sizeof got);
    show("sum", &sum, sizeof sum);
}

static void errors(void) {
    int value = rank, sum = 0;
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_set_errhandler(twin, MPI_ERRORS_RETURN);
    int code = MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, twin), class = MPI_ERR_COUNT, bad = 1;
#ifdef OPEN_MPI /* MPICH as Debian builds it does not look at arguments. */
    MPI_Error_class(MPI_Allreduce(&value, &sum, -1, MPI_INT, MPI_SUM, twin), &class);
    bad = MPI_Bcast(&value, 1, MPI_INT, size, twin);
#endif
    int seen[4] = {code, class == MPI_ERR_COUNT, bad != MPI_SUCCESS, sum};
    show("errors", seen, sizeof seen);
    MPI_Comm_free(&twin);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
    columns(), operators(), parts(), nonblocking(), errors();
    MPI_Finalize();
    return 0;
}
