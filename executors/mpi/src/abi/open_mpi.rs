//! Open MPI and the libraries that are made from it: HPC-X, Spectrum MPI.

use std::ffi::{CStr, c_int};

use super::{Abi, Find};
use crate::operators::{Class, Operator};

/// Open MPI's ABI: handles are addresses, and those of predefined objects are symbols.
#[derive(Clone, Copy, Debug)]
pub struct OpenMpi;

impl Abi for OpenMpi {
    /// As wide as an address, which the code here never follows.
    type Handle = usize;
    type Name = &'static CStr;

    const NAME: &'static str = "Open MPI";
    const OWN_FILE: &'static str = "libcanopy_mpi_openmpi.so";
    const LIBRARIES: &'static [&'static CStr] = &[c"libmpi.so.40", c"libmpi_ibm.so.40"];
    const IN_PLACE: isize = 1;
    const STATUSES_IGNORE: usize = 0;
    const COMBINER_NAMED: c_int = 0;
    const ERR_OTHER: c_int = 16;

    const COMM_WORLD: &'static CStr = c"ompi_mpi_comm_world";
    const COMM_NULL: &'static CStr = c"ompi_mpi_comm_null";
    const DATATYPE_NULL: &'static CStr = c"ompi_mpi_datatype_null";
    const BYTE: &'static CStr = c"ompi_mpi_byte";
    const UINT64: &'static CStr = c"ompi_mpi_uint64_t";
    const ERRORS_RETURN: &'static CStr = c"ompi_mpi_errors_return";
    const OPERATORS: &'static [(Operator, &'static CStr)] = &[
        (Operator::Max, c"ompi_mpi_op_max"),
        (Operator::Min, c"ompi_mpi_op_min"),
        (Operator::Sum, c"ompi_mpi_op_sum"),
        (Operator::Product, c"ompi_mpi_op_prod"),
        (Operator::LogicalAnd, c"ompi_mpi_op_land"),
        (Operator::BitAnd, c"ompi_mpi_op_band"),
        (Operator::LogicalOr, c"ompi_mpi_op_lor"),
        (Operator::BitOr, c"ompi_mpi_op_bor"),
        (Operator::LogicalXor, c"ompi_mpi_op_lxor"),
        (Operator::BitXor, c"ompi_mpi_op_bxor"),
    ];
    const TYPES: &'static [(Class, &'static CStr)] = &[
        (Class::Float, c"ompi_mpi_double"),
        (Class::Float, c"ompi_mpi_float"),
        (Class::Integer, c"ompi_mpi_int"),
        (Class::Integer, c"ompi_mpi_long"),
        (Class::Integer, c"ompi_mpi_signed_char"),
        (Class::Integer, c"ompi_mpi_unsigned_char"),
        (Class::Integer, c"ompi_mpi_short"),
        (Class::Integer, c"ompi_mpi_unsigned_short"),
        (Class::Integer, c"ompi_mpi_unsigned"),
        (Class::Integer, c"ompi_mpi_unsigned_long"),
        (Class::Integer, c"ompi_mpi_long_long_int"),
        (Class::Integer, c"ompi_mpi_unsigned_long_long"),
        (Class::Integer, c"ompi_mpi_int8_t"),
        (Class::Integer, c"ompi_mpi_int16_t"),
        (Class::Integer, c"ompi_mpi_int32_t"),
        (Class::Integer, c"ompi_mpi_int64_t"),
        (Class::Integer, c"ompi_mpi_uint8_t"),
        (Class::Integer, c"ompi_mpi_uint16_t"),
        (Class::Integer, c"ompi_mpi_uint32_t"),
        (Class::Integer, c"ompi_mpi_uint64_t"),
        (Class::Integer, c"ompi_mpi_aint"),
        (Class::Integer, c"ompi_mpi_offset"),
        (Class::Integer, c"ompi_mpi_count"),
        (Class::Float, c"ompi_mpi_long_double"),
        (Class::Logical, c"ompi_mpi_c_bool"),
        (Class::Logical, c"ompi_mpi_cxx_bool"),
        (Class::Complex, c"ompi_mpi_c_float_complex"),
        (Class::Complex, c"ompi_mpi_c_double_complex"),
        (Class::Complex, c"ompi_mpi_c_long_double_complex"),
        (Class::Byte, c"ompi_mpi_byte"),
    ];

    fn handle(name: &'static CStr, find: Find<'_>) -> Option<usize> {
        find(name)
    }
}
