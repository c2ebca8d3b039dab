/* A tuner plugin of NCCL that reads `tuner.csv` as canopy writes it, for NCCL 2.24 and later.
 *
 *     cc -O2 -shared -fPIC -o libnccl-tuner-canopy.so canopy_tuner.c
 *     export NCCL_TUNER_PLUGIN=$PWD/libnccl-tuner-canopy.so NCCL_TUNER_CONFIG_FILE=$PWD/tuner.csv
 *
 * The first row counts that is of the collective, holds the size, and names the communicator's machines and ranks or -1,
 * and whose algorithm NCCL has for the call. A call without a row is left to NCCL, channels included; so are the channels
 * of a row that says -1. A row that cannot be read is named in the log and left out. */
#include "tuner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_LEAST = 8, COLUMNS = 10, ROWS_MAX = 1 << 16 };

typedef struct {
    int collective, algorithm, protocol;
    unsigned long long first, last;
    long channels, nodes, ranks, pipe_ops, registered;
} Row;

typedef struct {
    Row *rows;
    size_t count;
    size_t ranks, nodes;
    ncclDebugLogger_t log;
} Table;

#define SAY(table, level, ...)                                                                                         \
    do {                                                                                                               \
        if ((table)->log) (table)->log(level, NCCL_TUNING, __FILE__, __LINE__, "TUNER/Canopy: " __VA_ARGS__);          \
    } while (0)

static const char *const COLLECTIVES[] = {"broadcast", "reduce", "allgather", "reducescatter", "allreduce"};
static const char *const ALGORITHMS[] = {"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
static const char *const PROTOCOLS[] = {"ll", "ll128", "simple"};

/* Position of a word, or -1. */
static int position(const char *word, const char *const *words, size_t count) {
    for (size_t at = 0; at < count; at++) {
        if (strcmp(word, words[at]) == 0) return (int)at;
    }
    return -1;
}

#define POSITION(word, words) position(word, words, sizeof(words) / sizeof((words)[0]))

static int size_of(const char *text, unsigned long long *value) {
    char *end = NULL;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *text != '-';
}

/* A number, or -1 for any. */
static int number_of(const char *text, long *value) {
    char *end = NULL;
    errno = 0;
    *value = strtol(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *value >= -1;
}

/* Whether a line is a row. */
static int read_row(char *line, Row *row) {
    char *words[COLUMNS + 1] = {0};
    size_t count = 0;
    for (char *word = line; word && count <= COLUMNS; count++) {
        char *comma = strchr(word, ',');
        if (comma) *comma = '\0';
        while (*word == ' ' || *word == '\t') word++;
        words[count] = word;
        for (char *end = word + strlen(word); end > word && (end[-1] == ' ' || end[-1] == '\t');) *--end = '\0';
        word = comma ? comma + 1 : NULL;
    }
    if (count < COLUMNS_LEAST || count > COLUMNS) return 0;
    row->collective = POSITION(words[0], COLLECTIVES);
    row->algorithm = POSITION(words[3], ALGORITHMS);
    row->protocol = POSITION(words[4], PROTOCOLS);
    row->pipe_ops = row->registered = -1;
    return row->collective >= 0 && row->algorithm >= 0 && row->protocol >= 0 && size_of(words[1], &row->first) &&
           size_of(words[2], &row->last) && number_of(words[5], &row->channels) && number_of(words[6], &row->nodes) &&
           number_of(words[7], &row->ranks) && (count < 9 || number_of(words[8], &row->pipe_ops)) &&
           (count < 10 || number_of(words[9], &row->registered));
}

static ncclResult_t read_table(Table *table, const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) {
        SAY(table, NCCL_LOG_WARN, "config file %s not found: every call is left to NCCL", path);
        return ncclSuccess;
    }
    char *line = NULL;
    size_t space = 0, room = 0, number = 0;
    ssize_t length;
    ncclResult_t result = ncclSuccess;
    while ((length = getline(&line, &space, file)) >= 0) {
        number++;
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r')) line[--length] = '\0';
        if (length == 0 || line[0] == '#') continue;
        if (table->count == room) {
            room = room ? 2 * room : 64;
            Row *rows = room <= ROWS_MAX ? realloc(table->rows, room * sizeof(Row)) : NULL;
            if (!rows) {
                SAY(table, NCCL_LOG_WARN, "config file %s: no room for line %zu", path, number);
                result = ncclSystemError;
                break;
            }
            table->rows = rows;
        }
        if (read_row(line, &table->rows[table->count])) {
            table->count++;
        } else {
            SAY(table, NCCL_LOG_WARN, "config file %s: line %zu is no row and is left out", path, number);
        }
    }
    free(line);
    fclose(file);
    SAY(table, NCCL_LOG_INFO, "config loaded %zu rows of %s", table->count, path);
    return result;
}

static ncclResult_t begin(size_t ranks, size_t nodes, ncclDebugLogger_t log, void **context) {
    Table *table = calloc(1, sizeof(Table));
    if (!table) return ncclSystemError;
    table->ranks = ranks;
    table->nodes = nodes;
    table->log = log;
    const char *path = getenv("NCCL_TUNER_CONFIG_FILE");
    ncclResult_t result = read_table(table, path ? path : "tuner.csv");
    if (result != ncclSuccess) {
        free(table->rows);
        free(table);
        return result;
    }
    *context = table;
    return ncclSuccess;
}

static ncclResult_t begin_v5(void **context, uint64_t id, size_t ranks, size_t nodes, ncclDebugLogger_t log,
                             ncclNvlDomainInfo_v5_t *domains, ncclTunerConstants_v5_t *constants) {
    (void)id, (void)domains, (void)constants;
    return begin(ranks, nodes, log, context);
}

static ncclResult_t answer(void *context, ncclFunc_t collective, size_t bytes, int pipe_ops, float **costs,
                           int algorithms, int protocols, int registered, int *channels) {
    const Table *table = context;
    if (!table) return ncclInternalError;
    for (const Row *row = table->rows; row != table->rows + table->count; row++) {
        if (row->collective != (int)collective || bytes < row->first || bytes > row->last) continue;
        if (row->nodes != -1 && (size_t)row->nodes != table->nodes) continue;
        if (row->ranks != -1 && (size_t)row->ranks != table->ranks) continue;
        if (row->pipe_ops != -1 && row->pipe_ops != pipe_ops) continue;
        if (row->registered != -1 && row->registered != registered) continue;
        if (row->algorithm >= algorithms || row->protocol >= protocols) continue;
        /* Whatever its type says, it is one array: a row of protocols for each algorithm. */
        float *cost = (float *)costs + row->algorithm * protocols + row->protocol;
        if (*cost == NCCL_ALGO_PROTO_IGNORE) continue;
        *cost = 0.0F;
        if (row->channels > 0) *channels = (int)row->channels;
        return ncclSuccess;
    }
    return ncclSuccess;
}

static ncclResult_t end(void *context) {
    Table *table = context;
    if (table) free(table->rows);
    free(table);
    return ncclSuccess;
}

const ncclTuner_v4_t ncclTunerPlugin_v4 = {"Canopy", begin, answer, end};
const ncclTuner_v5_t ncclTunerPlugin_v5 = {"Canopy", begin_v5, answer, end};
const ncclTuner_v6_t ncclTunerPlugin_v6 = {"Canopy", begin_v5, answer, end, NULL};
