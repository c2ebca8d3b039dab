//! `libcanopy_mpi_openmpi.so`: to be preloaded into, or linked with, programs that use Open MPI.
//!
//! Only the choice of the ABI is made here.

canopy_mpi::export!(canopy_mpi::OpenMpi);
