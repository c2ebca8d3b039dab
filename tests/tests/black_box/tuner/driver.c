/* Asks a tuner plugin as NCCL would: PLUGIN VERSION RANKS NODES, then a line `collective bytes has_nvls` for each call. Prints
 * algorithm, protocol and channels of the answer, -1 where it has none. */
#include "tuner.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words) {
    if (count != 5) return 2;
    void *library = dlopen(words[1], RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    char name[64];
    snprintf(name, sizeof name, "ncclTunerPlugin_v%s", words[2]);
    void *plugin = dlsym(library, name);
    if (!plugin) return 4;
    size_t ranks = strtoul(words[3], NULL, 10), nodes = strtoul(words[4], NULL, 10);
    void *context = NULL;
    ncclGetCollInfo_t ask;
    ncclResult_t (*end)(void *);
    ncclResult_t begun;
    if (words[2][0] == '4') {
        const ncclTuner_v4_t *tuner = plugin;
        begun = tuner->init(ranks, nodes, NULL, &context);
        ask = tuner->getCollInfo, end = tuner->destroy;
    } else {
        /* Version 6 begins as version 5 does. */
        const ncclTuner_v5_t *tuner = plugin;
        ncclNvlDomainInfo_v5_t domains = {(int)nodes, (int)(ranks / nodes), (int)(ranks / nodes)};
        static ncclTunerConstants_v5_t constants;
        begun = tuner->init(&context, 7, ranks, nodes, NULL, &domains, &constants);
        ask = tuner->getCollInfo, end = tuner->finalize;
    }
    if (begun != ncclSuccess) return 5;
    int collective, has_nvls;
    unsigned long long bytes;
    while (scanf("%d %llu %d", &collective, &bytes, &has_nvls) == 3) {
        float costs[NCCL_NUM_ALGORITHMS][NCCL_NUM_PROTOCOLS];
        for (int algorithm = 0; algorithm < NCCL_NUM_ALGORITHMS; algorithm++) {
            for (int protocol = 0; protocol < NCCL_NUM_PROTOCOLS; protocol++) {
                int is_nvls = algorithm == NCCL_ALGO_NVLS || algorithm == NCCL_ALGO_NVLS_TREE;
                int is_there = algorithm == NCCL_ALGO_RING || (algorithm == NCCL_ALGO_TREE && collective == 4) ||
                               (is_nvls && has_nvls && protocol == NCCL_PROTO_SIMPLE);
                costs[algorithm][protocol] = is_there ? 5.0F : (float)NCCL_ALGO_PROTO_IGNORE;
            }
        }
        int channels = 0, found = -1;
        if (ask(context, (ncclFunc_t)collective, (size_t)bytes, 1, (float **)costs, NCCL_NUM_ALGORITHMS,
                NCCL_NUM_PROTOCOLS, 0, &channels) != ncclSuccess) {
            return 6;
        }
        for (int place = 0; place < NCCL_NUM_ALGORITHMS * NCCL_NUM_PROTOCOLS; place++) {
            if (((float *)costs)[place] == 0.0F) found = place;
        }
        if (found < 0) {
            printf("-1 -1 %d\n", channels);
        } else {
            printf("%d %d %d\n", found / NCCL_NUM_PROTOCOLS, found % NCCL_NUM_PROTOCOLS, channels);
        }
    }
    return end(context) == ncclSuccess ? 0 : 7;
}
