"""Client of canopy. `canopy.v1` is generated from the .proto files; the other modules are written by hand.

    from canopy.planning import plan
    print(plan("ring:8", "allreduce").reply.plan.quality.achieved.exact)
"""
