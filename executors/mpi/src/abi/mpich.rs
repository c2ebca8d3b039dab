//! MPICH and the libraries of its common ABI: Intel MPI, MVAPICH, Cray MPICH.

use std::ffi::{CStr, c_int};

use super::{Abi, Find};
use crate::operators::{Class, Operator};

/// MPICH's ABI: handles are numbers, and those of predefined objects are fixed.
#[derive(Clone, Copy, Debug)]
pub struct Mpich;

impl Abi for Mpich {
    type Handle = c_int;
    type Name = c_int;

    const NAME: &'static str = "MPICH";
    const OWN_FILE: &'static str = "libcanopy_mpi_mpich.so";
    const LIBRARIES: &'static [&'static CStr] = &[c"libmpich.so.12", c"libmpi.so.12", c"libmpi_cray.so.12"];
    const IN_PLACE: isize = -1;
    const STATUSES_IGNORE: usize = 1;
    const COMBINER_NAMED: c_int = 1;
    const ERR_OTHER: c_int = 15;

    const COMM_WORLD: c_int = 0x4400_0000;
    const COMM_NULL: c_int = 0x0400_0000;
    const DATATYPE_NULL: c_int = 0x0c00_0000;
    const BYTE: c_int = 0x4c00_010d;
    const UINT64: c_int = 0x4c00_083e;
    const ERRORS_RETURN: c_int = 0x5400_0001;
    const OPERATORS: &'static [(Operator, c_int)] = &[
        (Operator::Max, 0x5800_0001),
        (Operator::Min, 0x5800_0002),
        (Operator::Sum, 0x5800_0003),
        (Operator::Product, 0x5800_0004),
        (Operator::LogicalAnd, 0x5800_0005),
        (Operator::BitAnd, 0x5800_0006),
        (Operator::LogicalOr, 0x5800_0007),
        (Operator::BitOr, 0x5800_0008),
        (Operator::LogicalXor, 0x5800_0009),
        (Operator::BitXor, 0x5800_000a),
    ];
    const TYPES: &'static [(Class, c_int)] = &[
        (Class::Float, 0x4c00_080b),   // MPI_DOUBLE
        (Class::Float, 0x4c00_040a),   // MPI_FLOAT
        (Class::Integer, 0x4c00_0405), // MPI_INT
        (Class::Integer, 0x4c00_0807), // MPI_LONG
        (Class::Integer, 0x4c00_0118), // MPI_SIGNED_CHAR
        (Class::Integer, 0x4c00_0102), // MPI_UNSIGNED_CHAR
        (Class::Integer, 0x4c00_0203), // MPI_SHORT
        (Class::Integer, 0x4c00_0204), // MPI_UNSIGNED_SHORT
        (Class::Integer, 0x4c00_0406), // MPI_UNSIGNED
        (Class::Integer, 0x4c00_0808), // MPI_UNSIGNED_LONG
        (Class::Integer, 0x4c00_0809), // MPI_LONG_LONG_INT
        (Class::Integer, 0x4c00_0819), // MPI_UNSIGNED_LONG_LONG
        (Class::Integer, 0x4c00_0137), // MPI_INT8_T
        (Class::Integer, 0x4c00_0238), // MPI_INT16_T
        (Class::Integer, 0x4c00_0439), // MPI_INT32_T
        (Class::Integer, 0x4c00_083a), // MPI_INT64_T
        (Class::Integer, 0x4c00_013b), // MPI_UINT8_T
        (Class::Integer, 0x4c00_023c), // MPI_UINT16_T
        (Class::Integer, 0x4c00_043d), // MPI_UINT32_T
        (Class::Integer, 0x4c00_083e), // MPI_UINT64_T
        (Class::Integer, 0x4c00_0843), // MPI_AINT
        (Class::Integer, 0x4c00_0844), // MPI_OFFSET
        (Class::Integer, 0x4c00_0845), // MPI_COUNT
        (Class::Float, 0x4c00_100c),   // MPI_LONG_DOUBLE
        (Class::Logical, 0x4c00_013f), // MPI_C_BOOL
        (Class::Logical, 0x4c00_0133), // MPI_CXX_BOOL
        (Class::Complex, 0x4c00_0840), // MPI_C_FLOAT_COMPLEX
        (Class::Complex, 0x4c00_1041), // MPI_C_DOUBLE_COMPLEX
        (Class::Complex, 0x4c00_2042), // MPI_C_LONG_DOUBLE_COMPLEX
        (Class::Byte, 0x4c00_010d),    // MPI_BYTE
    ];

    fn handle(name: c_int, _find: Find<'_>) -> Option<c_int> {
        Some(name)
    }
}
