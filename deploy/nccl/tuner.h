/* NCCL's interface of tuner plugins, versions 4 (NCCL 2.24), 5 (2.28) and 6 (2.30): layouts and numbers only, so that
 * plugins build without NCCL's sources. */
#ifndef CANOPY_NCCL_TUNER_H
#define CANOPY_NCCL_TUNER_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3
} ncclResult_t;

typedef enum {
    NCCL_LOG_NONE = 0,
    NCCL_LOG_VERSION = 1,
    NCCL_LOG_WARN = 2,
    NCCL_LOG_INFO = 3,
    NCCL_LOG_ABORT = 4,
    NCCL_LOG_TRACE = 5
} ncclDebugLogLevel;

enum { NCCL_INIT = 1, NCCL_TUNING = 64 };

typedef void (*ncclDebugLogger_t)(ncclDebugLogLevel level, unsigned long flags, const char *file, int line,
                                  const char *format, ...);

typedef enum {
    ncclFuncBroadcast,
    ncclFuncReduce,
    ncclFuncAllGather,
    ncclFuncReduceScatter,
    ncclFuncAllReduce,
    ncclFuncSendRecv,
    ncclFuncSend,
    ncclFuncRecv,
    ncclNumFuncs
} ncclFunc_t;

enum {
    NCCL_ALGO_TREE,
    NCCL_ALGO_RING,
    NCCL_ALGO_COLLNET_DIRECT,
    NCCL_ALGO_COLLNET_CHAIN,
    NCCL_ALGO_NVLS,
    NCCL_ALGO_NVLS_TREE,
    NCCL_ALGO_PAT,
    NCCL_NUM_ALGORITHMS
};

enum { NCCL_PROTO_LL, NCCL_PROTO_LL128, NCCL_PROTO_SIMPLE, NCCL_NUM_PROTOCOLS };

/* What NCCL does not have for a call. */
#define NCCL_ALGO_PROTO_IGNORE -1.0

enum { NCCL_HW_NVLINK, NCCL_HW_PCI, NCCL_HW_NET, NCCL_NUM_HW_LINKS };
enum {
    NCCL_VOLTA_COMPCAP_IDX,
    NCCL_AMPERE_COMPCAP_IDX,
    NCCL_HOPPER_COMPCAP_IDX,
    NCCL_BLACKWELL_COMPCAP_IDX,
    NCCL_NUM_COMPCAPS
};
enum { NCCL_TUNING_SCALE_1NODE, NCCL_TUNING_SCALE_2NODES, NCCL_TUNING_SCALE_4NODES, NCCL_NUM_TUNING_SCALES };

typedef struct {
    int nNvlDomains;
    int minRanksPerNvlDomain;
    int maxRanksPerNvlDomain;
} ncclNvlDomainInfo_v5_t;

typedef struct {
    double baseLatencies[NCCL_NUM_ALGORITHMS][NCCL_NUM_PROTOCOLS];
    double hwLatencies[NCCL_NUM_HW_LINKS][NCCL_NUM_ALGORITHMS][NCCL_NUM_PROTOCOLS];
    double llMaxBws[NCCL_NUM_COMPCAPS][NCCL_NUM_TUNING_SCALES];
    double perChMaxRingLL128Bws[NCCL_NUM_COMPCAPS][NCCL_NUM_TUNING_SCALES];
    double perChMaxTreeLL128Bws[NCCL_NUM_COMPCAPS][NCCL_NUM_TUNING_SCALES];
    double perChMaxTreeBws[NCCL_NUM_COMPCAPS][NCCL_NUM_TUNING_SCALES];
    double perChMaxNVLSTreeBws[NCCL_NUM_COMPCAPS][NCCL_NUM_TUNING_SCALES];
} ncclTunerConstants_v5_t;

typedef ncclResult_t (*ncclGetCollInfo_t)(void *context, ncclFunc_t collType, size_t nBytes, int numPipeOps,
                                          float **collCostTable, int numAlgo, int numProto, int regBuff,
                                          int *nChannels);

typedef struct {
    const char *name;
    ncclResult_t (*init)(size_t nRanks, size_t nNodes, ncclDebugLogger_t logFunction, void **context);
    ncclGetCollInfo_t getCollInfo;
    ncclResult_t (*destroy)(void *context);
} ncclTuner_v4_t;

typedef struct {
    const char *name;
    ncclResult_t (*init)(void **context, uint64_t commId, size_t nRanks, size_t nNodes, ncclDebugLogger_t logFunction,
                         ncclNvlDomainInfo_v5_t *nvlDomainInfo, ncclTunerConstants_v5_t *constants);
    ncclGetCollInfo_t getCollInfo;
    ncclResult_t (*finalize)(void *context);
} ncclTuner_v5_t;

typedef struct {
    const char *name;
    ncclResult_t (*init)(void **context, uint64_t commId, size_t nRanks, size_t nNodes, ncclDebugLogger_t logFunction,
                         ncclNvlDomainInfo_v5_t *nvlDomainInfo, ncclTunerConstants_v5_t *constants);
    ncclGetCollInfo_t getCollInfo;
    ncclResult_t (*finalize)(void *context);
    ncclResult_t (*getChunkSize)(void *context, ncclFunc_t collType, size_t nBytes, int algo, int proto, int nChannels,
                                 size_t *chunkSize);
} ncclTuner_v6_t;

#endif
