"""Collectives of mpi4py on buffers and on objects; rank 0 prints what all ranks end with."""

from array import array
from hashlib import sha256

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()


def show(what, values):
    digests = world.gather(sha256(bytes(memoryview(values).cast("B"))).hexdigest())
    if rank == 0:
        print(what, sha256("".join(digests).encode()).hexdigest()[:16])


for count in (0, 1, 7, 1009, 50021):
    for code, kind in (("i", MPI.INT), ("d", MPI.DOUBLE), ("q", MPI.INT64_T)):
        own = array(code, ((rank * 31 + place) % 97 for place in range(count)))
        shares = array(code, ((rank * 31 + place) % 97 for place in range(count * size)))
        one, all_ = array(code, bytes(own.itemsize * count)), array(code, bytes(own.itemsize * count * size))
        for op in (MPI.SUM, MPI.MAX, MPI.MIN):
            world.Allreduce([own, kind], [one, kind], op)
            show(f"allreduce {code} {count}", one)
        world.Reduce_scatter_block([shares, kind], [one, kind], MPI.SUM)
        show(f"reduce-scatter {code} {count}", one)
        world.Allgather([own, kind], [all_, kind])
        show(f"allgather {code} {count}", all_)
        world.Alltoall([shares, kind], [all_, kind])
        show(f"alltoall {code} {count}", all_)
        world.Bcast([own, kind])
        show(f"bcast {code} {count}", own)
        world.Allreduce(MPI.IN_PLACE, [own, kind], MPI.SUM)
        show(f"allreduce-in-place {code} {count}", own)

# Objects travel pickled; lower-case calls use the same functions of MPI.
print(world.allreduce(rank), world.bcast({"from": rank}), sum(world.allgather(rank))) if rank == 0 else (
    world.allreduce(rank), world.bcast(None), world.allgather(rank))
half = world.Split(rank % 2)
values = array("i", [rank] * 100)
half.Allreduce(MPI.IN_PLACE, [values, MPI.INT])
show("half", values)
half.Free()
