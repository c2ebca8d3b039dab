//! `libcanopy_mpi_mpich.so`: to be preloaded into, or linked with, programs that use MPICH.
//!
//! Only the choice of the ABI is made here.

canopy_mpi::export!(canopy_mpi::Mpich);
